#include "server/messages/request_translation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/text/utf8.h"

namespace quire {
namespace {

constexpr size_t kMaxRequestIdBytes = 256;
constexpr double kMaxTimeoutSeconds = 365.0 * 24 * 3600;

std::vector<ChatMessage> ToChatMessages(const v1::ChatMessages& chat) {
  std::vector<ChatMessage> messages;
  messages.reserve(static_cast<size_t>(chat.messages_size()));
  for (const v1::ChatMessage& message : chat.messages()) messages.push_back({message.role(), message.content()});
  return messages;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

absl::StatusOr<Prompt> ToPrompt(const v1::GenerateRequest& request) {
  switch (request.input_case()) {
    case v1::GenerateRequest::kText: return TextPrompt{.text = request.text()};
    case v1::GenerateRequest::kTokenIds:
      return std::vector<TokenId>(request.token_ids().ids().begin(), request.token_ids().ids().end());
    case v1::GenerateRequest::kChat: return ToChatMessages(request.chat());
    case v1::GenerateRequest::INPUT_NOT_SET: break;
  }
  return InvalidArgument("input", "nothing", "exactly one of text, token_ids and chat");
}

absl::StatusOr<Prompt> ToPrompt(const v1::TokenizeRequest& request) {
  switch (request.input_case()) {
    case v1::TokenizeRequest::kText:
      return TextPrompt{.text = request.text(), .parse_special = request.parse_special()};
    case v1::TokenizeRequest::kChat: return ToChatMessages(request.chat());
    case v1::TokenizeRequest::INPUT_NOT_SET: break;
  }
  return InvalidArgument("input", "nothing", "exactly one of text and chat");
}

SamplingParams ToSamplingParams(const v1::SamplingParams& params) {
  SamplingParams result;
  if (params.has_temperature()) result.temperature = params.temperature();
  if (params.has_top_k()) result.top_k = params.top_k();
  if (params.has_top_p()) result.top_p = params.top_p();
  if (params.has_min_p()) result.min_p = params.min_p();
  if (params.has_repetition_penalty()) result.repetition_penalty = params.repetition_penalty();
  if (params.has_seed()) result.seed = params.seed();
  if (params.has_max_tokens()) result.max_tokens = params.max_tokens();
  result.stop_strings.assign(params.stop_strings().begin(), params.stop_strings().end());
  result.stop_token_ids.assign(params.stop_token_ids().begin(), params.stop_token_ids().end());
  if (params.has_ignore_eos()) result.ignore_eos = params.ignore_eos();
  if (params.has_logprobs()) result.num_logprobs = params.logprobs();
  if (params.has_prompt_logprobs()) result.num_prompt_logprobs = params.prompt_logprobs();
  return result;
}

absl::StatusOr<std::optional<TimePoint>> ToDeadline(std::optional<double> timeout_seconds, TimePoint arrival,
                                                    std::optional<TimePoint> call_deadline) {
  if (!timeout_seconds) return call_deadline;
  const double seconds = *timeout_seconds;
  // Written so that NaN fails it.
  if (!(seconds > 0 && seconds <= kMaxTimeoutSeconds)) {
    return InvalidArgument("timeout_seconds", seconds, "a number in (0, 31536000]");
  }
  const TimePoint timeout = arrival + ToDuration(seconds);
  return call_deadline ? std::min(*call_deadline, timeout) : timeout;
}

absl::Status CheckRequestId(std::string_view request_id) {
  if (request_id.size() > kMaxRequestIdBytes) {
    return InvalidArgument("request_id", StrCat(request_id.size(), " bytes"),
                           StrCat("at most ", kMaxRequestIdBytes, " bytes"));
  }
  if (std::any_of(request_id.begin(), request_id.end(), IsControl)) {
    return InvalidArgument("request_id", "a control character", "none: it stands in log lines");
  }
  // A header of HTTP may hold any bytes; messages with the id in them could not be read.
  if (Utf8ValidPrefix(request_id) != request_id.size()) {
    return InvalidArgument("request_id", "bytes that are not UTF-8", "valid UTF-8");
  }
  return absl::OkStatus();
}

absl::Status CheckModelName(std::string_view asked, std::string_view served_model_name) {
  if (asked.empty() || asked == served_model_name) return absl::OkStatus();
  return absl::NotFoundError(
      StrCat("model: got \"", std::string(asked), "\", expected \"", std::string(served_model_name), "\" or nothing"));
}

}  // namespace quire
