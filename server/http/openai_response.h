#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/token_sink.h"
#include "engine/text/tokenizer.h"
#include "quire/v1/generation.pb.h"

namespace quire {

enum class OpenAiKind { kChat, kCompletion };

// One choice, whole.
struct OpenAiChoice {
  v1::StreamChunk output;
  GenerationResult result;
};

// The objects of one answer of OpenAI's API, whole or as pieces of a stream: chat.completion, chat.completion.chunk and
// text_completion of https://platform.openai.com/docs/api-reference. Pure.
class OpenAiResponse {
 public:
  // `tokenizer` must outlive it. `created_seconds` is Unix time. `with_logprobs`: they were asked for.
  OpenAiResponse(OpenAiKind kind, std::string id, std::string model, int64_t created_seconds, bool with_logprobs,
                 const Tokenizer* tokenizer);

  // `choices_per_prompt` of the choices share each prompt, whose tokens count once.
  nlohmann::json Whole(const std::vector<OpenAiChoice>& choices, int64_t choices_per_prompt) const;

  // The first piece of a choice of a chat: whose words follow.
  nlohmann::json BeginPiece(size_t choice) const;
  // `text_offset`: bytes of the choice's text before `chunk`.
  nlohmann::json Piece(size_t choice, const v1::StreamChunk& chunk, int64_t text_offset) const;
  nlohmann::json EndPiece(size_t choice, FinishReason reason) const;
  // The last piece, without choices.
  nlohmann::json UsagePiece(const std::vector<OpenAiChoice>& choices, int64_t choices_per_prompt) const;

 private:
  nlohmann::json Frame(bool is_piece, nlohmann::json choices) const;
  nlohmann::json Logprobs(const v1::StreamChunk& chunk, int64_t text_offset) const;
  nlohmann::json ChatLogprobs(const v1::StreamChunk& chunk) const;
  nlohmann::json ChatLogprob(const v1::TokenLogprob& token) const;

  const OpenAiKind kind_;
  const std::string id_;
  const std::string model_;
  const int64_t created_seconds_;
  const bool with_logprobs_;
  const Tokenizer* const tokenizer_;
};

}  // namespace quire
