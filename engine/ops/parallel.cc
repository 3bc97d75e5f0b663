#include "engine/ops/parallel.h"

#include <omp.h>

#include "engine/base/check.h"
#include "engine/base/math.h"

namespace quire {
namespace {

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::span<std::byte> Worker::scratch() const {
  const Buffer& buffer = team_->scratch_[index_];
  return {buffer.data(), static_cast<size_t>(buffer.size_bytes())};
}

ThreadTeam::ThreadTeam(int64_t num_threads, int64_t scratch_bytes)
    : num_threads_(num_threads), scratch_bytes_(scratch_bytes), claims_(num_threads) {
  QUIRE_CHECK_GE(num_threads, 1);
  for (int64_t i = 0; i < num_threads; ++i) scratch_.emplace_back(scratch_bytes);
}

void ThreadTeam::RunRegion(void (*call)(void*, Worker&), void* context) {
#pragma omp parallel num_threads(static_cast<int>(num_threads_))
  {
    // A smaller team than asked for would wait for threads that do not exist.
    QUIRE_CHECK_EQ(static_cast<int64_t>(omp_get_num_threads()), num_threads_);
    Worker worker(this, omp_get_thread_num());
    call(context, worker);
  }
}

void TouchPages(Worker& worker, const Buffer& buffer) {
  // A huge page at a time: two threads never wait for the same page to be cleared.
  constexpr int64_t kChunkBytes = 2 << 20;
  worker.For(CeilDiv(buffer.size_bytes(), kChunkBytes), [&](int64_t begin, int64_t end) {
    buffer.Touch(begin * kChunkBytes, std::min(end * kChunkBytes, buffer.size_bytes()));
  });
}

void ThreadTeam::Barrier(int64_t index) {
  if (num_threads_ == 1) return;
  const uint64_t round = barrier_round_.load(std::memory_order_relaxed);
  claims_[index].claimed[(round + 1) % 2].store(0, std::memory_order_relaxed);
  if (num_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_threads_) {
    num_arrived_.store(0, std::memory_order_relaxed);
    barrier_round_.store(round + 1, std::memory_order_release);
    barrier_round_.notify_all();  // no system call unless somebody sleeps
    return;
  }
  constexpr int kSpinsBeforeSleep = 2000;
  for (int spins = 0; spins < kSpinsBeforeSleep; ++spins) {
    if (barrier_round_.load(std::memory_order_acquire) != round) return;
    Pause();
  }
  barrier_round_.wait(round, std::memory_order_acquire);
}

}  // namespace quire
