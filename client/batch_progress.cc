#include "client/batch_progress.h"

#include <algorithm>
#include <ostream>

#include "client/number_format.h"

namespace quire {

std::string ProgressText(const BatchCounts& counts, double elapsed_seconds, bool with_bar) {
  constexpr int64_t kBarWidth = 30;
  const int64_t num_done = counts.NumDone();
  std::string text;
  if (with_bar) {
    const int64_t num_cells = counts.num_total > 0 ? kBarWidth * num_done / counts.num_total : kBarWidth;
    text += "[" + std::string(num_cells, '#') + std::string(kBarWidth - num_cells, '.') + "] ";
  }
  text += FormatCount(num_done) + "/" + FormatCount(counts.num_total);
  if (counts.num_failed > 0) {
    text += ", " + FormatCount(counts.num_failed) + " failed";
  }
  const int64_t num_asked = counts.num_answered + counts.num_failed;
  if (num_asked > 0 && elapsed_seconds > 0) {
    const double per_second = static_cast<double>(num_asked) / elapsed_seconds;
    text += ", " + FormatDecimal(per_second, 1) + "/s, " +
            FormatDecimal(static_cast<double>(counts.num_total - num_done) / per_second, 0) + " s left";
  }
  return text;
}

BatchProgress::BatchProgress(std::ostream& err, bool is_terminal, const BatchCounts& counts)
    : err_(err), is_terminal_(is_terminal), start_(std::chrono::steady_clock::now()), counts_(counts) {}

void BatchProgress::AddSkipped() {
  const std::lock_guard lock(mutex_);
  ++counts_.num_skipped;
}

void BatchProgress::AddAnswered() {
  const std::lock_guard lock(mutex_);
  ++counts_.num_answered;
  Show();
}

void BatchProgress::AddFailed() {
  const std::lock_guard lock(mutex_);
  ++counts_.num_failed;
  Show();
}

void BatchProgress::Finish() {
  const std::lock_guard lock(mutex_);
  if (is_terminal_) {
    Show();
    err_ << std::endl;
  }
}

BatchCounts BatchProgress::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void BatchProgress::Show() {
  const double elapsed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (is_terminal_) {
    err_ << "\r\x1b[K" << ProgressText(counts_, elapsed_seconds, /*with_bar=*/true) << std::flush;
    return;
  }
  const int64_t twentieth = 20 * counts_.NumDone() / std::max<int64_t>(counts_.num_total, 1);
  if (twentieth > last_twentieth_) {
    last_twentieth_ = twentieth;
    err_ << ProgressText(counts_, elapsed_seconds, /*with_bar=*/false) << std::endl;
  }
}

}  // namespace quire
