#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/generation_types.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/engine_stats.h"
#include "engine/runtime/generation.h"

namespace quire {

// The engine's thread with its inbox: the border between callers' threads and the single-threaded Engine.
// Public methods are thread-safe and never wait for a step, except GetStats, which waits for at most one.
class EngineLoop {
 public:
  explicit EngineLoop(std::unique_ptr<Engine> engine);
  // Ends what still runs with UNAVAILABLE, then joins the thread.
  ~EngineLoop();

  // Validates and hands the request over. OK: the sink will get exactly one OnFinish. An error (INVALID_ARGUMENT,
  // RESOURCE_EXHAUSTED, UNAVAILABLE while draining): the sink will never be called.
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
  // True when nothing waits or runs any more; waits for it until `deadline`.
  bool WaitUntilIdle(TimePoint deadline);
  // Ends everything that waits or runs with `status`.
  void CancelAll(absl::Status status);
