#include "server/kserve/infer_response.h"

#include "engine/base/generation_types.h"
#include "engine/base/version.h"
#include "server/kserve/infer_request.h"

namespace quire {
namespace {

using TensorMetadata = inference::ModelMetadataResponse::TensorMetadata;

TensorMetadata TextTensorMetadata(std::string_view name) {
  TensorMetadata metadata;
  metadata.set_name(std::string(name));
  metadata.set_datatype(std::string(kTextDatatype));
  metadata.add_shape(1);
  return metadata;
}

}  // namespace

inference::ModelInferResponse ToInferResponse(const WholeAnswer& answer, const TextTensorForm& form,
                                              const std::string& model_name) {
  inference::ModelInferResponse response;
  response.set_model_name(model_name);
  response.set_model_version(std::string(kModelVersion));
  response.set_id(answer.request_id);
  auto& parameters = *response.mutable_parameters();
  parameters["finish_reason"].set_string_param(std::string(ToString(answer.result.finish_reason)));
  parameters["prompt_tokens"].set_int64_param(answer.result.num_prompt_tokens);
  parameters["completion_tokens"].set_int64_param(answer.result.num_output_tokens);
  parameters["cached_prompt_tokens"].set_int64_param(answer.result.num_cached_prompt_tokens);

  auto* output = response.add_outputs();
  output->set_name(std::string(kTextOutput));
  output->set_datatype(std::string(kTextDatatype));
  output->mutable_shape()->Assign(form.shape.begin(), form.shape.end());
  if (form.is_raw) {
    response.add_raw_output_contents(RawOfText(answer.output.text()));
  } else {
    output->mutable_contents()->add_bytes_contents(answer.output.text());
  }
  return response;
}

inference::ModelMetadataResponse TextModelMetadata(const std::string& model_name) {
  inference::ModelMetadataResponse metadata;
  metadata.set_name(model_name);
  metadata.add_versions(std::string(kModelVersion));
  metadata.set_platform("quire");
  *metadata.add_inputs() = TextTensorMetadata(kTextInput);
  *metadata.add_outputs() = TextTensorMetadata(kTextOutput);
  return metadata;
}

inference::ServerMetadataResponse QuireMetadata() {
  inference::ServerMetadataResponse metadata;
  metadata.set_name("quire");
  metadata.set_version(kVersion);
  metadata.add_extensions("parameters");       // of requests and responses
  metadata.add_extensions("schedule_policy");  // parameters priority and timeout
  return metadata;
}

}  // namespace quire
