// Bodies of OpenAI's API.
#include <string>
#include <vector>

#include "engine/sampling/sampling_params.h"
#include "server/http/http_error.h"
#include "server/http/json_text.h"
#include "server/http/openai_request.h"
#include "server/messages/json_fields.h"
#include "server/messages/request_translation.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/tiny_text_layer.h"

namespace quire::testing {
namespace {

constexpr int64_t kMaxValues = 12000;
constexpr std::string_view kStages[] = {"JSON", "parsed", "encoded"};
constexpr std::string_view kWords[] = {"true",
                                       "false",
                                       "null",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       ",",
                                       ":",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       "\"role\":",
                                       "\"user\"",
                                       "\"system\"",
                                       "\"developer\"",
                                       "\"content\":",
                                       "\"type\":\"text\",",
                                       "\"text\":",
                                       "\"messages\":",
                                       "\"prompt\":",
                                       "\"n\":",
                                       "\"stop\":",
                                       "\"logprobs\":",
                                       "\"top_logprobs\":",
                                       "\"stream\":true,",
                                       "\"stream_options\":",
                                       "\"seed\":",
                                       "\"tools\":",
                                       "\"stop_token_ids\":",
                                       "\\u0000",
                                       "\\ud800",
                                       "\\uffff",
                                       "<|im_end|>",
                                       "<|im_start|>"};

class OpenAiBodies final : public FuzzTarget {
 public:
  size_t Run(std::string_view input) override {
    const absl::StatusOr<nlohmann::json> body = ParseJsonObject(input, kMaxValues);
    if (!body.ok()) return Refused(body.status(), 0);
    if (body->contains("tokens")) Refused(ReadTokenIds("tokens", (*body)["tokens"]).status(), 0);
    return std::max(Try(ParseChatRequest(*body)), Try(ParseCompletionRequest(*body)));
  }

 private:
  size_t Try(const absl::StatusOr<OpenAiRequest>& request) {
    if (!request.ok()) return Refused(request.status(), 1);
    const auto deadline = ToDeadline(request->timeout_seconds, TimePoint(), std::nullopt);
    if (!deadline.ok()) return Refused(deadline.status(), 2);
    const absl::Status sampling = ValidateSamplingParams(request->sampling, model_.tokenizer().vocab_size());
    if (!sampling.ok()) return Refused(sampling, 2);
    for (const Prompt& prompt : request->prompts) {
      if (!model_.Takes(prompt)) return 2;
    }
    return 3;
  }

  // The answer is made too.
  static size_t Refused(const absl::Status& status, size_t stage) {
    ToText(ErrorObject(status));
    return stage;
  }

  TinyTextLayer model_;
};

}  // namespace

FuzzTargetKind OpenAiTarget() {
  return {"openai", kStages, kWords, [] { return std::make_unique<OpenAiBodies>(); }};
}

}  // namespace quire::testing
