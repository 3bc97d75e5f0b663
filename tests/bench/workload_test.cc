#include "bench/workload.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <map>

#include "bench/trace.h"
#include "tests/support/temp_dir.h"

namespace quire {
namespace {

Workload ChatWorkload() {
  return {.num_requests = 500,
          .max_request_tokens = 4096,
          .tenants = {{.name = "a", .share = 3}, {.name = "b", .share = 1}},
          .priorities = {{.priority = 0, .share = 1}, {.priority = 5, .share = 1}},
          .system_prompt_share = 0.5,
          .mean_turns = 3,
          .cancel_probability = 0.2};
}

TEST_CASE("The same workload makes the same trace, another seed another one") {
  Workload workload = ChatWorkload();
  const testing::TempDir folder;
  const auto text = [&](const Trace& trace) {
    REQUIRE(WriteTrace(trace, folder.File("trace")).ok());
    std::ifstream file(folder.File("trace"));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string first = text(MakeTrace(workload));
  CHECK(text(MakeTrace(workload)) == first);
  workload.seed = 2;
  CHECK(text(MakeTrace(workload)) != first);
}

TEST_CASE("A workload has the asked shares, median and rate") {
  const Trace trace = MakeTrace({.num_requests = 20000,
                                 .requests_per_second = 4,
                                 .max_request_tokens = 1 << 20,
                                 .tenants = {{.name = "a", .share = 3}, {.name = "b", .share = 1}}});
  REQUIRE(trace.size() == 20000);
  std::vector<int64_t> lengths;
  for (const TraceRequest& request : trace) lengths.push_back(request.prompt_tokens);
  std::nth_element(lengths.begin(), lengths.begin() + 10000, lengths.end());
  const auto num_of_a = std::count_if(trace.begin(), trace.end(), [](const auto& r) { return r.tenant == "a"; });
  // Four standard deviations of each estimate.
  CHECK(std::abs(static_cast<double>(lengths[10000]) - 400) < 10);
  CHECK(std::abs(static_cast<double>(num_of_a) / 20000 - 0.75) < 0.013);
  CHECK(std::abs(trace.back().arrival_seconds - 5000) < 142);
}

TEST_CASE("A later turn's prompt repeats the earlier turn's prompt and output") {
  const Trace trace = MakeTrace(ChatWorkload());
  std::map<int64_t, size_t> last_turns;
  int num_later_turns = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    const TraceRequest& turn = trace[i];
    const auto [last, is_first] = last_turns.try_emplace(*turn.conversation_id, i);
    if (is_first) continue;
    const TraceRequest& before = trace[last->second];
    const int64_t num_repeated = before.prompt_tokens + before.output_tokens;
    REQUIRE(turn.prompt_tokens > num_repeated);
    for (int64_t position = 0; position < num_repeated; ++position) {
      REQUIRE(TokenAt(turn, static_cast<int64_t>(i), position) ==
              TokenAt(before, static_cast<int64_t>(last->second), position));
    }
    last->second = i;
    ++num_later_turns;
  }
  CHECK(num_later_turns > 100);
}

TEST_CASE("A trace is read back as it was written, and wrong lines are named") {
  const testing::TempDir folder;
  const std::string path = folder.File("trace.jsonl");
  const Trace trace = MakeTrace(ChatWorkload());
  REQUIRE(WriteTrace(trace, path).ok());
  const auto read = ReadTrace(path);
  REQUIRE(read.ok());
  REQUIRE(WriteTrace(*read, folder.File("again.jsonl")).ok());
  std::ifstream first(path);
  std::ifstream second(folder.File("again.jsonl"));
  CHECK(std::string(std::istreambuf_iterator<char>(first), {}) ==
        std::string(std::istreambuf_iterator<char>(second), {}));

  for (const char* line : {R"({"arrival_seconds": 1, "prompt_tokens": 1})", "{",
                           R"({"arrival_seconds": 1, "prompt_tokens": 1, "output_tokens": "x"})",
                           R"({"arrival_seconds": -1, "prompt_tokens": 1, "output_tokens": 1})",
                           R"({"arrival_seconds": 1, "prompt_tokens": 1, "output_tokens": 1, "prefix_tokens": 2})"}) {
    std::ofstream(path) << R"({"arrival_seconds": 1, "prompt_tokens": 1, "output_tokens": 1})" << '\n' << line << '\n';
    const auto wrong = ReadTrace(path);
    INFO(line);
    REQUIRE_FALSE(wrong.ok());
    CHECK(wrong.status().message().find("line 2") != std::string::npos);
  }
}

}  // namespace
}  // namespace quire
