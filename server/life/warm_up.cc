#include "server/life/warm_up.h"

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/status.h"

namespace quire {
namespace {

constexpr size_t kNumPromptTokens = 8;
constexpr int64_t kNumOutputTokens = 2;  // a step of a prompt, and one of decoding

class EndSink : public TokenSink {
 public:
  void OnPromptLogprobs(std::vector<PositionLogprobs>) override {}
  void OnTokens(std::vector<OutputToken>) override {}
  void OnFinish(const GenerationResult& result) override { end_.set_value(result.status); }

  absl::Status WaitForEnd() { return end_.get_future().get(); }

 private:
  std::promise<absl::Status> end_;
};

}  // namespace

absl::Status WarmUp(EngineLoop* engine) {
  const auto sink = std::make_shared<EndSink>();
  GenerationRequest request;
  request.label = "warm-up";
  request.prompt_token_ids.assign(kNumPromptTokens, 0);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = kNumOutputTokens;
  request.sampling.ignore_eos = true;
  request.sink = sink;
  QUIRE_RETURN_IF_ERROR(engine->Submit(std::move(request)).status());
  return sink->WaitForEnd();
}

}  // namespace quire
