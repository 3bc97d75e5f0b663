#include "server/kserve/kserve_service.h"

#include <utility>

#include "engine/base/status.h"
#include "server/grpc/grpc_call.h"
#include "server/grpc/raw_messages.h"
#include "server/grpc/status_translation.h"
#include "server/grpc/unary_answer.h"
#include "server/kserve/infer_request.h"
#include "server/kserve/infer_response.h"
#include "server/messages/field_names.h"
#include "server/messages/request_translation.h"

namespace quire {
namespace {

// The first that fits counts.
constexpr FieldName kFieldNames[] = {
    {"text", kTextInput},
    {"request_id", "id"},
    {"stop_strings", "stop"},
    {"sampling.stop_strings", "stop"},
};

absl::Status Renamed(const absl::Status& status) { return WithFieldNames(status, kFieldNames); }

// For methods that watchers call: like health's, they need no key.
constexpr Authenticator* kAnyone = nullptr;

}  // namespace

KserveService::KserveService(const GenerationPipeline& pipeline, std::string model_name, Authenticator* authenticator,
                             const ServingState* serving, RequestIds* request_ids)
    : pipeline_(pipeline),
      model_name_(std::move(model_name)),
      authenticator_(authenticator),
      serving_(serving),
      request_ids_(request_ids) {}

grpc::ServerUnaryReactor* KserveService::ServerLive(Context* context, const Buffer* request, Buffer* response) {
  return AnswerHere<inference::ServerLiveRequest, inference::ServerLiveResponse>(
      kAnyone, context, *request, response, [this](const auto&, auto* answer) {
        answer->set_live(!serving_->stalled());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* KserveService::ServerReady(Context* context, const Buffer* request, Buffer* response) {
  return AnswerHere<inference::ServerReadyRequest, inference::ServerReadyResponse>(
      kAnyone, context, *request, response, [this](const auto&, auto* answer) {
        answer->set_ready(serving_->serving());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* KserveService::ModelReady(Context* context, const Buffer* request, Buffer* response) {
  return AnswerHere<inference::ModelReadyRequest, inference::ModelReadyResponse>(
      kAnyone, context, *request, response, [this](const auto& parsed, auto* answer) {
        answer->set_ready(serving_->serving() && CheckModel(parsed.name(), parsed.version()).ok());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* KserveService::ServerMetadata(Context* context, const Buffer* request, Buffer* response) {
  return AnswerHere<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
      authenticator_, context, *request, response, [](const auto&, auto* answer) {
        *answer = QuireMetadata();
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* KserveService::ModelMetadata(Context* context, const Buffer* request, Buffer* response) {
  return AnswerHere<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
      authenticator_, context, *request, response, [this](const auto& parsed, auto* answer) {
        *answer = TextModelMetadata(model_name_);
        return CheckModel(parsed.name(), parsed.version());
      });
}

grpc::ServerUnaryReactor* KserveService::ModelInfer(Context* context, const Buffer* request, Buffer* response) {
  TextTensorForm form;
  absl::StatusOr<GenerationInput> input = ToInput(context, *request, &form);
  return StartUnaryGeneration(pipeline_, FormatOf(std::move(form)), std::move(input), response);
}

absl::Status KserveService::CheckModel(const std::string& name, const std::string& version) const {
  QUIRE_RETURN_IF_ERROR(CheckModelName(name, model_name_));
  return CheckModelVersion(version);
}

absl::StatusOr<GenerationInput> KserveService::ToInput(Context* context, const Buffer& request, TextTensorForm* form) {
  QUIRE_ASSIGN_OR_RETURN(GenerationInput input, InputOf(*context, authenticator_, pipeline_.clock->Now()));
  inference::ModelInferRequest message;
  QUIRE_RETURN_IF_ERROR(ParseMessage(request, &message));
  QUIRE_RETURN_IF_ERROR(CheckModel(message.model_name(), message.model_version()));
  QUIRE_ASSIGN_OR_RETURN(InferRequest parsed, ParseInferRequest(message));
  QUIRE_ASSIGN_OR_RETURN(input.deadline, ToDeadline(parsed.parameters.timeout_seconds, input.arrival_time,
                                                    DeadlineOf(*context, input.arrival_time)));
  input.prompt = TextPrompt{.text = std::move(parsed.text)};
  QUIRE_RETURN_IF_ERROR(Renamed(pipeline_.prompt_encoder->Check(input.prompt)));
  absl::StatusOr<std::string> id = RequestIdOf(message.id(), "infer", request_ids_, context);
  if (!id.ok()) return Renamed(id.status());
  input.request_id = *std::move(id);
  input.priority = parsed.parameters.priority;
  input.cache_salt = std::move(parsed.parameters.cache_salt);
  input.sampling = std::move(parsed.parameters.sampling);
  input.include_special_tokens = parsed.parameters.include_special_tokens;
  *form = std::move(parsed.form);
  QUIRE_RETURN_IF_ERROR(pipeline_.rate_limiter->Admit(input.tenant));
  return input;
}

UnaryFormat KserveService::FormatOf(TextTensorForm form) const {
  return {
      .response = [this, form = std::move(form)](
                      const WholeAnswer& answer) { return ToByteBuffer(ToInferResponse(answer, form, model_name_)); },
      .status = [](const absl::Status& status) { return ToGrpcStatus(Renamed(status)); }};
}

}  // namespace quire
