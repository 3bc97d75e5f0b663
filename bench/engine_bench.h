#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/engine_loop.h"

namespace quire {

// Tokens per second of each run.
struct Throughput {
  std::vector<double> tokens_per_second;  // [num_runs]

  double Median() const;
  double Min() const;
  double Max() const;
};

struct BenchPlan {
  int64_t prompt_tokens = 512;        // of the prefill measurement
  int64_t decode_prompt_tokens = 32;  // context at the beginning of the decode measurement
  int64_t decode_tokens = 64;         // each request's output
  int64_t num_runs = 5;               // after one that is thrown away
};

// Times requests through the whole engine: scheduling, model, sampling and delivery. Greedy, end-of-generation
// ignored, prompts of random tokens.
class EngineBench {
 public:
  // `loop` must outlive it.
  EngineBench(EngineLoop* loop, const BenchPlan& plan);

  // One request's prompt, to its first token.
  absl::StatusOr<Throughput> Prefill();
  // `batch` requests at once: output tokens from the moment when all have begun until the last one ends.
  absl::StatusOr<Throughput> Decode(int64_t batch);

 private:
  absl::StatusOr<double> RunPrefill();
  absl::StatusOr<double> RunDecode(int64_t batch);

  EngineLoop* loop_;
  BenchPlan plan_;
  uint64_t next_seed_ = 1;
};

}  // namespace quire
