#pragma once

#include "engine/base/generation_types.h"
#include "server/messages/json_fields.h"

namespace quire {

// The sampling parameters that every protocol with parameters of names and values has by the same names: OpenAI's, and
// those that vLLM's server adds. How many tokens are made is each protocol's own. Ranges that the engine checks are
// left to it.
void ReadSampling(JsonFields& fields, SamplingParams* sampling, bool* include_special_tokens);

}  // namespace quire
