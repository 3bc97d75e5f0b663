#include "client/cache_view.h"

#include <algorithm>
#include <vector>

#include "client/cache_table.h"
#include "client/number_format.h"
#include "client/terminal_text.h"
#include "client/text_table.h"
#include "client/usage_bar.h"

namespace quire {
namespace {

void Push(double value, std::deque<double>& history) {
  history.push_back(value);
  if (history.size() > CacheView::kHistoryLength) {
    history.pop_front();
  }
}

std::string HistoryLine(const std::deque<double>& values, double max, const std::string& label) {
  const std::string padding(CacheView::kHistoryLength - values.size(), ' ');
  return "  [" + padding + Sparkline(std::vector<double>(values.begin(), values.end()), max) + "] " + label + "\n";
}

std::string Figures(const v1::CacheStats& stats) {
  return RenderTable({{"used", FormatCount(stats.blocks_used()), FormatBytes(stats.used_bytes()), "  running",
                       FormatCount(stats.requests_running()), "  prefix hits",
                       FormatDecimal(100 * stats.prefix_hit_ratio(), 1) + " %"},
                      {"cached", FormatCount(stats.blocks_cached()), FormatBytes(stats.cached_bytes()), "  waiting",
                       FormatCount(stats.requests_waiting()), "  evictions", FormatCount(stats.evictions())},
                      {"free", FormatCount(stats.blocks_free()), FormatBytes(stats.free_bytes()), "  queued tokens",
                       FormatCount(stats.queued_tokens()), "  preemptions", FormatCount(stats.preemptions())},
                      {"total", FormatCount(stats.blocks_total()), FormatBytes(stats.pool_bytes()), "  finished",
                       FormatCount(stats.requests_finished()), "  peak used", FormatBytes(stats.peak_used_bytes())}});
}

}  // namespace

std::string CacheView::Frame(const v1::CacheStats& stats, double seconds) {
  Remember(stats, seconds);
  std::string text = "KV cache " + FormatBytes(stats.pool_bytes()) + " of a budget of " +
                     FormatBytes(stats.budget_bytes()) + ", " + EscapeToOneLine(stats.kv_cache_type()) + "\n";
  text += "  " +
          UsageBar(stats.blocks_used(), stats.blocks_cached(), stats.blocks_total(), kHistoryLength, kTerminalCells) +
          " " + kTerminalCells.used + " " + FormatDecimal(Percent(stats.blocks_used(), stats.blocks_total()), 1) +
          " % used  " + kTerminalCells.cached + " " +
          FormatDecimal(Percent(stats.blocks_cached(), stats.blocks_total()), 1) + " % cached\n";
  text += HistoryLine(used_ratios_, 1.0, "used, of the pool");
  const double max_rate = output_rates_.empty() ? 0 : *std::max_element(output_rates_.begin(), output_rates_.end());
  const double rate = output_rates_.empty() ? 0 : output_rates_.back();
  text += HistoryLine(output_rates_, max_rate, FormatDecimal(rate, 1) + " output tokens/s");
  text += "\n" + Figures(stats) + RenderTenants(stats, kMaxRows) + RenderRequests(stats, kMaxRows);
  return text;
}

void CacheView::Remember(const v1::CacheStats& stats, double seconds) {
  Push(Percent(stats.blocks_used(), stats.blocks_total()) / 100, used_ratios_);
  if (last_output_tokens_ >= 0 && seconds > last_seconds_) {
    Push(static_cast<double>(stats.output_tokens() - last_output_tokens_) / (seconds - last_seconds_), output_rates_);
  }
  last_seconds_ = seconds;
  last_output_tokens_ = stats.output_tokens();
}

}  // namespace quire
