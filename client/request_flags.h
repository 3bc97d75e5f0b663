#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quire/v1/generation.pb.h"

namespace quire {

// The flags that shape a generation request: sampling, model, chat, scheduling. Ranges are the server's to check: its
// answer names the field, the value and what it accepts. Declared on an App, and must outlive its parsing.
class RequestFlags {
 public:
  // `for_chat`: the command always sends a conversation, so --chat is not offered.
  RequestFlags(CLI::App& app, bool for_chat);
  RequestFlags(const RequestFlags&) = delete;
  RequestFlags& operator=(const RequestFlags&) = delete;

  // All but the input.
  v1::GenerateRequest BaseRequest() const;

  // BaseRequest with `prompt` as its input: plain text, or a conversation with --chat or --system.
  v1::GenerateRequest RequestFor(const std::string& prompt) const;

  // The system prompt, if --system is set.
  const std::optional<std::string>& system() const { return system_; }

 private:
  std::string model_;
  bool chat_ = false;
  std::optional<std::string> system_;
  std::optional<float> temperature_;
  std::optional<int32_t> top_k_;
  std::optional<float> top_p_;
  std::optional<float> min_p_;
  std::optional<float> repetition_penalty_;
  std::optional<uint64_t> seed_;
  std::optional<int64_t> max_tokens_;
  std::vector<std::string> stop_;
  std::vector<int32_t> stop_token_ids_;
  bool ignore_eos_ = false;
  bool special_tokens_ = false;
  int32_t priority_ = 0;
  std::string cache_salt_;
  bool skip_prefix_cache_ = false;
  std::optional<int32_t> logprobs_;
  std::optional<int32_t> prompt_logprobs_;
};

// Appends one message to the conversation that `request` continues.
void AddChatMessage(v1::GenerateRequest& request, const std::string& role, const std::string& content);

}  // namespace quire
