#pragma once

#include <string>
#include <vector>

#include "engine/base/generation_types.h"
#include "engine/base/token_sink.h"
#include "engine/runtime/engine_builder.h"
#include "engine/text/tokenizer.h"
#include "quire/v1/generation.pb.h"
#include "server/generation/generation_call.h"

namespace quire {

// From the engine's types to the API's messages. Pure.

// The text of one token, as it is shown beside its id.
std::string TokenText(const Tokenizer& tokenizer, TokenId id);

v1::FinishReason ToProto(FinishReason reason);
v1::Usage UsageOf(const GenerationResult& result);
v1::Timings TimingsOf(const GenerationResult& result);
v1::PositionLogprobs ToProto(const PositionLogprobs& logprobs, const Tokenizer& tokenizer);

// Adds the chunk's text, tokens and log-probabilities to what `chunk` holds already.
void AppendTo(const GenerationChunk& from, const Tokenizer& tokenizer, v1::StreamChunk* chunk);

// The same with what a later chunk of the answer holds.
void Join(const v1::StreamChunk& next, v1::StreamChunk* chunk);

v1::ModelInfo ToProto(const EngineInfo& info, const std::string& name, const Tokenizer& tokenizer,
                      bool has_chat_template);

}  // namespace quire
