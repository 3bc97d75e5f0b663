#include "server/generation_service.h"

#include <chrono>
#include <optional>
#include <utility>

#include "engine/base/status.h"
#include "server/generate_reactor.h"
#include "server/grpc_call.h"
#include "server/raw_messages.h"
#include "server/request_translation.h"
#include "server/response_translation.h"
#include "server/status_translation.h"
#include "server/trace_context.h"

namespace quire {
namespace {

// gRPC's deadlines are points of wall-clock time; the engine's are monotonic.
std::optional<TimePoint> DeadlineOf(const grpc::CallbackServerContext& context, TimePoint now) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  return now + std::chrono::duration_cast<Duration>(deadline - std::chrono::system_clock::now());
}

std::optional<double> TimeoutOf(const v1::GenerateRequest& request) {
  if (!request.has_timeout_seconds()) return std::nullopt;
  return request.timeout_seconds();
}

// Answers a unary call at once: `handle` is a function (const Request&, Response*) -> absl::Status.
template <typename Request, typename Response, typename Handle>
absl::Status AnswerWith(const Request& request, const Handle& handle, grpc::ByteBuffer* buffer) {
  Response response;
  const absl::Status status = handle(request, &response);
  if (status.ok()) *buffer = ToByteBuffer(response);
  return status;
}

template <typename Request, typename Response, typename Handle>
grpc::ServerUnaryReactor* AnswerHere(Authenticator* authenticator, grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer& bytes, grpc::ByteBuffer* buffer, const Handle& handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Request request;
  absl::Status status = authenticator->Authenticate(OriginOf(*context)).status();
  if (status.ok()) status = ParseMessage(bytes, &request);
  if (status.ok()) status = AnswerWith<Request, Response>(request, handle, buffer);
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// The same on an encoding thread, for work that grows with the request. gRPC keeps reactor and buffer until Finish.
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
  return StartUnaryGeneration(pipeline_, model_.name(), ToInput(context, *request), response);
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
  GenerationInput input;
  input.arrival_time = pipeline_.clock->Now();
  const CallOrigin origin = OriginOf(*context);
  QUIRE_ASSIGN_OR_RETURN(Caller caller, authenticator_->Authenticate(origin));
  input.tenant = std::move(caller.tenant);

  v1::GenerateRequest parsed;
  QUIRE_RETURN_IF_ERROR(ParseMessage(request, &parsed));
  QUIRE_RETURN_IF_ERROR(CheckModelName(parsed.model(), model_.name()));
  QUIRE_ASSIGN_OR_RETURN(input.deadline,
                         ToDeadline(TimeoutOf(parsed), input.arrival_time, DeadlineOf(*context, input.arrival_time)));
  QUIRE_ASSIGN_OR_RETURN(input.prompt, ToPrompt(parsed));
  QUIRE_RETURN_IF_ERROR(pipeline_.prompt_encoder->Check(input.prompt));
  input.request_id = parsed.request_id().empty() ? origin.metadata(kRequestIdKey).value_or("") : parsed.request_id();
  QUIRE_RETURN_IF_ERROR(CheckRequestId(input.request_id));
  if (input.request_id.empty()) input.request_id = request_ids_->Make("gen");
  TellRequestId(input.request_id, context);
  input.trace_id = TraceIdIn(origin.metadata(kTraceParentKey).value_or(""));
  input.priority = parsed.priority();
  input.cache_salt = parsed.cache_salt();
  input.skip_reading_prefix_cache = parsed.skip_reading_prefix_cache();
  input.sampling = ToSamplingParams(parsed.sampling());
  input.include_special_tokens = parsed.sampling().include_special_tokens();
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
