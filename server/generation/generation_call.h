#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/clock.h"
#include "engine/base/generation_types.h"
#include "engine/base/token_sink.h"
#include "engine/runtime/engine_loop.h"
#include "engine/text/incremental_detokenizer.h"
#include "engine/text/tokenizer.h"
#include "server/generation/prompt_encoder.h"
#include "server/generation/text_executor.h"
#include "server/metrics/request_metrics.h"
#include "server/security/rate_limiter.h"

namespace quire {

// A translated and checked request of any protocol.
struct GenerationInput {
  std::string request_id;
  std::string trace_id;  // of the caller's trace, for the log; empty: none
  std::string tenant;
  int32_t priority = 0;
  std::string cache_salt;
  bool skip_reading_prefix_cache = false;
  Prompt prompt;
  SamplingParams sampling;
  bool include_special_tokens = false;
  std::optional<TimePoint> deadline;
  TimePoint arrival_time;
};

struct GenerationChunk {
  std::string text;
  std::vector<OutputToken> tokens;
  std::vector<PositionLogprobs> prompt_logprobs;
};

// Where a call's events go: called in order, one at a time, on the text executor's strand. Must return soon, and
// never wait for a reader.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // First, unless the request was refused or ended before the engine took it.
  virtual void OnStarted(int64_t num_prompt_tokens) = 0;
  // An error ends the call with it: the listener can take no more, and gets no further chunk.
  virtual absl::Status OnChunk(GenerationChunk chunk) = 0;
  // Last, exactly once. `result.status` is OK exactly when there is a finish reason.
  virtual void OnFinished(const GenerationResult& result) = 0;
};

// What all calls share; the parts must outlive every call.
struct GenerationPipeline {
  EngineLoop* engine = nullptr;
  TextExecutor* text_executor = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const PromptEncoder* prompt_encoder = nullptr;
  const Clock* clock = nullptr;
  const RequestMetrics* metrics = nullptr;
  RateLimiter* rate_limiter = nullptr;
  bool log_prompts = false;
};

// One generation request's whole way, whatever protocol it came by: encode on the text executor, submit to the
// engine, detokenize what comes back, find stop strings, finish. It keeps itself alive until OnFinished has run.
// All state but `cancelled_` belongs to the strand.
class GenerationCall : public TokenSink, public std::enable_shared_from_this<GenerationCall> {
 public:
  static std::shared_ptr<GenerationCall> Start(const GenerationPipeline& pipeline, GenerationInput input,
                                               std::shared_ptr<GenerationListener> listener);

  // Ends the call at whatever stage it is, with DEADLINE_EXCEEDED if its deadline has passed and CANCELLED otherwise.
  // From any thread, any number of times; no-op after the end.
  void Cancel();

  // TokenSink; from the engine's thread.
  void OnPromptLogprobs(std::vector<PositionLogprobs> logprobs) override;
  void OnTokens(std::vector<OutputToken> tokens) override;
  void OnFinish(const GenerationResult& result) override;

 private:
  GenerationCall(const GenerationPipeline& pipeline, GenerationInput input,
                 std::shared_ptr<GenerationListener> listener);

  // On an encoding thread.
  void EncodePrompt();

  // On the strand.
  void Submit(std::vector<TokenId> prompt_token_ids);
  void TakeTokens(std::vector<OutputToken> tokens);
  void ObserveTokens();
  void Deliver(GenerationChunk chunk);
  std::string TextOf(TokenId id);
  void TakeResult(GenerationResult result);
  void TakeCancel();
  void EndBeforeEngine(absl::Status status);
  void End(const GenerationResult& result);

  bool IsStopToken(TokenId id) const;
  absl::Status StatusOfCancel() const;
  void LogPrompt(const std::vector<TokenId>& ids) const;
  void LogEnd(const GenerationResult& result) const;

  const GenerationPipeline pipeline_;
  const std::shared_ptr<TextStrand> strand_;
  GenerationInput input_;
  std::shared_ptr<GenerationListener> listener_;  // null after OnFinished
  absl::Status refusal_;                          // by the listener
  IncrementalDetokenizer detokenizer_;
  std::optional<RequestId> engine_id_;
  int64_t num_prompt_tokens_ = 0;
  int64_t num_output_tokens_ = 0;
  std::optional<TimePoint> last_tokens_time_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace quire
