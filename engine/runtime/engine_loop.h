#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/generation_types.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/engine_stats.h"
#include "engine/runtime/drain_rate.h"
#include "engine/runtime/engine_observer.h"
#include "engine/runtime/generation.h"
#include "engine/runtime/queue_limits.h"
#include "engine/runtime/step_times.h"

namespace quire {

// What tells an engine that works from one that hangs.
struct EngineProgress {
  int64_t num_steps = 0;  // ended, since start
  int64_t num_open_requests = 0;
  StepStage stage = StepStage::kBetweenSteps;
  double predicted_step_seconds = 0;  // 0: unknown
};

// How much is asked of the engine, as last published: at most a step ago.
struct EngineLoad {
  double kv_cache_use = 0;  // share of the blocks that requests own
  int64_t num_running_requests = 0;
  int64_t num_waiting_requests = 0;
  int64_t max_running_requests = 1;
};

// The engine's thread with its inbox: the border between callers' threads and the single-threaded Engine.
// Public methods are thread-safe and never wait for a step, except GetStats and ClearPrefixCache, which wait for at
// most one.
// Sinks are called from the engine's thread, without a lock held.
class EngineLoop : private EngineObserver {
 public:
  explicit EngineLoop(std::unique_ptr<Engine> engine, const QueueLimits& queue_limits = {});
  // Ends what still runs with UNAVAILABLE, then joins the thread.
  ~EngineLoop() override;
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Validates and hands the request over. OK: the sink will get exactly one OnFinish. An error (INVALID_ARGUMENT,
  // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED by the queue's limits, UNAVAILABLE while draining): the sink will never be
  // called.
  absl::StatusOr<RequestId> Submit(GenerationRequest request);

  // Ends a request at the next step's beginning, with `status` (CANCELLED, DEADLINE_EXCEEDED): its blocks are free
  // before the next step is planned. No-op when it has ended already.
  void Cancel(RequestId id, absl::Status status);

  // The same for an end that is a success found outside the engine: a stop string. `num_output_tokens` is what the
  // caller counted up to and including the stop; later tokens are not counted.
  void Finish(RequestId id, FinishReason reason, int64_t num_output_tokens);

  // What tenants may use: in force for what is submitted from now on, and for what waits and runs from the next step
  // on. INVALID_ARGUMENT, and nothing changes, for what EngineConfig would not take.
  absl::Status SetTenantLimits(TenantLimitsByName tenants);

  // A copy of the counters, between two steps.
  EngineStats GetStats(bool with_requests);
  // The same, or UNAVAILABLE if no step has ended within `timeout`.
  absl::StatusOr<EngineStats> GetStats(bool with_requests, Duration timeout);

  // Forgets all cached prefixes; the number of blocks that were cached and are free now.
  int64_t ClearPrefixCache();

  // Refuses new requests with UNAVAILABLE from now on; those accepted go on.
  void StartDraining();
  bool draining() const;
  // True when nothing waits or runs any more; waits for it until `deadline`, on the process's steady clock.
  bool WaitUntilIdle(TimePoint deadline);
  // Ends everything that waits or runs with `status`.
  void CancelAll(absl::Status status);

  // Steps that have ended, since start.
  int64_t num_steps() const { return num_steps_.load(std::memory_order_relaxed); }
  int64_t num_open_requests() const;
  EngineProgress progress() const;
  EngineLoad load() const;

 private:
  struct AddCommand {
    RequestId id;
    GenerationRequest request;
  };
  // When something that ends a request was heard of.
  struct Stamp {
    TimePoint time;
    int64_t num_steps = 0;
  };
  struct CancelCommand {
    RequestId id;
    absl::Status status;
    Stamp stamp = {};
  };
  struct FinishCommand {
    RequestId id;
    FinishReason reason;
    int64_t num_output_tokens;
    Stamp stamp = {};
  };
  struct CancelAllCommand {
    absl::Status status;
  };
  struct TenantLimitsCommand {
    TenantLimitsByName tenants;
  };
  struct StatsCommand {
    bool with_requests;
    std::promise<EngineStats> answer;
  };
  struct ClearPrefixCacheCommand {
    std::promise<int64_t> num_freed_blocks;
  };
  using Command = std::variant<AddCommand, CancelCommand, FinishCommand, CancelAllCommand, TenantLimitsCommand,
                               StatsCommand, ClearPrefixCacheCommand>;

  std::shared_ptr<const EngineLimits> limits() const;
  std::future<EngineStats> AskForStats(bool with_requests);
  void Post(Command command);
  // Stamped as it comes into the inbox, so that no step can come between.
  template <typename EndCommand>
  void PostEnd(EndCommand command);
  // With mutex_ held.
  absl::Status CheckRoom(const GenerationRequest& request) const;

  // The engine's thread.
  void Run();
  // Moves the inbox to `commands`; waits while there is neither a command nor work. False: stop.
  bool TakeCommands(std::vector<Command>* commands);
  void Execute(Command& command);
  void Execute(AddCommand& command);
  void Execute(CancelCommand& command);
  void Execute(FinishCommand& command);
  void Execute(CancelAllCommand& command);
  void Execute(TenantLimitsCommand& command);
  void Execute(StatsCommand& command);
  void Execute(ClearPrefixCacheCommand& command);
  void ObserveRelease(const Stamp& stamp);
  void PublishQueue();
  void PublishProgress();
  void OnStage(StepStage stage) override;
  void OnEnd(const std::string& tenant) override;
  void OnDeadlineExpired(TimePoint deadline) override;

  const std::unique_ptr<Engine> engine_;  // used by the engine's thread alone, but for what is fixed
  const QueueLimits queue_limits_;

  // The engine's thread's.
  QueuedWork taken_;      // of the commands of this turn, until it is published who of them waits
  TimePoint step_ended_;  // the last one
  StepTimes step_times_;
  Histogram release_steps_;
  Histogram release_seconds_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable inbox_changed_;
  std::condition_variable became_idle_;
  std::vector<Command> inbox_;
  std::shared_ptr<const EngineLimits> limits_;  // those of the engine when it has taken all of the inbox
  uint64_t num_accepted_requests_ = 0;
  int64_t num_finished_requests_ = 0;
  QueuedWork waiting_;                                           // in the engine, as last published
  int64_t num_free_seats_ = 0;                                   // the same
  double kv_cache_use_ = 0;                                      // the same
  QueuedWork unpublished_;                                       // submitted since
  std::unordered_map<std::string, int64_t> num_open_by_tenant_;  // accepted and not ended; none 0
  DrainRate drain_rate_;
  bool draining_ = false;
  bool stopping_ = false;

  std::atomic<int64_t> num_steps_ = 0;
  std::atomic<StepStage> stage_ = StepStage::kBetweenSteps;
  std::atomic<double> predicted_step_seconds_ = 0;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace quire
