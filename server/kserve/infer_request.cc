#include "server/kserve/infer_request.h"

#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/text/utf8.h"

namespace quire {
namespace {

using InputTensor = inference::ModelInferRequest::InferInputTensor;

constexpr std::string_view kPromptInput = "prompt";  // what some call kTextInput
constexpr std::string_view kRawField = "raw_input_contents[0]";
constexpr std::string_view kContentsField = "inputs[0].contents.bytes_contents";

std::string Quoted(std::string_view text) { return StrCat("\"", text, "\""); }

std::string ToText(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += StrCat(text.empty() ? "" : ", ", size);
  return StrCat("[", text, "]");
}

absl::Status CheckTensor(const InputTensor& tensor, const std::vector<int64_t>& shape) {
  if (tensor.name() != kTextInput && tensor.name() != kPromptInput) {
    return InvalidArgument("inputs[0].name", Quoted(tensor.name()), Quoted(kTextInput));
  }
  if (tensor.datatype() != kTextDatatype) {
    return InvalidArgument("inputs[0].datatype", Quoted(tensor.datatype()), Quoted(kTextDatatype));
  }
  if (shape != std::vector<int64_t>{1} && shape != std::vector<int64_t>{1, 1}) {
    return InvalidArgument("inputs[0].shape", ToText(shape), "[1] or [1, 1]: a request has one prompt");
  }
  return CheckTensorParameters("inputs[0].parameters", tensor.parameters());
}

absl::Status CheckOutputs(const inference::ModelInferRequest& request) {
  for (int i = 0; i < request.outputs_size(); ++i) {
    const auto& output = request.outputs(i);
    const std::string path = StrCat("outputs[", i, "]");
    if (output.name() != kTextOutput) {
      return InvalidArgument(path + ".name", Quoted(output.name()), Quoted(kTextOutput));
    }
    QUIRE_RETURN_IF_ERROR(CheckTensorParameters(path + ".parameters", output.parameters()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TextOfContents(const InputTensor& tensor) {
  const int num_elements = tensor.contents().bytes_contents_size();
  if (num_elements != 1) return InvalidArgument(kContentsField, StrCat(num_elements, " elements"), "1: the prompt");
  return tensor.contents().bytes_contents(0);
}

absl::StatusOr<std::string> TextOfRawContents(const inference::ModelInferRequest& request) {
  if (request.raw_input_contents_size() != 1) {
    return InvalidArgument("raw_input_contents", StrCat(request.raw_input_contents_size(), " elements"),
                           "1, as there is 1 tensor");
  }
  if (request.inputs(0).contents().bytes_contents_size() > 0) {
    return InvalidArgument(kContentsField, "contents beside raw_input_contents", "one of them");
  }
  return TextOfRaw(kRawField, request.raw_input_contents(0));
}

}  // namespace

absl::Status CheckModelVersion(std::string_view asked) {
  if (asked.empty() || asked == kModelVersion) return absl::OkStatus();
  return absl::NotFoundError(
      StrCat("model_version: got ", Quoted(asked), ", expected ", Quoted(kModelVersion), " or nothing"));
}

absl::StatusOr<InferRequest> ParseInferRequest(const inference::ModelInferRequest& request) {
  if (request.inputs_size() != 1) {
    return InvalidArgument("inputs", StrCat(request.inputs_size(), " tensors"), StrCat("1: ", kTextInput));
  }
  const InputTensor& tensor = request.inputs(0);
  InferRequest result;
  result.form = {.is_raw = request.raw_input_contents_size() > 0,
                 .shape = {tensor.shape().begin(), tensor.shape().end()}};
  QUIRE_RETURN_IF_ERROR(CheckTensor(tensor, result.form.shape));
  QUIRE_RETURN_IF_ERROR(CheckOutputs(request));
  QUIRE_ASSIGN_OR_RETURN(result.text, result.form.is_raw ? TextOfRawContents(request) : TextOfContents(tensor));
  if (Utf8ValidPrefix(result.text) != result.text.size()) {
    return InvalidArgument(result.form.is_raw ? kRawField : kContentsField, "bytes that are not UTF-8", "valid UTF-8");
  }
  QUIRE_ASSIGN_OR_RETURN(result.parameters, ParseInferParameters(request.parameters()));
  return result;
}

}  // namespace quire
