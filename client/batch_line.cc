#include "client/batch_line.h"

#include <string_view>
#include <utility>

namespace quire {
namespace {

constexpr size_t kMaxRequestIdBytes = 256;

grpc::Status Invalid(std::string_view key, const Json& value, std::string_view accepted) {
  constexpr size_t kMaxShownBytes = 100;
  std::string shown = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (shown.size() > kMaxShownBytes) {
    shown = shown.substr(0, kMaxShownBytes) + "...";
  }
  std::string message(key);
  message += ": got " + shown + ", expected ";
  message += accepted;
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, message);
}

template <typename Integer>
bool ReadInteger(const Json& value, Integer& result) {
  const bool fits = value.is_number_unsigned()
                        ? std::in_range<Integer>(value.get<uint64_t>())
                        : value.is_number_integer() && std::in_range<Integer>(value.get<int64_t>());
  if (fits) {
    result = value.get<Integer>();
  }
  return fits;
}

// Applies one value to the parameters; false if the value is of another kind.
using Setter = bool (*)(const Json&, v1::SamplingParams&);

template <void (v1::SamplingParams::*kSet)(float)>
bool SetFloat(const Json& value, v1::SamplingParams& sampling) {
  if (!value.is_number()) return false;
  (sampling.*kSet)(value.get<float>());
  return true;
}

template <typename Integer, void (v1::SamplingParams::*kSet)(Integer)>
bool SetInteger(const Json& value, v1::SamplingParams& sampling) {
  Integer integer = 0;
  if (!ReadInteger(value, integer)) return false;
  (sampling.*kSet)(integer);
  return true;
}

template <void (v1::SamplingParams::*kSet)(bool)>
bool SetBool(const Json& value, v1::SamplingParams& sampling) {
  if (!value.is_boolean()) return false;
  (sampling.*kSet)(value.get<bool>());
  return true;
}

bool SetStopStrings(const Json& value, v1::SamplingParams& sampling) {
  sampling.clear_stop_strings();
  for (const Json& stop : value.is_array() ? value : Json::array({value})) {
    if (!stop.is_string()) return false;
    sampling.add_stop_strings(stop.get<std::string>());
  }
  return true;
}

bool SetStopTokenIds(const Json& value, v1::SamplingParams& sampling) {
  sampling.clear_stop_token_ids();
  for (const Json& id : value.is_array() ? value : Json::array({value})) {
    int32_t token_id = 0;
    if (!ReadInteger(id, token_id)) return false;
    sampling.add_stop_token_ids(token_id);
  }
  return true;
}

struct SamplingKey {
  std::string_view name;
  std::string_view accepted;
  Setter set;
};

using P = v1::SamplingParams;
constexpr SamplingKey kSamplingKeys[] = {
    {"temperature", "a number", SetFloat<&P::set_temperature>},
    {"top_k", "an integer", SetInteger<int32_t, &P::set_top_k>},
    {"top_p", "a number", SetFloat<&P::set_top_p>},
    {"min_p", "a number", SetFloat<&P::set_min_p>},
    {"repetition_penalty", "a number", SetFloat<&P::set_repetition_penalty>},
    {"seed", "an integer in [0, 2^64)", SetInteger<uint64_t, &P::set_seed>},
    {"max_tokens", "an integer", SetInteger<int64_t, &P::set_max_tokens>},
    {"stop", "a string or a list of strings", SetStopStrings},
    {"stop_token_ids", "a list of token ids", SetStopTokenIds},
    {"ignore_eos", "true or false", SetBool<&P::set_ignore_eos>},
    {"logprobs", "an integer", SetInteger<int32_t, &P::set_logprobs>},
    {"prompt_logprobs", "an integer", SetInteger<int32_t, &P::set_prompt_logprobs>},
    {"include_special_tokens", "true or false", SetBool<&P::set_include_special_tokens>},
};

grpc::Status SetSampling(const std::string& key, const Json& value, v1::SamplingParams& sampling) {
  for (const SamplingKey& known : kSamplingKeys) {
    if (known.name == key) {
      return known.set(value, sampling) ? grpc::Status::OK : Invalid(key, value, known.accepted);
    }
  }
  std::string accepted = "one of the keys id, prompt, messages";
  for (const SamplingKey& known : kSamplingKeys) {
    accepted += ", ";
    accepted += known.name;
  }
  return Invalid("key", key, accepted);
}

grpc::Status AddMessages(const Json& messages, v1::GenerateRequest& request) {
  constexpr std::string_view kAccepted = "a list of {\"role\": string, \"content\": string}, at least one";
  if (!messages.is_array() || messages.empty()) {
    return Invalid("messages", messages, kAccepted);
  }
  for (const Json& message : messages) {
    const bool is_message = message.is_object() && message.size() == 2 && message.contains("role") &&
                            message.contains("content") && message["role"].is_string() &&
                            message["content"].is_string();
    if (!is_message) {
      return Invalid("messages", message, kAccepted);
    }
    AddChatMessage(request, message["role"].get<std::string>(), message["content"].get<std::string>());
  }
  return grpc::Status::OK;
}

bool IsId(const Json& id) { return id.is_string() || id.is_number_integer(); }

// A label for the server's log: what fits.
std::string RequestId(const Json& id) {
  const std::string label = id.is_string() ? id.get<std::string>() : id.dump();
  return label.size() <= kMaxRequestIdBytes ? label : "";
}

grpc::Status SetInput(const Json& object, const RequestFlags& flags, v1::GenerateRequest& request) {
  if (object.contains("prompt") == object.contains("messages")) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "line: expected exactly one of prompt and messages");
  }
  if (object.contains("messages")) {
    request = flags.BaseRequest();
    return AddMessages(object["messages"], request);
  }
  if (!object["prompt"].is_string()) {
    return Invalid("prompt", object["prompt"], "a string");
  }
  request = flags.RequestFor(object["prompt"].get<std::string>());
  return grpc::Status::OK;
}

}  // namespace

BatchLine MakeBatchLine(int64_t number, std::string text) {
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Json id = "line-" + std::to_string(number);
  if (object.is_object() && object.contains("id") && IsId(object["id"])) {
    id = object["id"];
  }
  return {number, std::move(text), std::move(id)};
}

grpc::Status ParseBatchRequest(const BatchLine& line, const RequestFlags& flags, v1::GenerateRequest& request) {
  const Json object = Json::parse(line.text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                        "line " + std::to_string(line.number) + ": expected a JSON object");
  }
  if (grpc::Status status = SetInput(object, flags, request); !status.ok()) {
    return status;
  }
  for (const auto& [key, value] : object.items()) {
    if (key == "id" && !IsId(value)) {
      return Invalid("id", value, "a string or an integer");
    }
    if (key == "id" || key == "prompt" || key == "messages") {
      continue;
    }
    if (grpc::Status status = SetSampling(key, value, *request.mutable_sampling()); !status.ok()) {
      return status;
    }
  }
  request.set_request_id(RequestId(line.id));
  return grpc::Status::OK;
}

}  // namespace quire
