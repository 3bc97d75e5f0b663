#include "client/cache_table.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "client/number_format.h"
#include "client/terminal_text.h"
#include "client/text_table.h"
#include "client/usage_bar.h"

namespace quire {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr int kBarWidth = 50;
constexpr int kAllRows = std::numeric_limits<int>::max();

// The messages, those with the most blocks first; of equals, in the server's order.
template <typename Messages>
auto LargestFirst(const Messages& messages) {
  std::vector<const typename Messages::value_type*> sorted;
  for (const auto& message : messages) sorted.push_back(&message);
  std::stable_sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->blocks() > b->blocks(); });
  return sorted;
}

std::string MoreLine(int num_all, int max_rows) {
  return num_all <= max_rows ? "" : "  and " + FormatCount(num_all - max_rows) + " more\n";
}

std::string RenderBlocks(const v1::CacheStats& stats) {
  std::string text = "KV cache: " + EscapeToOneLine(stats.kv_cache_type()) + ", blocks of " +
                     FormatCount(stats.block_size_tokens()) + " tokens, " + FormatBytes(stats.bytes_per_block()) +
                     " each\n";
  text += "  " + UsageBar(stats.blocks_used(), stats.blocks_cached(), stats.blocks_total(), kBarWidth) + " " +
          FormatDecimal(Percent(stats.blocks_used(), stats.blocks_total()), 1) + " % used, " +
          FormatDecimal(Percent(stats.blocks_cached(), stats.blocks_total()), 1) + " % cached\n";
  return text +
         RenderTable({{"", "blocks", "bytes"},
                      {"# used", FormatCount(stats.blocks_used()), FormatBytes(stats.used_bytes())},
                      {"+ cached", FormatCount(stats.blocks_cached()), FormatBytes(stats.cached_bytes())},
                      {". free", FormatCount(stats.blocks_free()), FormatBytes(stats.free_bytes())},
                      {"  total", FormatCount(stats.blocks_total()), FormatBytes(stats.pool_bytes())},
                      {"  peak used", FormatCount(stats.blocks_peak_used()), FormatBytes(stats.peak_used_bytes())},
                      {"  shared", FormatCount(stats.blocks_shared()), FormatBytes(stats.shared_bytes())},
                      {"  unfilled ends", "", FormatBytes(stats.wasted_bytes())}});
}

std::string RenderMemory(const v1::CacheStats& stats) {
  Rows rows;
  for (const v1::MemoryItem& item : stats.memory_items()) {
    rows.push_back({EscapeToOneLine(item.name()), FormatBytes(item.bytes())});
  }
  rows.push_back({"budget", FormatBytes(stats.budget_bytes())});
  if (stats.process_peak_resident_bytes() > 0) {
    rows.push_back({"resident now", FormatBytes(stats.process_resident_bytes())});
    rows.push_back({"resident at most", FormatBytes(stats.process_peak_resident_bytes())});
  }
  return "\nMemory\n" + RenderTable(rows);
}

std::string RenderPrefixCache(const v1::CacheStats& stats) {
  return "\nPrefix cache\n" +
         RenderTable({{"tokens looked up", FormatCount(stats.prefix_query_tokens())},
                      {"tokens found", FormatCount(stats.prefix_hit_tokens())},
                      {"hit ratio", FormatDecimal(100 * stats.prefix_hit_ratio(), 1) + " %"},
                      {"evictions", FormatCount(stats.evictions())},
                      {"oldest cached block", FormatDecimal(stats.cached_block_age_seconds().max(), 1) + " s"}});
}

std::string RenderWork(const v1::CacheStats& stats) {
  Rows rows = {{"running", FormatCount(stats.requests_running())},
               {"waiting", FormatCount(stats.requests_waiting())},
               {"queued tokens", FormatCount(stats.queued_tokens())},
               {"drained tokens/s", FormatDecimal(stats.drained_tokens_per_second(), 1)},
               {"finished", FormatCount(stats.requests_finished())},
               {"preemptions", FormatCount(stats.preemptions())},
               {"recomputed tokens", FormatCount(stats.recomputed_tokens())},
               {"deferred admissions", FormatCount(stats.deferred_admissions())},
               {"tokens stored", FormatCount(stats.tokens_stored())},
               {"tokens of a step", FormatCount(stats.max_num_step_tokens())},
               {"blocks given back", ReleaseText(stats)}};
  if (stats.invariant_violations() > 0) {
    rows.push_back({"INVARIANTS VIOLATED", FormatCount(stats.invariant_violations())});
  }
  return "\nRequests\n" + RenderTable(rows);
}

}  // namespace

double Percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string ReleaseText(const v1::CacheStats& stats) {
  const v1::Histogram& steps = stats.release_steps();
  int64_t num_all = 0;
  int64_t num_within_a_step = 0;
  for (int i = 0; i < steps.counts_size(); ++i) {
    num_all += steps.counts(i);
    if (i < steps.bounds_size() && steps.bounds(i) <= 1) num_within_a_step += steps.counts(i);
  }
  if (num_all == 0) {
    return "none yet";
  }
  return FormatCount(num_within_a_step) + " of " + FormatCount(num_all) + " within 1 step, at most " +
         FormatDecimal(stats.release_seconds().max(), 3) + " s";
}

std::string RenderTenants(const v1::CacheStats& stats, int max_rows) {
  if (stats.tenants_size() == 0) {
    return "";
  }
  Rows rows = {{"tenant", "weight", "running", "waiting", "blocks", "bytes"}};
  for (const v1::TenantCacheStats* tenant : LargestFirst(stats.tenants())) {
    if (static_cast<int>(rows.size()) > max_rows) break;
    rows.push_back({EscapeToOneLine(tenant->tenant()), FormatDecimal(tenant->weight(), 2),
                    FormatCount(tenant->requests_running()), FormatCount(tenant->requests_waiting()),
                    FormatCount(tenant->blocks()), FormatBytes(tenant->bytes())});
  }
  return "\n" + RenderTable(rows) + MoreLine(stats.tenants_size(), max_rows);
}

std::string RenderRequests(const v1::CacheStats& stats, int max_rows) {
  if (stats.requests_size() == 0) {
    return "";
  }
  Rows rows = {{"request", "tenant", "priority", "state", "blocks", "bytes", "tokens stored", "from cache", "tokens"}};
  for (const v1::RequestCacheStats* request : LargestFirst(stats.requests())) {
    if (static_cast<int>(rows.size()) > max_rows) break;
    rows.push_back({EscapeToOneLine(request->request_id()), EscapeToOneLine(request->tenant()),
                    std::to_string(request->priority()), EscapeToOneLine(request->state()),
                    FormatCount(request->blocks()), FormatBytes(request->bytes()), FormatCount(request->tokens()),
                    FormatCount(request->cached_tokens()), FormatCount(request->total_tokens())});
  }
  return "\n" + RenderTable(rows) + MoreLine(stats.requests_size(), max_rows);
}

std::string RenderCacheStats(const v1::CacheStats& stats) {
  return RenderBlocks(stats) + RenderMemory(stats) + RenderPrefixCache(stats) + RenderWork(stats) +
         RenderTenants(stats, kAllRows) + RenderRequests(stats, kAllRows);
}

std::string RenderCacheConfig(const v1::CacheConfig& config) {
  const std::string step_tokens = FormatCount(config.max_num_batched_tokens()) + " tokens";
  const std::string target = ", as many as take " + FormatDecimal(config.target_step_ms(), 0) + " ms";
  return RenderTable(
      {{"type", EscapeToOneLine(config.kv_cache_type())},
       {"shape", FormatCount(config.num_layers()) + " layers, " + FormatCount(config.num_kv_heads()) + " KV heads of " +
                     FormatCount(config.head_dim())},
       {"token", FormatBytes(config.bytes_per_token())},
       {"block", FormatCount(config.block_size_tokens()) + " tokens, " + FormatBytes(config.bytes_per_block())},
       {"pool", FormatCount(config.blocks_total()) + " blocks, " + FormatBytes(config.pool_bytes())},
       {"prefix caching", config.prefix_caching_enabled() ? "on" : "off"},
       {"prefix hash", EscapeToOneLine(config.prefix_hash())},
       {"eviction", EscapeToOneLine(config.eviction_policy())},
       {"watermark", EscapeToOneLine(config.watermark())},
       {"request", "at most " + FormatCount(config.max_model_len()) + " tokens"},
       {"running", "at most " + FormatCount(config.max_num_seqs()) + " requests"},
       {"waiting", "at most " + FormatCount(config.max_queued_requests()) + " requests, " +
                       FormatCount(config.max_queued_tokens()) + " tokens" +
                       (config.refuse_late_requests() ? ", none that would be late" : "")},
       {"step", "at most " + step_tokens + (config.max_num_batched_tokens_auto() ? target : "")},
       {"priority", "one level for each " + FormatDecimal(config.priority_aging_seconds(), 1) + " s of waiting"}},
      /*all_left=*/true);
}

}  // namespace quire
