// Pure functions that shape what is shown: escapes, numbers, tables, JSON.
#include <catch2/catch_test_macros.hpp>

#include <limits>
#include <string>
#include <vector>

#include "client/batch_progress.h"
#include "client/cache_table.h"
#include "client/cache_view.h"
#include "client/message_json.h"
#include "client/number_format.h"
#include "client/terminal_text.h"
#include "client/text_table.h"
#include "client/usage_bar.h"
#include "client/utf8.h"
#include "quire/v1/generation.pb.h"

namespace quire {
namespace {

TEST_CASE("EscapeControls spells out what could drive a terminal") {
  CHECK(EscapeControls("plain\n\ttext") == "plain\n\ttext");
  CHECK(EscapeControls("\x1b[2J\x1b]0;title\x07") == "\\x1b[2J\\x1b]0;title\\x07");
  CHECK(EscapeControls("a\rb\bc\x7f") == "a\\x0db\\x08c\\x7f");
  CHECK(EscapeControls(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(EscapeControls("\xc2\x9b"
                       "31m") == "\\u009b31m");  // CSI as one character
  CHECK(EscapeControls("\x9b"
                       "31m") == "\\x9b31m");  // CSI as one byte
  CHECK(EscapeControls("caf\xc3\xa9 \xf0\x9f\x98\x80") == "caf\xc3\xa9 \xf0\x9f\x98\x80");
  CHECK(EscapeControls("\xf0\x9f\x98") == "\\xf0\\x9f\\x98");
}

TEST_CASE("EscapeToOneLine keeps a cell on its line") { CHECK(EscapeToOneLine("a\n\tb") == "a\\n\\tb"); }

TEST_CASE("UTF-8 is checked as the standard says") {
  CHECK(IsValidUtf8(""));
  CHECK(IsValidUtf8("\xf4\x8f\xbf\xbf"));
  CHECK_FALSE(IsValidUtf8("\xf4\x90\x80\x80"));  // above U+10FFFF
  CHECK_FALSE(IsValidUtf8("\xc0\x80"));          // overlong
  CHECK_FALSE(IsValidUtf8("\xed\xa0\x80"));      // surrogate
  CHECK_FALSE(IsValidUtf8("\x80"));
  CHECK_FALSE(IsValidUtf8("\xe2\x82"));
}

TEST_CASE("bytes are shown in the unit that fits") {
  CHECK(FormatBytes(0) == "0 B");
  CHECK(FormatBytes(1023) == "1023 B");
  CHECK(FormatBytes(1024) == "1.0 KiB");
  CHECK(FormatBytes(23040) == "22.5 KiB");
  CHECK(FormatBytes((1 << 20) - 1) == "1.0 MiB");
  CHECK(FormatBytes(int64_t{3} << 30) == "3.0 GiB");
  CHECK(FormatBytes(int64_t{5000} << 40) == "5000.0 TiB");
}

TEST_CASE("counts have their thousands apart") {
  CHECK(FormatCount(0) == "0");
  CHECK(FormatCount(999) == "999");
  CHECK(FormatCount(1000) == "1,000");
  CHECK(FormatCount(134515008) == "134,515,008");
  CHECK(FormatCount(-1234) == "-1,234");
  CHECK(FormatCount(-123) == "-123");
}

TEST_CASE("a table's columns are aligned by characters") {
  CHECK(RenderTable({{"a", "1"}, {"\xc3\xa9\xc3\xa9", "22"}, {"last"}}) ==
        "  a      1\n  \xc3\xa9\xc3\xa9    22\n  last\n");
  CHECK(RenderTable({{"a", "1"}, {"bb", "22"}}, true) == "  a   1\n  bb  22\n");
}

TEST_CASE("the usage bar shows small shares too and never overflows") {
  CHECK(UsageBar(0, 0, 100, 10) == "[..........]");
  CHECK(UsageBar(1, 1, 1000, 10) == "[#+........]");
  CHECK(UsageBar(50, 30, 100, 10) == "[#####+++..]");
  CHECK(UsageBar(96, 4, 100, 10) == "[##########]");
  CHECK(UsageBar(7, 0, 0, 10) == "[..........]");
}

TEST_CASE("a bar on a terminal has its own cells") { CHECK(UsageBar(1, 1, 4, 4, kTerminalCells) == "[█▒··]"); }

TEST_CASE("a sparkline is as high as the values' share") {
  const std::vector<double> values = {0, 0.01, 0.5, 1, 2, -1};
  CHECK(Sparkline(values, 1) == " ▁▄██ ");
  CHECK(Sparkline(values, 0) == "      ");
  CHECK(Sparkline({}, 1).empty());
}

TEST_CASE("cache statistics become a readable table") {
  v1::CacheStats stats;
  stats.set_kv_cache_type("bf16");
  stats.set_block_size_tokens(16);
  stats.set_bytes_per_block(368640);
  stats.set_blocks_total(1000);
  stats.set_blocks_used(250);
  stats.set_used_bytes(250 * 368640);
  stats.set_budget_bytes(int64_t{1} << 30);
  CHECK(RenderCacheStats(stats).find("360.0 KiB each") != std::string::npos);
  CHECK(RenderCacheStats(stats).find("25.0 % used") != std::string::npos);
  CHECK(RenderCacheStats(stats).find("  # used              250  87.9 MiB\n") != std::string::npos);
  CHECK(RenderCacheStats(stats).find("1.0 GiB") != std::string::npos);
  CHECK(RenderCacheStats(stats).find("request ") == std::string::npos);
  v1::MemoryItem& item = *stats.add_memory_items();
  item.set_name("weights");
  item.set_bytes(1024);
  CHECK(RenderCacheStats(stats).find("weights  1.0 KiB") != std::string::npos);
  CHECK(RenderCacheStats(stats).find("resident") == std::string::npos);
  stats.set_process_resident_bytes(int64_t{2} << 30);
  stats.set_process_peak_resident_bytes(int64_t{3} << 30);
  CHECK(RenderCacheStats(stats).find("resident at most  3.0 GiB") != std::string::npos);
  stats.set_prefix_hit_ratio(0.125);
  CHECK(RenderCacheStats(stats).find("12.5 %") != std::string::npos);
  stats.add_requests()->set_request_id("evil\x1b[2J");
  CHECK(RenderCacheStats(stats).find("evil\\x1b[2J") != std::string::npos);
}

TEST_CASE("the largest holders come first, and what has no room is counted") {
  v1::CacheStats stats;
  for (int i = 0; i < 5; ++i) {
    v1::RequestCacheStats& request = *stats.add_requests();
    request.set_request_id("r" + std::to_string(i));
    request.set_blocks(i);
  }
  const std::string table = RenderRequests(stats, 2);
  CHECK(table.find("r4") < table.find("r3"));
  CHECK(table.find("r2") == std::string::npos);
  CHECK(table.find("and 3 more") != std::string::npos);
  CHECK(RenderTenants(stats, 2).empty());
  v1::TenantCacheStats& tenant = *stats.add_tenants();
  tenant.set_tenant("acme\n");
  tenant.set_weight(2);
  CHECK(RenderTenants(stats, 2).find("acme\\n    2.00") != std::string::npos);
}

TEST_CASE("releases are told as steps and seconds") {
  v1::CacheStats stats;
  CHECK(ReleaseText(stats) == "none yet");
  for (const double bound : {0.0, 1.0, 2.0}) stats.mutable_release_steps()->add_bounds(bound);
  for (const int64_t count : {3, 4, 1, 0}) stats.mutable_release_steps()->add_counts(count);
  stats.mutable_release_seconds()->set_max(0.0125);
  CHECK(ReleaseText(stats) == "7 of 8 within 1 step, at most 0.013 s");
}

TEST_CASE("the live view draws the history of what it was told") {
  CacheView view;
  v1::CacheStats stats;
  stats.set_blocks_total(100);
  stats.set_blocks_used(50);
  const std::string first = view.Frame(stats, 10);
  CHECK(first.find("█ 50.0 % used") != std::string::npos);
  CHECK(first.find(" ▄] used") != std::string::npos);
  CHECK(first.find("0.0 output tokens/s") != std::string::npos);
  stats.set_blocks_used(100);
  stats.set_output_tokens(30);
  const std::string second = view.Frame(stats, 12);
  CHECK(second.find(" ▄█] used") != std::string::npos);
  CHECK(second.find("█] 15.0 output tokens/s") != std::string::npos);
  for (int i = 0; i < 100; ++i) view.Frame(stats, 13 + i);
  const std::string last = view.Frame(stats, 200);
  CHECK(last.find("▄") == std::string::npos);
  CHECK(last.find("0.0 output tokens/s") != std::string::npos);
}

TEST_CASE("messages become JSON with numbers, lower-case enums and no unset fields") {
  v1::Output output;
  output.set_text("hi");
  output.add_token_ids(7);
  output.set_finish_reason(v1::FINISH_REASON_STOP_STRING);
  CHECK(MessageJson(output).dump() ==
        R"({"index":0,"text":"hi","token_ids":[7],"logprobs":[],"finish_reason":"stop_string"})");
  v1::CacheStats stats;
  stats.set_budget_bytes(std::numeric_limits<int64_t>::max());
  CHECK(MessageJson(stats)["budget_bytes"].dump() == "9223372036854775807");
  CHECK(MessageJson(v1::SamplingParams()).contains("temperature") == false);
  CHECK(MessageJson(v1::GenerateResponse()).contains("usage") == false);
}

TEST_CASE("a JSON line for a terminal is ASCII") {
  CHECK(JsonLine(Json{{"t", "\xc2\x9b\x7f"}}, true) == "{\"t\":\"\\u009b\\u007f\"}\n");
  CHECK(JsonLine(Json{{"t", "\xc3\xa9"}}, false) == "{\"t\":\"\xc3\xa9\"}\n");
}

TEST_CASE("progress counts earlier answers, but not in the rate") {
  const BatchCounts counts{.num_total = 20, .num_skipped = 10, .num_answered = 4, .num_failed = 1};
  CHECK(ProgressText(counts, 2.0, false) == "15/20, 1 failed, 2.5/s, 2 s left");
  CHECK(ProgressText(counts, 2.0, true).starts_with("[######################........] 15/20"));
}

}  // namespace
}  // namespace quire
