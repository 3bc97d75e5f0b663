#include "server/kserve/infer_parameters.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/status.h"
#include "server/messages/json_fields.h"
#include "server/messages/sampling_fields.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMicrosecondsInSecond = 1'000'000;
constexpr int64_t kMaxTimeoutMicroseconds = int64_t{365} * 24 * 3600 * kMicrosecondsInSecond;

// May come as text: the protocol once had no numbers but integers, and KServe's own client still sends no others.
constexpr std::string_view kRealNumbers[] = {"temperature", "top_p", "min_p", "repetition_penalty"};

// The number that is all of `text`, or the text.
Json NumberIn(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read_to == end ? Json(number) : Json(text);
}

Json ToJson(const std::string& name, const inference::InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case inference::InferParameter::kBoolParam: return parameter.bool_param();
    case inference::InferParameter::kInt64Param: return parameter.int64_param();
    case inference::InferParameter::kUint64Param: return parameter.uint64_param();
    case inference::InferParameter::kDoubleParam: return parameter.double_param();
    case inference::InferParameter::kStringParam:
      if (std::ranges::find(kRealNumbers, name) != std::end(kRealNumbers)) return NumberIn(parameter.string_param());
      return parameter.string_param();
    case inference::InferParameter::PARAMETER_CHOICE_NOT_SET: break;
  }
  return nullptr;
}

Json ToJson(const ParameterMap& parameters) {
  Json object = Json::object();
  for (const auto& [name, parameter] : parameters) object[name] = ToJson(name, parameter);
  return object;
}

}  // namespace

absl::StatusOr<InferParameters> ParseInferParameters(const ParameterMap& parameters) {
  InferParameters result;
  Json object = ToJson(parameters);
  // The protocol has no lists: an id alone is a list of one.
  if (const auto id = object.find("stop_token_ids"); id != object.end()) *id = Json::array({*id});
  JsonFields fields(object);
  ReadSampling(fields, &result.sampling, &result.include_special_tokens);
  fields.Read("max_tokens", 1, std::numeric_limits<int64_t>::max(), &result.sampling.max_tokens);
  fields.Read("priority", std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(), &result.priority);
  int64_t timeout_microseconds = 0;
  fields.Read("timeout", 0, kMaxTimeoutMicroseconds, &timeout_microseconds);
  if (timeout_microseconds > 0) {
    result.timeout_seconds = static_cast<double>(timeout_microseconds) / kMicrosecondsInSecond;
  }
  fields.Read("cache_salt", &result.cache_salt);
  // Every request stands alone, whatever sequence it says it belongs to.
  fields.Ignore({"sequence_id", "sequence_start", "sequence_end", "triton_enable_empty_final_response"});
  fields.Expect("content_type", "str");
  fields.Expect("n", 1);
  fields.Expect("stream", false);
  fields.Expect("exclude_input_in_output", true);
  QUIRE_RETURN_IF_ERROR(fields.Finish());
  return result;
}

absl::Status CheckTensorParameters(const std::string& path, const ParameterMap& parameters) {
  const Json object = ToJson(parameters);
  JsonFields fields(object, path + ".");
  fields.Expect("content_type", "str");
  fields.Ignore({"binary_data", "binary_data_size"});  // of the protocol over HTTP
  return fields.Finish();
}

}  // namespace quire
