#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "server/generation/worker_pool.h"

namespace quire {

// Runs jobs one after the other, in the order they were posted, on a pool that many strands share. What jobs of one
// strand touch needs no lock. Thread-safe.
class TextStrand : public std::enable_shared_from_this<TextStrand> {
 public:
  explicit TextStrand(WorkerPool* pool) : pool_(pool) {}

  void Post(std::function<void()> job);

 private:
  // Runs one job, then goes to the end of the pool's queue: a busy strand does not hold up others.
  void RunOne();

  WorkerPool* const pool_;
  std::mutex mutex_;
  std::deque<std::function<void()>> jobs_;  // guarded by mutex_
  bool scheduled_ = false;                  // guarded by mutex_; RunOne is queued or running
};

// The threads of the text layer, apart from the engine's and gRPC's. Prompts are encoded on their own threads with a
// bounded queue, so that long prompts never hold up the detokenizing of running requests, which has one thread.
class TextExecutor {
 public:
  // `num_threads` >= 2 in all. At most `max_queued_encodes` prompts wait, and those that wait or are being encoded have
  // at most `max_text_bytes` together, or are one.
  TextExecutor(int num_threads, int max_queued_encodes, int64_t max_text_bytes);

  // Templates and tokenizing of `text_bytes`, or refusal by RESOURCE_EXHAUSTED with a retry delay when too much waits.
  absl::Status PostEncode(int64_t text_bytes, std::function<void()> job);

  // A strand of the detokenizing thread; must not outlive the executor. At most one job of each strand is in that
  // thread's queue, so the number of requests bounds it.
  std::shared_ptr<TextStrand> NewStrand();

 private:
  const int max_queued_encodes_;
  const int64_t max_text_bytes_;
  std::atomic<int64_t> text_bytes_ = 0;
  // Encoding jobs end by posting to strands, so their pool must stop first: members are destroyed from below.
  WorkerPool strand_pool_;
  WorkerPool encode_pool_;
};

}  // namespace quire
