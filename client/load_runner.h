#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "client/cancel_signal.h"
#include "client/load_call.h"
#include "client/load_plan.h"

namespace quire {

struct LoadResult {
  std::vector<LoadMeasurement> measurements;  // in order of their end
  double seconds = 0;                         // from the first start to the last end
};

// Sends planned requests: at their times, or as others end so that `concurrency` are in flight.
class LoadRunner {
 public:
  // `transport` outlives the runner.
  explicit LoadRunner(LoadTransport* transport) : transport_(transport) {}

  // Blocks until the last request has ended. After `cancel` no request is started and those in flight are cancelled.
  // `on_progress(num_ended, num_open)` runs after each end, one at a time, on a thread of the transport. Once only.
  LoadResult Run(const std::vector<PlannedRequest>& plan, const LoadOptions& options, CancelSignal& cancel,
                 const std::function<void(int64_t, int64_t)>& on_progress);

 private:
  void Start(const PlannedRequest& planned, const std::function<void(int64_t, int64_t)>& on_progress);
  void OnEnd(LoadCall* call, const std::function<void(int64_t, int64_t)>& on_progress);
  // False: cancelled.
  bool WaitForTurn(const PlannedRequest& planned, const LoadOptions& options, CancelSignal& cancel,
                   std::chrono::steady_clock::time_point begin);
  void CancelOpenCalls();

  LoadTransport* const transport_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable call_ended_;
  std::map<LoadCall*, std::unique_ptr<LoadCall>> open_calls_;
  // To be destroyed outside of the lock and of their own threads.
  std::vector<std::unique_ptr<LoadCall>> ended_calls_;
  bool cancelled_ = false;
  std::vector<LoadMeasurement> measurements_;
};

}  // namespace quire
