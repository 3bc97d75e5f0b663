#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/step_cost.h"
#include "bench/step_work.h"
#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/decoder.h"
#include "engine/model/step_profile.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/engine_builder.h"

namespace quire {

// What a step did, and what it took.
struct StepRecord {
  StepWork work;
  int64_t num_seqs = 0;
  int64_t num_prefill_tokens = 0;
  double seconds = 0;           // all of it: planning, model, sampling, delivery
  double sampling_seconds = 0;  // of it
};

// An engine that is stepped by hand, on the calling thread, so that every step is seen: what it computes and how long
// it takes. Everything but the engine's thread is as in a server.
class BenchEngine {
 public:
  // Errors as PlanEngine's and LoadDecoder's.
  static absl::StatusOr<std::unique_ptr<BenchEngine>> Build(const Checkpoint& checkpoint, const EngineConfig& config);

  ~BenchEngine();

  const EngineInfo& info() const { return info_; }
  const DecoderSizes& sizes() const { return sizes_; }

  // Greedy, the end of generation ignored. InvalidArgument if it could never run.
  absl::StatusOr<RequestId> Add(std::vector<TokenId> prompt, int64_t max_tokens);
  void Cancel(RequestId id);
  // Output tokens so far, of a request that was added since the last Forget.
  int64_t num_output_tokens(RequestId id) const;
  bool has_ended(RequestId id) const;
  // Forgets requests that have ended.
  void Forget();

  // One step, which must have something to compute. Internal if it fails.
  absl::StatusOr<StepRecord> Step();

  // Counts where passes spend their time into `profile` from now on; null: into none.
  void SetProfile(StepProfile* profile) { decoder_->SetProfile(profile); }

 private:
  class Runner;
  class SamplingWatch;
  struct Stream;

  BenchEngine() = default;

  SteadyClock clock_;
  EngineInfo info_;
  DecoderSizes sizes_;
  std::unique_ptr<SamplingWatch> watch_;
  std::unique_ptr<Engine> engine_;  // after watch_: destroyed before it
  Decoder* decoder_ = nullptr;      // owned by the engine's runner
  Runner* runner_ = nullptr;        // owned by the engine
  std::vector<std::shared_ptr<Stream>> streams_;
  int64_t next_id_ = 1;
  int64_t first_id_ = 1;  // of streams_[0]
};

// Prompts of random tokens; the same arguments make the same prompt.
std::vector<TokenId> RandomPrompt(int64_t vocab_size, int64_t num_tokens, uint64_t seed);

}  // namespace quire
