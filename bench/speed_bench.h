#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/bench_engine.h"
#include "bench/step_work.h"
#include "engine/model/step_profile.h"

namespace quire {

struct SpeedPlan {
  std::vector<int64_t> prompt_tokens = {512};
  std::vector<int64_t> batches = {1, 4, 16};
  std::vector<int64_t> contexts = {32};  // tokens that are cached when the measurement of a decode begins
  int64_t decode_tokens = 64;            // of each request
  int64_t num_prompts = 8;               // that arrive in a run of `mixed`
  int64_t num_runs = 5;                  // after one that is thrown away
  bool profile = false;                  // one more run, with the time of each part
};

// Some steps, summed.
struct RunTotals {
  StepWork work;
  int64_t num_prefill_tokens = 0;
  int64_t num_output_tokens = 0;
  double seconds = 0;
  double sampling_seconds = 0;
  std::vector<double> token_gaps;  // seconds between tokens of decoding streams

  void Add(const StepRecord& step) {
    work += step.work;
    num_prefill_tokens += step.num_prefill_tokens;
    seconds += step.seconds;
    sampling_seconds += step.sampling_seconds;
  }
  double tokens_per_second() const { return static_cast<double>(work.num_tokens) / seconds; }
};

struct ProfiledRun {
  RunTotals totals;
  StepProfile profile;
};

struct SpeedResult {
  std::string phase;  // "prefill", "decode", "mixed"
  int64_t batch = 1;
  int64_t context = 0;
  int64_t prompt_tokens = 0;         // 0 where none arrive
  std::vector<RunTotals> runs = {};  // [num_runs]
  std::optional<ProfiledRun> profiled = {};

  // The median over the runs.
  double Median(const std::function<double(const RunTotals&)>& figure) const;
};

// Steps an engine through prefills and decodes. Prompts are random tokens; before a decode is measured its prompts have
// been computed once, so that the prefix cache brings every run quickly to its beginning.
class SpeedBench {
 public:
  // `engine` must outlive it.
  SpeedBench(BenchEngine* engine, const SpeedPlan& plan) : engine_(engine), plan_(plan) {}

  // One request's prompt, to its first token.
  absl::StatusOr<SpeedResult> Prefill(int64_t prompt_tokens);
  // Steps in which `batch` requests get a token each. FailedPrecondition if the cache doesn't hold them together.
  absl::StatusOr<SpeedResult> Decode(int64_t batch, int64_t context);
  // `batch` requests decode while prompts arrive, each when the last one has its first token.
  absl::StatusOr<SpeedResult> Mixed(int64_t batch, int64_t context, int64_t prompt_tokens);

  // The longest request of Mixed: a step takes 16 tokens of a prompt at least.
  static int64_t MixedOutputTokens(int64_t prompt_tokens, int64_t num_prompts);

 private:
  using Run = std::function<absl::StatusOr<RunTotals>()>;

  absl::Status Repeat(const Run& run, SpeedResult* result);
  // Profiles only the steps that are counted.
  absl::StatusOr<StepRecord> MeasuredStep();
  absl::StatusOr<RunTotals> RunPrefill(int64_t prompt_tokens);
  absl::StatusOr<RunTotals> RunDecode(int64_t batch, int64_t context);
  absl::StatusOr<RunTotals> RunMixed(int64_t batch, int64_t context, int64_t prompt_tokens);
  std::vector<TokenId> NewPrompt(int64_t num_tokens);
  absl::Status FillPrefixCache(int64_t batch, int64_t context);
  // Requests that all have their first token.
  absl::StatusOr<std::vector<RequestId>> StartStreams(int64_t batch, int64_t context, int64_t max_tokens);
  void EndStreams(const std::vector<RequestId>& streams);

  BenchEngine* engine_;
  SpeedPlan plan_;
  StepProfile profile_;
  bool profiles_ = false;
  uint64_t next_seed_ = 1 << 20;  // of prompts that come once; those below are the streams'
};

}  // namespace quire
