#include "server/http/openai_response.h"

#include <algorithm>
#include <utility>

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr float kLeastLogprob = -9999;  // JSON has no infinity; this is what OpenAI's API says for it

const char* ToOpenAi(FinishReason reason) { return reason == FinishReason::kLength ? "length" : "stop"; }

float Finite(float logprob) { return std::max(logprob, kLeastLogprob); }

// As completions have them: lists with an element for each token.
Json CompletionLogprobs(const v1::StreamChunk& chunk, int64_t text_offset) {
  Json tokens = Json::array(), token_logprobs = Json::array(), top_logprobs = Json::array(), offsets = Json::array();
  for (const v1::PositionLogprobs& position : chunk.logprobs()) {
    const v1::TokenLogprob& chosen = position.chosen();
    tokens.push_back(chosen.text());
    token_logprobs.push_back(Finite(chosen.logprob()));
    Json top = Json::object();
    for (const v1::TokenLogprob& token : position.top()) top[token.text()] = Finite(token.logprob());
    top[chosen.text()] = Finite(chosen.logprob());
    top_logprobs.push_back(std::move(top));
    offsets.push_back(text_offset);
    text_offset += static_cast<int64_t>(chosen.text().size());
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(token_logprobs)},
          {"top_logprobs", std::move(top_logprobs)},
          {"text_offset", std::move(offsets)}};
}

Json UsageOf(const std::vector<OpenAiChoice>& choices, int64_t choices_per_prompt) {
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    const GenerationResult& result = choices[i].result;
    completion_tokens += result.num_output_tokens;
    if (i % static_cast<size_t>(choices_per_prompt) != 0) continue;
    prompt_tokens += result.num_prompt_tokens;
    cached_tokens += result.num_cached_prompt_tokens;
  }
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", prompt_tokens + completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", cached_tokens}}}};
}

}  // namespace

OpenAiResponse::OpenAiResponse(OpenAiKind kind, std::string id, std::string model, int64_t created_seconds,
                               bool with_logprobs, const Tokenizer* tokenizer)
    : kind_(kind),
      id_(std::move(id)),
      model_(std::move(model)),
      created_seconds_(created_seconds),
      with_logprobs_(with_logprobs),
      tokenizer_(tokenizer) {}

Json OpenAiResponse::Whole(const std::vector<OpenAiChoice>& choices, int64_t choices_per_prompt) const {
  Json list = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    const OpenAiChoice& choice = choices[i];
    Json object = {{"index", i},
                   {"finish_reason", ToOpenAi(choice.result.finish_reason)},
                   {"logprobs", Logprobs(choice.output, 0)}};
    if (kind_ == OpenAiKind::kChat) {
      object["message"] = {{"role", "assistant"}, {"content", choice.output.text()}, {"refusal", nullptr}};
    } else {
      object["text"] = choice.output.text();
    }
    list.push_back(std::move(object));
  }
  Json whole = Frame(/*is_piece=*/false, std::move(list));
  whole["usage"] = UsageOf(choices, choices_per_prompt);
  return whole;
}

Json OpenAiResponse::BeginPiece(size_t choice) const {
  Json object = {{"index", choice}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  object["delta"] = {{"role", "assistant"}, {"content", ""}};
  return Frame(true, Json::array({std::move(object)}));
}

Json OpenAiResponse::Piece(size_t choice, const v1::StreamChunk& chunk, int64_t text_offset) const {
  Json object = {{"index", choice}, {"logprobs", Logprobs(chunk, text_offset)}, {"finish_reason", nullptr}};
  if (kind_ == OpenAiKind::kChat) {
    object["delta"] = {{"content", chunk.text()}};
  } else {
    object["text"] = chunk.text();
  }
  return Frame(true, Json::array({std::move(object)}));
}

Json OpenAiResponse::EndPiece(size_t choice, FinishReason reason) const {
  Json object = {{"index", choice}, {"logprobs", nullptr}, {"finish_reason", ToOpenAi(reason)}};
  if (kind_ == OpenAiKind::kChat) {
    object["delta"] = Json::object();
  } else {
    object["text"] = "";
  }
  return Frame(true, Json::array({std::move(object)}));
}

Json OpenAiResponse::UsagePiece(const std::vector<OpenAiChoice>& choices, int64_t choices_per_prompt) const {
  Json piece = Frame(true, Json::array());
  piece["usage"] = UsageOf(choices, choices_per_prompt);
  return piece;
}

Json OpenAiResponse::Frame(bool is_piece, Json choices) const {
  const char* chat_object = is_piece ? "chat.completion.chunk" : "chat.completion";
  return {{"id", id_},
          {"object", kind_ == OpenAiKind::kChat ? chat_object : "text_completion"},
          {"created", created_seconds_},
          {"model", model_},
          {"choices", std::move(choices)}};
}

Json OpenAiResponse::Logprobs(const v1::StreamChunk& chunk, int64_t text_offset) const {
  if (!with_logprobs_) return nullptr;
  return kind_ == OpenAiKind::kChat ? ChatLogprobs(chunk) : CompletionLogprobs(chunk, text_offset);
}

Json OpenAiResponse::ChatLogprobs(const v1::StreamChunk& chunk) const {
  Json content = Json::array();
  for (const v1::PositionLogprobs& position : chunk.logprobs()) {
    Json entry = ChatLogprob(position.chosen());
    entry["top_logprobs"] = Json::array();
    for (const v1::TokenLogprob& token : position.top()) entry["top_logprobs"].push_back(ChatLogprob(token));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json OpenAiResponse::ChatLogprob(const v1::TokenLogprob& token) const {
  Json bytes = Json::array();
  // A model may have more logits than its tokenizer has tokens.
  if (token.token_id() < tokenizer_->vocab_size()) {
    for (const char byte : tokenizer_->TokenBytes(token.token_id())) bytes.push_back(static_cast<unsigned char>(byte));
  }
  return {{"token", token.text()}, {"logprob", Finite(token.logprob())}, {"bytes", std::move(bytes)}};
}

}  // namespace quire
