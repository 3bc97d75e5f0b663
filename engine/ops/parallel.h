#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/math.h"
#include "engine/tensor/buffer.h"

namespace quire {

class ThreadTeam;

// One thread's handle inside a parallel region. Operations that take a Worker are called by every thread of the team
// with the same arguments, split their work among them, and return on all of them together, when all of it is done.
class Worker {
 public:
  Worker(ThreadTeam* team, int64_t index) : team_(team), index_(index) {}

  int64_t index() const { return index_; }
  int64_t num_threads() const;

  // Calls body(begin, end) for chunks of [0, count) of at most `chunk` items. Each thread has neighbouring chunks of
  // its own, the same ones whenever there are as many, and claims those of others when it is done with them. Ends with
  // a barrier.
  template <typename Body>
  void ForChunks(int64_t count, int64_t chunk, Body&& body);

  // Chunks of a size that leaves every thread several to claim.
  template <typename Body>
  void For(int64_t count, Body&& body) {
    constexpr int64_t kChunksPerThread = 4;
    ForChunks(count, std::max<int64_t>(1, count / (num_threads() * kChunksPerThread)), std::forward<Body>(body));
  }

  // Returns when every thread of the team has come here.
  void Barrier();

  // This thread's own scratch memory, 64-byte aligned; contents last until another operation uses it.
  std::span<std::byte> scratch() const;

 private:
  ThreadTeam* team_;
  int64_t index_;
};

// quire's only threads for arithmetic: one OpenMP team that enters a parallel region together, the calling thread
// among them. Inside a region the threads meet at a spinning barrier (a fraction of a microsecond, against several
// for leaving and entering a region). A thread that has spun for long sleeps until the last one comes: a neighbour that
// took a processor away is not fought, and a thread that slept is given a processor before one that only yielded.
// One region at a time.
class ThreadTeam {
 public:
  // `scratch_bytes` for each thread.
  ThreadTeam(int64_t num_threads, int64_t scratch_bytes);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int64_t num_threads() const { return num_threads_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }

  // Runs body(worker) on every thread; returns when all have returned. The body must not throw.
  template <typename Body>
  void Run(Body&& body) {
    if (num_threads_ == 1) {  // no OpenMP at all, so that a thread sanitizer sees everything
      Worker worker(this, 0);
      body(worker);
      return;
    }
    RunRegion([](void* context, Worker& worker) { (*static_cast<std::remove_reference_t<Body>*>(context))(worker); },
              &body);
  }

  // Calls body(item, thread) for the items [0, count), on at most `max_threads` threads, numbered from 0, of which each
  // takes one item after the other. A region of its own, unless there is nothing to share. The body must not throw.
  template <typename Body>
  void ForEach(int64_t count, int64_t max_threads, Body&& body) {
    if (std::min({count, max_threads, num_threads_}) <= 1) {
      for (int64_t item = 0; item < count; ++item) body(item, int64_t{0});
      return;
    }
    std::atomic<int64_t> next = 0;
    Run([&](Worker& worker) {
      if (worker.index() >= max_threads) return;
      for (int64_t item = next.fetch_add(1); item < count; item = next.fetch_add(1)) body(item, worker.index());
    });
  }

 private:
  friend class Worker;

  void RunRegion(void (*call)(void*, Worker&), void* context);
  void Barrier(int64_t index);

  const int64_t num_threads_;
  const int64_t scratch_bytes_;
  std::vector<Buffer> scratch_;  // [num_threads]
  // How many of each thread's own chunks are claimed, in rounds between barriers of even and of odd number: those of
  // one are set back during the other.
  struct alignas(64) Claims {
    std::atomic<int64_t> claimed[2] = {0, 0};
  };
  std::vector<Claims> claims_;  // [num_threads]
  alignas(64) std::atomic<int64_t> num_arrived_{0};
  alignas(64) std::atomic<uint64_t> barrier_round_{0};
};

// Makes all of the buffer's pages resident, each by the thread that claims it, so that a machine with several memories
// spreads them as it spreads the threads. Called inside a region by every thread of the team; contents are kept.
void TouchPages(Worker& worker, const Buffer& buffer);

inline int64_t Worker::num_threads() const { return team_->num_threads(); }
inline void Worker::Barrier() { team_->Barrier(index_); }

template <typename Body>
void Worker::ForChunks(int64_t count, int64_t chunk, Body&& body) {
  const int64_t num_threads = team_->num_threads();
  if (num_threads == 1) {
    for (int64_t begin = 0; begin < count; begin += chunk) body(begin, std::min(begin + chunk, count));
    return;
  }
  const int64_t num_chunks = CeilDiv(count, chunk);
  const uint64_t parity = team_->barrier_round_.load(std::memory_order_relaxed) % 2;
  for (int64_t i = 0; i < num_threads; ++i) {
    const int64_t owner = (index_ + i) % num_threads;
    const int64_t first = num_chunks * owner / num_threads;
    const int64_t num_owned = num_chunks * (owner + 1) / num_threads - first;
    std::atomic<int64_t>& claimed = team_->claims_[owner].claimed[parity];
    while (claimed.load(std::memory_order_relaxed) < num_owned) {
      const int64_t mine = claimed.fetch_add(1, std::memory_order_relaxed);
      if (mine >= num_owned) break;
      const int64_t begin = (first + mine) * chunk;
      body(begin, std::min(begin + chunk, count));
    }
  }
  Barrier();
}

}  // namespace quire
