#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/generation_types.h"
#include "server/generation/prompt_encoder.h"

namespace quire {

// A request for completions, as OpenAI's API has it: https://platform.openai.com/docs/api-reference, with the sampling
// parameters that vLLM's server adds.
struct OpenAiRequest {
  std::string model;
  std::vector<Prompt> prompts;     // each gets choices_per_prompt answers
  int64_t choices_per_prompt = 1;  // "n"
  SamplingParams sampling;
  bool include_special_tokens = false;
  bool stream = false;
  bool include_usage = false;  // at the end of a stream
  std::optional<double> timeout_seconds;
  int32_t priority = 0;
  std::string cache_salt;

  int64_t num_choices() const { return static_cast<int64_t>(prompts.size()) * choices_per_prompt; }
};

// All choices of a request together.
inline constexpr int64_t kMaxChoices = 128;

// From the bodies of POST /v1/chat/completions and POST /v1/completions. Pure. INVALID_ARGUMENT names the parameter:
// one of the wrong type, one with a value that is not supported, or one that is not known; those that can't change the
// answer are ignored. Ranges that the engine checks are left to it.
absl::StatusOr<OpenAiRequest> ParseChatRequest(const nlohmann::json& body);
absl::StatusOr<OpenAiRequest> ParseCompletionRequest(const nlohmann::json& body);

// "messages": an array of {role, content}.
absl::StatusOr<std::vector<ChatMessage>> ParseMessages(const nlohmann::json& messages);

}  // namespace quire
