#include "server/text_executor.h"

#include <catch2/catch_test_macros.hpp>
#include <future>
#include <latch>
#include <vector>

#include "engine/base/status.h"

namespace quire {
namespace {

TEST_CASE("jobs of a strand run in order, one at a time") {
  constexpr int kJobs = 1000;
  std::vector<int> first;
  std::vector<int> second;
  {
    TextExecutor executor(4, 8);
    const auto a = executor.NewStrand();
    const auto b = executor.NewStrand();
    for (int i = 0; i < kJobs; ++i) {
      a->Post([&first, i] { first.push_back(i); });
      b->Post([&second, i] { second.push_back(i); });
    }
  }
  REQUIRE(first.size() == kJobs);
  REQUIRE(second.size() == kJobs);
  for (int i = 0; i < kJobs; ++i) {
    CHECK(first[static_cast<size_t>(i)] == i);
    CHECK(second[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("prompts that take long hold up no strand, and their queue is bounded") {
  std::latch release(1);
  std::latch started(1);
  TextExecutor executor(2, 2);
  REQUIRE(executor
              .PostEncode([&] {
                started.count_down();
                release.wait();
              })
              .ok());
  started.wait();
  CHECK(executor.PostEncode([] {}).ok());
  CHECK(executor.PostEncode([] {}).ok());
  const absl::Status full = executor.PostEncode([] {});
  CHECK(full.code() == absl::StatusCode::kResourceExhausted);
  CHECK(RetryDelayOf(full).has_value());

  std::promise<void> ran;
  executor.NewStrand()->Post([&ran] { ran.set_value(); });
  ran.get_future().wait();
  release.count_down();
}

TEST_CASE("what an encoding job posts at shutdown still runs") {
  bool ran = false;
  {
    TextExecutor executor(2, 8);
    const auto strand = executor.NewStrand();
    REQUIRE(executor.PostEncode([&ran, strand] { strand->Post([&ran] { ran = true; }); }).ok());
  }
  CHECK(ran);
}

}  // namespace
}  // namespace quire
