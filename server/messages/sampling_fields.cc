#include "server/messages/sampling_fields.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace quire {

void ReadSampling(JsonFields& fields, SamplingParams* sampling, bool* include_special_tokens) {
  fields.Read("temperature", &sampling->temperature);
  fields.Read("top_p", &sampling->top_p);
  fields.Read("top_k", -1, std::numeric_limits<int32_t>::max(), &sampling->top_k);
  sampling->top_k = std::max(sampling->top_k, 0);  // -1 keeps all, too
  fields.Read("min_p", &sampling->min_p);
  fields.Read("repetition_penalty", &sampling->repetition_penalty);
  std::optional<int64_t> seed;
  fields.Read("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), &seed);
  if (seed) sampling->seed = static_cast<uint64_t>(*seed);
  fields.Read("stop", &sampling->stop_strings);
  if (const nlohmann::json* ids = fields.Find("stop_token_ids")) {
    auto parsed = ReadTokenIds("stop_token_ids", *ids);
    if (parsed.ok()) sampling->stop_token_ids = *std::move(parsed);
    fields.Fail(parsed.status());
  }
  fields.Read("ignore_eos", &sampling->ignore_eos);
  bool skip_special_tokens = true;
  fields.Read("skip_special_tokens", &skip_special_tokens);
  *include_special_tokens = !skip_special_tokens;
  // What OpenAI's API knows of sampling and this server does not.
  fields.Expect("frequency_penalty", 0);
  fields.Expect("presence_penalty", 0);
  fields.Expect("logit_bias", nlohmann::json::object());
}

}  // namespace quire
