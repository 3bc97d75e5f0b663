#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/generation_types.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/engine_stats.h"
#include "engine/runtime/generation.h"

namespace quire {

// The engine's thread with its inbox: the border between callers' threads and the single-threaded Engine.
// Public methods are thread-safe and never wait for a step, except GetStats, which waits for at most one.
// Sinks are called from the engine's thread, without a lock held.
class EngineLoop {
 public:
  // Accepted requests that have not ended, beyond which Submit answers RESOURCE_EXHAUSTED.
  static constexpr int64_t kDefaultMaxOpenRequests = 4096;

  explicit EngineLoop(std::unique_ptr<Engine> engine, int64_t max_open_requests = kDefaultMaxOpenRequests);
  // Ends what still runs with UNAVAILABLE, then joins the thread.
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Validates and hands the request over. OK: the sink will get exactly one OnFinish. An error (INVALID_ARGUMENT,
  // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE while draining): the sink will never be called.
  absl::StatusOr<RequestId> Submit(GenerationRequest request);

  // Ends a request at the next step's beginning, with `status` (CANCELLED, DEADLINE_EXCEEDED): its blocks are free
  // before the next step is planned. No-op when it has ended already.
  void Cancel(RequestId id, absl::Status status);

  // The same for an end that is a success found outside the engine: a stop string. `num_output_tokens` is what the
  // caller counted up to and including the stop; later tokens are not counted.
  void Finish(RequestId id, FinishReason reason, int64_t num_output_tokens);

  // A copy of the counters, between two steps.
  EngineStats GetStats(bool with_requests);

  // Refuses new requests with UNAVAILABLE from now on; those accepted go on.
  void StartDraining();
  bool draining() const;
  // True when nothing waits or runs any more; waits for it until `deadline`, on the process's steady clock.
  bool WaitUntilIdle(TimePoint deadline);
  // Ends everything that waits or runs with `status`.
  void CancelAll(absl::Status status);

  // What a request must keep to.
  const EngineLimits& limits() const { return engine_->limits(); }
  // Steps since start. While requests are open and this stands still for long, the engine hangs.
  int64_t num_steps() const { return num_steps_.load(std::memory_order_relaxed); }
  int64_t num_open_requests() const;

 private:
  struct AddCommand {
    RequestId id;
    GenerationRequest request;
  };
  struct CancelCommand {
    RequestId id;
    absl::Status status;
  };
  struct FinishCommand {
    RequestId id;
    FinishReason reason;
    int64_t num_output_tokens;
  };
  struct CancelAllCommand {
    absl::Status status;
  };
  struct StatsCommand {
    bool with_requests;
    std::promise<EngineStats> answer;
  };
  using Command = std::variant<AddCommand, CancelCommand, FinishCommand, CancelAllCommand, StatsCommand>;

  void Post(Command command);

  // The engine's thread.
  void Run();
  // Moves the inbox to `commands`; waits while there is neither a command nor work. False: stop.
  bool TakeCommands(std::vector<Command>* commands);
  void Execute(Command& command);
  void PublishProgress();

  const std::unique_ptr<Engine> engine_;  // used by the engine's thread alone, but for what is fixed
  const int64_t max_open_requests_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable inbox_changed_;
  std::condition_variable became_idle_;
  std::vector<Command> inbox_;
  uint64_t num_accepted_requests_ = 0;
  int64_t num_finished_requests_ = 0;
  bool draining_ = false;
  bool stopping_ = false;

  std::atomic<int64_t> num_steps_ = 0;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace quire
