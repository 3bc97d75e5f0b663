#include "server/grpc/generation_service.h"

#include <optional>
#include <utility>

#include "engine/base/status.h"
#include "server/grpc/generate_reactor.h"
#include "server/grpc/grpc_call.h"
#include "server/grpc/raw_messages.h"
#include "server/grpc/status_translation.h"
#include "server/grpc/unary_answer.h"
#include "server/messages/request_translation.h"
#include "server/messages/response_translation.h"

namespace quire {
namespace {

std::optional<double> TimeoutOf(const v1::GenerateRequest& request) {
  if (!request.has_timeout_seconds()) return std::nullopt;
  return request.timeout_seconds();
}

v1::GenerateResponse ToResponse(WholeAnswer answer, const std::string& model_name) {
  v1::GenerateResponse response;
  response.set_request_id(std::move(answer.request_id));
  response.set_model(model_name);
  v1::Output* output = response.add_outputs();
  output->set_text(std::move(*answer.output.mutable_text()));
  output->mutable_token_ids()->Swap(answer.output.mutable_token_ids());
  output->mutable_logprobs()->Swap(answer.output.mutable_logprobs());
  output->set_finish_reason(ToProto(answer.result.finish_reason));
  response.mutable_prompt_logprobs()->Swap(answer.output.mutable_prompt_logprobs());
  *response.mutable_usage() = UsageOf(answer.result);
  *response.mutable_timings() = TimingsOf(answer.result);
  return response;
}

// AnswerHere on an encoding thread, for work that grows with the request. gRPC keeps reactor and buffer until Finish.
template <typename Request, typename Response, typename Handle>
grpc::ServerUnaryReactor* AnswerOnTextThread(Authenticator* authenticator, TextExecutor* executor,
                                             grpc::CallbackServerContext* context, const grpc::ByteBuffer& bytes,
                                             grpc::ByteBuffer* buffer, Handle handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Request request;
  absl::Status status = authenticator->Authenticate(OriginOf(*context)).status();
  if (status.ok()) status = ParseMessage(bytes, &request);
  if (status.ok()) {
    const auto num_bytes = static_cast<int64_t>(bytes.Length());
    status =
        executor->PostEncode(num_bytes, [reactor, buffer, request = std::move(request), handle = std::move(handle)] {
          reactor->Finish(ToGrpcStatus(AnswerWith<Request, Response>(request, handle, buffer)));
        });
  }
  if (!status.ok()) reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace

GenerationService::GenerationService(const GenerationPipeline& pipeline, v1::ModelInfo model,
                                     Authenticator* authenticator, StreamMemory* stream_memory, RequestIds* request_ids)
    : pipeline_(pipeline),
      model_(std::move(model)),
      authenticator_(authenticator),
      stream_memory_(stream_memory),
      request_ids_(request_ids) {}

grpc::ServerUnaryReactor* GenerationService::Generate(Context* context, const Buffer* request, Buffer* response) {
  UnaryFormat format = {
      .response = [this](WholeAnswer answer) { return ToByteBuffer(ToResponse(std::move(answer), model_.name())); },
      .status = ToGrpcStatus};
  return StartUnaryGeneration(pipeline_, std::move(format), ToInput(context, *request), response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerationService::GenerateStream(Context* context, const Buffer* request) {
  return StartStreamGeneration(pipeline_, model_.name(), stream_memory_, ToInput(context, *request));
}

grpc::ServerUnaryReactor* GenerationService::Tokenize(Context* context, const Buffer* request, Buffer* response) {
  return AnswerOnTextThread<v1::TokenizeRequest, v1::TokenizeResponse>(
      authenticator_, pipeline_.text_executor, context, *request, response,
      [this](const auto& parsed, auto* answer) { return DoTokenize(parsed, answer); });
}

grpc::ServerUnaryReactor* GenerationService::Detokenize(Context* context, const Buffer* request, Buffer* response) {
  return AnswerOnTextThread<v1::DetokenizeRequest, v1::DetokenizeResponse>(
      authenticator_, pipeline_.text_executor, context, *request, response,
      [this](const auto& parsed, auto* answer) { return DoDetokenize(parsed, answer); });
}

grpc::ServerUnaryReactor* GenerationService::ListModels(Context* context, const Buffer* request, Buffer* response) {
  return AnswerHere<v1::ListModelsRequest, v1::ListModelsResponse>(authenticator_, context, *request, response,
                                                                   [this](const auto&, auto* answer) {
                                                                     *answer->add_models() = model_;
                                                                     return absl::OkStatus();
                                                                   });
}

grpc::ServerUnaryReactor* GenerationService::GetModelInfo(Context* context, const Buffer* request, Buffer* response) {
  return AnswerHere<v1::GetModelInfoRequest, v1::ModelInfo>(authenticator_, context, *request, response,
                                                            [this](const auto& parsed, auto* answer) {
                                                              *answer = model_;
                                                              return CheckModelName(parsed.model(), model_.name());
                                                            });
}

absl::StatusOr<GenerationInput> GenerationService::ToInput(Context* context, const Buffer& request) {
  QUIRE_ASSIGN_OR_RETURN(GenerationInput input, InputOf(*context, authenticator_, pipeline_.clock->Now()));
  v1::GenerateRequest parsed;
  QUIRE_RETURN_IF_ERROR(ParseMessage(request, &parsed));
  QUIRE_RETURN_IF_ERROR(CheckModelName(parsed.model(), model_.name()));
  QUIRE_ASSIGN_OR_RETURN(input.deadline,
                         ToDeadline(TimeoutOf(parsed), input.arrival_time, DeadlineOf(*context, input.arrival_time)));
  QUIRE_ASSIGN_OR_RETURN(input.prompt, ToPrompt(parsed));
  QUIRE_RETURN_IF_ERROR(pipeline_.prompt_encoder->Check(input.prompt));
  QUIRE_ASSIGN_OR_RETURN(input.request_id, RequestIdOf(parsed.request_id(), "gen", request_ids_, context));
  input.priority = parsed.priority();
  input.cache_salt = parsed.cache_salt();
  input.skip_reading_prefix_cache = parsed.skip_reading_prefix_cache();
  input.sampling = ToSamplingParams(parsed.sampling());
  input.include_special_tokens = parsed.sampling().include_special_tokens();
  QUIRE_RETURN_IF_ERROR(pipeline_.rate_limiter->Admit(input.tenant));
  return input;
}

absl::Status GenerationService::DoTokenize(const v1::TokenizeRequest& request, v1::TokenizeResponse* response) const {
  QUIRE_RETURN_IF_ERROR(CheckModelName(request.model(), model_.name()));
  QUIRE_ASSIGN_OR_RETURN(const Prompt prompt, ToPrompt(request));
  QUIRE_RETURN_IF_ERROR(pipeline_.prompt_encoder->Check(prompt));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, pipeline_.prompt_encoder->Encode(prompt));
  response->mutable_token_ids()->Assign(ids.begin(), ids.end());
  for (const TokenId id : ids) response->add_token_texts(TokenText(*pipeline_.tokenizer, id));
  response->set_max_model_len(model_.max_model_len());
  return absl::OkStatus();
}

absl::Status GenerationService::DoDetokenize(const v1::DetokenizeRequest& request,
                                             v1::DetokenizeResponse* response) const {
  QUIRE_RETURN_IF_ERROR(CheckModelName(request.model(), model_.name()));
  const std::vector<TokenId> ids(request.token_ids().begin(), request.token_ids().end());
  QUIRE_RETURN_IF_ERROR(CheckTokenIds("token_ids", ids, pipeline_.tokenizer->vocab_size()));
  QUIRE_ASSIGN_OR_RETURN(*response->mutable_text(), pipeline_.tokenizer->Decode(ids, request.include_special_tokens()));
  return absl::OkStatus();
}

}  // namespace quire
