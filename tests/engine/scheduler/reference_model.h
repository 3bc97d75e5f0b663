#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "tests/engine/scheduler/scheduler_fixture.h"

namespace quire::testing {

// What scheduler and cache must agree with, kept the plain way: each request's tokens, and for each block the tokens it
// holds. Knows nothing of queues, hashes and policies: whoever is chosen to run, this must be true. Every call appends
// what it finds wrong to violations().
class ReferenceModel {
 public:
  ReferenceModel(const SchedulerConfig& config, int64_t num_blocks, int64_t block_size);

  // Whether a request of that size can ever run.
  bool Fits(const Request& request) const;

  // Each is told after the scheduler's call of the same name; OnUpdate before it, when the plan's block tables are
  // still valid.
  void OnAdd(const Request& request);
  void OnSchedule(const StepPlan& plan, Scheduler* scheduler, const KvCacheManager& cache);
  void OnUpdate(const StepPlan& plan, std::span<const TokenId> sampled);
  void OnRemove(const Request& removed);

  // Compares everything.
  void Check(Scheduler* scheduler, const KvCacheManager& cache);

  const std::vector<std::string>& violations() const { return violations_; }
  int64_t num_hit_tokens() const { return num_hit_tokens_; }
  int64_t num_completed() const { return num_completed_; }
  int64_t num_completed_after_preemption() const { return num_completed_after_preemption_; }

 private:
  struct PlainRequest {
    std::string cache_namespace;
    bool reads_prefix_cache = true;
    bool wants_prompt_logprobs = false;
    int64_t num_prompt_tokens = 0;
    int64_t max_tokens = 0;
    std::vector<TokenId> tokens;  // prompt, then committed output
    bool runs = false;
    int64_t num_computed = 0;     // tokens whose computation was committed since it last began to run
    int64_t num_prompt_rows = 0;  // rows delivered for log-probabilities of prompt tokens
  };

  // The tokens of a sequence from its beginning to the block's last committed one, and whose sequence it is.
  struct Content {
    std::string cache_namespace;
    std::vector<TokenId> tokens;
  };

  void Expect(bool condition, RequestId id, const auto&... what);
  void FollowStatus(RequestId id, PlainRequest* plain, const Request& request, const KvCacheManager& cache);
  void CheckHit(RequestId id, const PlainRequest& plain, const Request& request, const KvCacheManager& cache);
  void CheckPlan(const StepPlan& plan);
  void CheckEntry(const ScheduledRequest& scheduled);
  void CheckRequest(RequestId id, const PlainRequest& plain, const Request& request, const KvCacheManager& cache);
  // Blocks of which something is still to be written have one owner, and hold nothing of others.
  void ForgetUncomputed(const KvCacheManager& cache);
  std::map<BlockId, int64_t> CountOwners(const KvCacheManager& cache) const;

  const SchedulerConfig config_;
  const int64_t block_size_;
  std::map<RequestId, PlainRequest> requests_;
  std::vector<Content> contents_;  // [num_blocks]
  std::vector<std::string> violations_;
  int64_t num_hit_tokens_ = 0;
  int64_t num_completed_ = 0;
  int64_t num_completed_after_preemption_ = 0;
};

}  // namespace quire::testing
