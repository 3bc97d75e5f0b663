#include "tests/fuzz/fuzz_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace quire::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollTime(200);
constexpr std::chrono::seconds kProgressTime(10);

// What the process that runs the inputs says of itself; in memory that both share.
struct Progress {
  std::atomic<uint64_t> next;  // the input that runs
  std::array<std::atomic<uint64_t>, kMaxFuzzStages> num_passed;
};

[[noreturn]] void Throw(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

class SharedProgress {
 public:
  SharedProgress() {
    void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) Throw("mmap");
    progress_ = new (memory) Progress{};
  }
  ~SharedProgress() { munmap(progress_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;

  Progress* operator->() const { return progress_; }

 private:
  Progress* progress_;
};

// A pipe that is at its end when the process at the other side has ended.
class LifeLine {
 public:
  LifeLine() {
    if (pipe2(ends_, O_CLOEXEC) != 0) Throw("pipe2");
  }
  ~LifeLine() { close(ends_[0]); }
  LifeLine(const LifeLine&) = delete;
  LifeLine& operator=(const LifeLine&) = delete;

  void Watch() { close(ends_[1]); }
  // True if it ended within `time`.
  bool WaitForEnd(std::chrono::milliseconds time) const {
    pollfd end = {.fd = ends_[0], .events = POLLIN, .revents = 0};
    return poll(&end, 1, static_cast<int>(time.count())) > 0;
  }

 private:
  int ends_[2] = {-1, -1};
};

int64_t ResidentBytes(pid_t process) {
  std::ifstream statm("/proc/" + std::to_string(process) + "/statm");
  int64_t mapped_pages = 0;
  int64_t resident_pages = 0;
  statm >> mapped_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

// That it has used, on all its threads.
std::chrono::nanoseconds ProcessorTime(pid_t process) {
  clockid_t clock;
  timespec time = {};
  if (clock_getcpuclockid(process, &clock) == 0) clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// How long an input has run.
class InputTime {
 public:
  explicit InputTime(pid_t process) : process_(process) { Restart(); }

  void Restart() {
    since_ = Clock::now();
    used_before_ = ProcessorTime(process_);
  }
  bool IsPast(std::chrono::seconds limit) const {
    return ProcessorTime(process_) - used_before_ > limit || Clock::now() - since_ > 10 * limit;
  }

 private:
  pid_t process_;
  Clock::time_point since_;
  std::chrono::nanoseconds used_before_;
};

// Waits for the end of `process`. Says what it did wrong if it had to be ended: it held an input, or took memory.
std::optional<std::string> Supervise(pid_t process, const LifeLine& life, const SharedProgress& progress,
                                     const FuzzLimits& limits, const std::function<void(uint64_t)>& on_progress) {
  uint64_t running = progress->next;
  InputTime time(process);
  Clock::time_point told = Clock::now();
  while (!life.WaitForEnd(kPollTime)) {
    const Clock::time_point now = Clock::now();
    if (const uint64_t next = progress->next; next != running) {
      running = next;
      time.Restart();
    }
    if (now - told > kProgressTime) {
      on_progress(running);
      told = now;
    }
    std::optional<std::string> wrong;
    if (time.IsPast(limits.hang)) wrong = "it took more than " + std::to_string(limits.hang.count()) + " seconds";
    if (const int64_t bytes = ResidentBytes(process); bytes > limits.resident_bytes) {
      wrong = "the process took " + std::to_string(bytes >> 20) + " MiB";
    }
    if (!wrong) continue;
    kill(process, SIGABRT);  // a sanitizer shows where it was
    return wrong;
  }
  return std::nullopt;
}

// Nothing if the process has ended as it should.
std::optional<std::string> WhatEnded(int wait_status, bool is_done) {
  if (WIFSIGNALED(wait_status)) return std::string("it ended the process: ") + strsignal(WTERMSIG(wait_status));
  if (WEXITSTATUS(wait_status) == 0 && is_done) return std::nullopt;
  return "it ended the process with code " + std::to_string(WEXITSTATUS(wait_status));
}

// In the process of its own. An exception ends it, as it would end the program.
void RunInputs(const std::function<std::unique_ptr<FuzzTarget>()>& make_target, const Mutator& mutator, uint64_t end,
               const SharedProgress& progress) noexcept {
  const std::unique_ptr<FuzzTarget> target = make_target();
  for (; progress->next < end; ++progress->next) {
    const size_t num_stages = target->Run(mutator.Input(progress->next));
    for (size_t stage = 0; stage < num_stages; ++stage) ++progress->num_passed[stage];
  }
}

}  // namespace

FuzzResult RunFuzz(const std::function<std::unique_ptr<FuzzTarget>()>& make_target, const Mutator& mutator,
                   uint64_t first, uint64_t num_inputs, const FuzzLimits& limits,
                   const std::function<void(uint64_t)>& on_progress) {
  const SharedProgress progress;
  progress->next = first;
  LifeLine life;
  std::fflush(nullptr);  // or both processes would write what is buffered
  const pid_t process = fork();
  if (process < 0) Throw("fork");
  if (process == 0) {
    RunInputs(make_target, mutator, first + num_inputs, progress);
    std::exit(0);
  }
  life.Watch();
  std::optional<std::string> wrong = Supervise(process, life, progress, limits, on_progress);
  int wait_status = 0;
  if (waitpid(process, &wait_status, 0) != process) Throw("waitpid");
  if (!wrong) wrong = WhatEnded(wait_status, /*is_done=*/progress->next == first + num_inputs);
  FuzzResult result;
  result.num_inputs = progress->next - first;
  for (size_t stage = 0; stage < kMaxFuzzStages; ++stage) result.num_passed[stage] = progress->num_passed[stage];
  if (wrong) result.finding = FuzzFinding{progress->next, *std::move(wrong)};
  return result;
}

}  // namespace quire::testing
