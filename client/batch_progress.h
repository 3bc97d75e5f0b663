#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <mutex>
#include <string>

namespace quire {

struct BatchCounts {
  int64_t num_total = 0;    // lines of the input
  int64_t num_skipped = 0;  // answered by an earlier run
  int64_t num_answered = 0;
  int64_t num_failed = 0;

  int64_t NumDone() const { return num_skipped + num_answered + num_failed; }
};

// "[#####.....] 12/24, 1 failed, 2.4/s, 5 s left"; the bar only if asked.
std::string ProgressText(const BatchCounts& counts, double elapsed_seconds, bool with_bar);

// Shows how far a batch is: a bar that stays in its line on a terminal, else a line for each twentieth.
// Thread-safe.
class BatchProgress {
 public:
  BatchProgress(std::ostream& err, bool is_terminal, const BatchCounts& counts);

  void AddSkipped();
  void AddAnswered();
  void AddFailed();

  // Shows the bar for the last time and ends its line.
  void Finish();

  BatchCounts counts() const;

 private:
  void Show();

  mutable std::mutex mutex_;
  std::ostream& err_;
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point start_;
  BatchCounts counts_;
  int64_t last_twentieth_ = 0;
};

}  // namespace quire
