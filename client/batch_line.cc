#include "client/batch_line.h"

#include <string_view>
#include <type_traits>
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

// Applies one value to the request; false if the value is of another kind.
using Setter = bool (*)(const Json&, v1::GenerateRequest&);
using P = v1::SamplingParams;
using R = v1::GenerateRequest;

// Where a setter's field is: in the request itself or in its sampling parameters.
template <typename Message>
Message& Part(v1::GenerateRequest& request) {
  if constexpr (std::is_same_v<Message, P>) {
    return *request.mutable_sampling();
  } else {
    return request;
  }
}

template <typename Message, typename Number, void (Message::*kSet)(Number)>
bool SetNumber(const Json& value, v1::GenerateRequest& request) {
  if (!value.is_number()) return false;
  (Part<Message>(request).*kSet)(value.get<Number>());
  return true;
}

template <typename Message, typename Integer, void (Message::*kSet)(Integer)>
bool SetInteger(const Json& value, v1::GenerateRequest& request) {
  Integer integer = 0;
  if (!ReadInteger(value, integer)) return false;
  (Part<Message>(request).*kSet)(integer);
  return true;
}

template <typename Message, void (Message::*kSet)(bool)>
bool SetBool(const Json& value, v1::GenerateRequest& request) {
  if (!value.is_boolean()) return false;
  (Part<Message>(request).*kSet)(value.get<bool>());
  return true;
}

bool SetCacheSalt(const Json& value, v1::GenerateRequest& request) {
  if (!value.is_string()) return false;
  request.set_cache_salt(value.get<std::string>());
  return true;
}

bool SetStopStrings(const Json& value, v1::GenerateRequest& request) {
  P& sampling = *request.mutable_sampling();
  sampling.clear_stop_strings();
  for (const Json& stop : value.is_array() ? value : Json::array({value})) {
    if (!stop.is_string()) return false;
    sampling.add_stop_strings(stop.get<std::string>());
  }
  return true;
}

bool SetStopTokenIds(const Json& value, v1::GenerateRequest& request) {
  P& sampling = *request.mutable_sampling();
  sampling.clear_stop_token_ids();
  for (const Json& id : value.is_array() ? value : Json::array({value})) {
    int32_t token_id = 0;
    if (!ReadInteger(id, token_id)) return false;
    sampling.add_stop_token_ids(token_id);
  }
  return true;
}

struct OverrideKey {
  std::string_view name;
  std::string_view accepted;
  Setter set;
};

constexpr OverrideKey kOverrideKeys[] = {
    {"temperature", "a number", SetNumber<P, float, &P::set_temperature>},
    {"top_k", "an integer", SetInteger<P, int32_t, &P::set_top_k>},
    {"top_p", "a number", SetNumber<P, float, &P::set_top_p>},
    {"min_p", "a number", SetNumber<P, float, &P::set_min_p>},
    {"repetition_penalty", "a number", SetNumber<P, float, &P::set_repetition_penalty>},
    {"seed", "an integer in [0, 2^64)", SetInteger<P, uint64_t, &P::set_seed>},
    {"max_tokens", "an integer", SetInteger<P, int64_t, &P::set_max_tokens>},
    {"stop", "a string or a list of strings", SetStopStrings},
    {"stop_token_ids", "a list of token ids", SetStopTokenIds},
    {"ignore_eos", "true or false", SetBool<P, &P::set_ignore_eos>},
    {"logprobs", "an integer", SetInteger<P, int32_t, &P::set_logprobs>},
    {"prompt_logprobs", "an integer", SetInteger<P, int32_t, &P::set_prompt_logprobs>},
    {"include_special_tokens", "true or false", SetBool<P, &P::set_include_special_tokens>},
    {"timeout_seconds", "a number", SetNumber<R, double, &R::set_timeout_seconds>},
    {"priority", "an integer", SetInteger<R, int32_t, &R::set_priority>},
    {"cache_salt", "a string", SetCacheSalt},
    {"skip_reading_prefix_cache", "true or false", SetBool<R, &R::set_skip_reading_prefix_cache>},
};

grpc::Status SetOverride(const std::string& key, const Json& value, v1::GenerateRequest& request) {
  for (const OverrideKey& known : kOverrideKeys) {
    if (known.name == key) {
      return known.set(value, request) ? grpc::Status::OK : Invalid(key, value, known.accepted);
    }
  }
  std::string accepted = "one of the keys id, prompt, messages";
  for (const OverrideKey& known : kOverrideKeys) {
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
    if (grpc::Status status = SetOverride(key, value, request); !status.ok()) {
      return status;
    }
  }
  request.set_request_id(RequestId(line.id));
  return grpc::Status::OK;
}

}  // namespace quire
