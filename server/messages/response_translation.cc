#include "server/messages/response_translation.h"

#include <array>
#include <utility>

#include "engine/base/version.h"

namespace quire {
namespace {

v1::TokenLogprob ToProto(const TokenLogprob& logprob, const Tokenizer& tokenizer) {
  v1::TokenLogprob result;
  result.set_token_id(logprob.token_id);
  result.set_text(TokenText(tokenizer, logprob.token_id));
  result.set_logprob(logprob.logprob);
  return result;
}

}  // namespace

std::string TokenText(const Tokenizer& tokenizer, TokenId id) {
  const std::array<TokenId, 1> ids = {id};
  // Ids come from the tokenizer or the engine; a model may have more logits than its tokenizer has tokens.
  return tokenizer.Decode(ids, /*with_special=*/true).value_or("");
}

v1::FinishReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopToken: return v1::FINISH_REASON_STOP_TOKEN;
    case FinishReason::kStopString: return v1::FINISH_REASON_STOP_STRING;
    case FinishReason::kLength: return v1::FINISH_REASON_LENGTH;
    case FinishReason::kUnspecified: break;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

v1::Usage UsageOf(const GenerationResult& result) {
  v1::Usage usage;
  usage.set_prompt_tokens(result.num_prompt_tokens);
  usage.set_completion_tokens(result.num_output_tokens);
  usage.set_cached_prompt_tokens(result.num_cached_prompt_tokens);
  return usage;
}

v1::Timings TimingsOf(const GenerationResult& result) {
  v1::Timings timings;
  timings.set_queue_seconds(result.timings.queue_seconds);
  timings.set_time_to_first_token_seconds(result.timings.time_to_first_token_seconds);
  timings.set_total_seconds(result.timings.total_seconds);
  return timings;
}

v1::PositionLogprobs ToProto(const PositionLogprobs& logprobs, const Tokenizer& tokenizer) {
  v1::PositionLogprobs result;
  *result.mutable_chosen() = ToProto(logprobs.chosen, tokenizer);
  for (const TokenLogprob& top : logprobs.top) *result.add_top() = ToProto(top, tokenizer);
  return result;
}

void AppendTo(const GenerationChunk& from, const Tokenizer& tokenizer, v1::StreamChunk* chunk) {
  chunk->mutable_text()->append(from.text);
  for (const OutputToken& token : from.tokens) {
    chunk->add_token_ids(token.token_id);
    if (token.logprobs) *chunk->add_logprobs() = ToProto(*token.logprobs, tokenizer);
  }
  for (const PositionLogprobs& logprobs : from.prompt_logprobs) {
    *chunk->add_prompt_logprobs() = ToProto(logprobs, tokenizer);
  }
}

// MergeFrom appends lists but replaces the text.
void Join(const v1::StreamChunk& next, v1::StreamChunk* chunk) {
  std::string text = std::move(*chunk->mutable_text()) + next.text();
  chunk->MergeFrom(next);
  chunk->set_text(std::move(text));
}

v1::ModelInfo ToProto(const EngineInfo& info, const std::string& name, const Tokenizer& tokenizer,
                      bool has_chat_template) {
  v1::ModelInfo result;
  result.set_name(name);
  result.set_architecture(info.architecture);
  result.set_num_parameters(info.num_parameters);
  result.set_num_layers(info.num_layers);
  result.set_hidden_size(info.hidden_size);
  result.set_intermediate_size(info.intermediate_size);
  result.set_num_heads(info.num_heads);
  result.set_num_kv_heads(info.num_kv_heads);
  result.set_head_dim(info.head_dim);
  result.set_vocab_size(info.vocab_size);
  result.set_context_length(info.context_length);
  result.set_max_model_len(info.max_model_len);
  result.set_weight_type(info.weight_type);
  result.set_compute_type(info.compute_type);
  result.set_compute_type_reason(info.compute_type_reason);
  result.set_kv_cache_type(info.kv_cache_dtype);
  result.set_has_chat_template(has_chat_template);
  for (const TokenId id : tokenizer.end_of_generation_ids()) result.add_end_of_generation_ids(id);
  result.set_num_threads(static_cast<int32_t>(info.num_threads));
  result.set_server_version(kVersion);
  return result;
}

}  // namespace quire
