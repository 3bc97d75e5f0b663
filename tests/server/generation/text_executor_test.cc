#include "server/generation/text_executor.h"

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
    TextExecutor executor(4, 8, 1 << 20);
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
  TextExecutor executor(2, 2, 1 << 20);
  REQUIRE(executor
              .PostEncode(1,
                          [&] {
                            started.count_down();
                            release.wait();
                          })
              .ok());
  started.wait();
  CHECK(executor.PostEncode(1, [] {}).ok());
  CHECK(executor.PostEncode(1, [] {}).ok());
  const absl::Status full = executor.PostEncode(1, [] {});
  CHECK(full.code() == absl::StatusCode::kResourceExhausted);
  CHECK(RetryDelayOf(full).has_value());

  std::promise<void> ran;
  executor.NewStrand()->Post([&ran] { ran.set_value(); });
  ran.get_future().wait();
  release.count_down();
}

TEST_CASE("the bytes of prompts that wait are bounded, and given back when they are encoded") {
  std::latch release(1);
  std::promise<bool> first_was_given_back;
  TextExecutor executor(2, 8, 100);
  REQUIRE(executor.PostEncode(60, [&] { release.wait(); }).ok());
  const absl::Status full = executor.PostEncode(41, [] {});
  CHECK(full.code() == absl::StatusCode::kResourceExhausted);
  CHECK(RetryDelayOf(full).has_value());
  // While these 40 bytes are encoded 60 more fit, because the first 60 have been given back.
  const auto second = [&] { first_was_given_back.set_value(executor.PostEncode(60, [] {}).ok()); };
  CHECK(executor.PostEncode(40, second).ok());
  CHECK(!executor.PostEncode(1, [] {}).ok());
  release.count_down();
  CHECK(first_was_given_back.get_future().get());
}

TEST_CASE("a prompt longer than the bound is encoded alone") {
  std::promise<void> encoded;
  TextExecutor executor(2, 8, 100);
  REQUIRE(executor.PostEncode(101, [&] { encoded.set_value(); }).ok());
  encoded.get_future().wait();
}

TEST_CASE("what an encoding job posts at shutdown still runs") {
  bool ran = false;
  {
    TextExecutor executor(2, 8, 1 << 20);
    const auto strand = executor.NewStrand();
    REQUIRE(executor.PostEncode(1, [&ran, strand] { strand->Post([&ran] { ran = true; }); }).ok());
  }
  CHECK(ran);
}

}  // namespace
}  // namespace quire
