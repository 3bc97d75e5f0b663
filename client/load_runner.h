#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
  // `stub` outlives the runner.
  LoadRunner(v1::Generation::Stub* stub, std::optional<double> timeout_seconds)
      : stub_(stub), timeout_seconds_(timeout_seconds) {}

  // Blocks until the last request has ended. After `cancel` no request is started and those in flight are cancelled.
  // `on_progress(num_ended, num_open)` runs after each end, one at a time, on a thread of the runner. Once only.
  LoadResult Run(const std::vector<PlannedRequest>& plan, const LoadOptions& options, CancelSignal& cancel,
                 const std::function<void(int64_t, int64_t)>& on_progress);

 private:
  void Start(const PlannedRequest& planned);
  // Serves the calls' completion queue until it is shut down.
  void ServeQueue(const std::function<void(int64_t, int64_t)>& on_progress);
  // False: cancelled.
  bool WaitForTurn(const PlannedRequest& planned, const LoadOptions& options, CancelSignal& cancel,
                   std::chrono::steady_clock::time_point begin);
  void CancelOpenCalls();

  v1::Generation::Stub* const stub_;
  const std::optional<double> timeout_seconds_;
  grpc::CompletionQueue queue_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable call_ended_;
  std::map<LoadCall*, std::unique_ptr<LoadCall>> open_calls_;
  bool cancelled_ = false;
  std::vector<LoadMeasurement> measurements_;
};

}  // namespace quire
