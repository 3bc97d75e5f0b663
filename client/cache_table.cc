#include "client/cache_table.h"

#include <algorithm>
#include <vector>

#include "client/number_format.h"
#include "client/terminal_text.h"
#include "client/text_table.h"

namespace quire {
namespace {

constexpr int kBarWidth = 50;

std::string RenderRequests(const v1::CacheStats& stats) {
  std::vector<std::vector<std::string>> rows = {{"request", "state", "blocks", "bytes", "tokens stored", "tokens"}};
  for (const auto& request : stats.requests()) {
    rows.push_back({EscapeToOneLine(request.request_id()), EscapeToOneLine(request.state()),
                    FormatCount(request.blocks()), FormatBytes(request.bytes()), FormatCount(request.tokens()),
                    FormatCount(request.total_tokens())});
  }
  return "\n" + RenderTable(rows);
}

}  // namespace

std::string UsageBar(int64_t used, int64_t cached, int64_t total, int width) {
  const auto cells = [&](int64_t blocks) -> int {
    if (blocks <= 0 || total <= 0) {
      return 0;
    }
    const double share = static_cast<double>(std::min(blocks, total)) / static_cast<double>(total);
    return std::clamp(static_cast<int>(share * width + 0.5), 1, width);
  };
  const int used_cells = cells(used);
  const int cached_cells = std::min(cells(cached), width - used_cells);
  return "[" + std::string(used_cells, '#') + std::string(cached_cells, '+') +
         std::string(width - used_cells - cached_cells, '.') + "]";
}

std::string RenderCacheStats(const v1::CacheStats& stats) {
  const double used_percent = stats.blocks_total() > 0 ? 100.0 * static_cast<double>(stats.blocks_used()) /
                                                             static_cast<double>(stats.blocks_total())
                                                       : 0.0;
  std::string text = "KV cache: " + EscapeToOneLine(stats.kv_cache_type()) + ", blocks of " +
                     FormatCount(stats.block_size_tokens()) + " tokens, " + FormatBytes(stats.bytes_per_block()) +
                     " each\n";
  text += "  " + UsageBar(stats.blocks_used(), stats.blocks_cached(), stats.blocks_total(), kBarWidth) + " " +
          FormatDecimal(used_percent, 1) + " % used\n";
  text += RenderTable({{"", "blocks", "bytes"},
                       {"# used", FormatCount(stats.blocks_used()), FormatBytes(stats.used_bytes())},
                       {"+ cached", FormatCount(stats.blocks_cached()), FormatBytes(stats.cached_bytes())},
                       {". free", FormatCount(stats.blocks_free()), FormatBytes(stats.free_bytes())},
                       {"  total", FormatCount(stats.blocks_total()), FormatBytes(stats.pool_bytes())},
                       {"  peak used", FormatCount(stats.blocks_peak_used()), FormatBytes(stats.peak_used_bytes())}});
  text += "\nMemory\n";
  text += RenderTable({{"weights", FormatBytes(stats.weights_bytes())},
                       {"workspace", FormatBytes(stats.workspace_bytes())},
                       {"KV pool", FormatBytes(stats.pool_bytes())},
                       {"other", FormatBytes(stats.other_bytes())},
                       {"budget", FormatBytes(stats.budget_bytes())}});
  text += "\nRequests\n";
  text += RenderTable({{"running", FormatCount(stats.requests_running())},
                       {"waiting", FormatCount(stats.requests_waiting())},
                       {"preemptions", FormatCount(stats.preemptions())},
                       {"tokens stored", FormatCount(stats.tokens_stored())}});
  if (stats.requests_size() > 0) {
    text += RenderRequests(stats);
  }
  return text;
}

}  // namespace quire
