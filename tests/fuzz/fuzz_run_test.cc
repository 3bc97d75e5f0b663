// The driver itself: that what a target does wrong is found, and that its input can be made again.
#include "tests/fuzz/fuzz_run.h"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace quire::testing {
namespace {

const std::vector<std::string> kCorpus = {"harmless text of 12 words", "another: {\"n\": 345}"};
constexpr std::string_view kWords[] = {"word"};

// Passes a stage for each of the corpus' files' first letters, and does something to inputs that hold a '!'.
class TestTarget final : public FuzzTarget {
 public:
  explicit TestTarget(std::function<void()> on_mark) : on_mark_(std::move(on_mark)) {}

  size_t Run(std::string_view input) override {
    if (input.find('!') != input.npos) on_mark_();
    return input.starts_with("h") ? 1 : input.starts_with("a") ? 2 : 0;
  }

 private:
  std::function<void()> on_mark_;
};

FuzzResult Run(const std::function<void()>& on_mark, uint64_t first, uint64_t num_inputs, FuzzLimits limits = {}) {
  const Mutator mutator(kCorpus, kWords, /*seed=*/7);
  const auto make_target = [&] {
    std::signal(SIGABRT, SIG_DFL);  // the process of the inputs reports nothing to Catch2
    return std::make_unique<TestTarget>(on_mark);
  };
  return RunFuzz(make_target, mutator, first, num_inputs, limits, [](uint64_t) {});
}

TEST_CASE("an input follows from seed and number alone") {
  const Mutator mutator(kCorpus, kWords, 7);
  const std::string before = mutator.Input(1000);
  CHECK(mutator.Input(3) != before);
  CHECK(Mutator(kCorpus, kWords, 7).Input(1000) == before);
  CHECK(Mutator(kCorpus, kWords, 8).Input(1000) != before);
}

TEST_CASE("the corpus comes first, and mutations differ and keep to their size") {
  const Mutator mutator(kCorpus, kWords, 7);
  CHECK(mutator.Input(0) == kCorpus[0]);
  CHECK(mutator.Input(1) == kCorpus[1]);
  std::set<std::string> different;
  for (uint64_t index = 2; index < 1002; ++index) {
    const std::string input = mutator.Input(index);
    CHECK(input.size() <= kMaxFuzzInputBytes);
    different.insert(input);
  }
  CHECK(different.size() > 700);
}

TEST_CASE("stages are counted") {
  const FuzzResult result = Run([] {}, 0, 2);
  CHECK_FALSE(result.finding);
  CHECK(result.num_inputs == 2);
  CHECK(result.num_passed[0] == 2);
  CHECK(result.num_passed[1] == 1);
}

TEST_CASE("whatever ends the process is found with its input, which alone does it again") {
  for (const std::function<void()>& end :
       {std::function<void()>([] { std::abort(); }), {[] { std::_Exit(0); }}, {[] { std::_Exit(3); }}, {[] {
          throw std::runtime_error("wrong");
        }}}) {
    const FuzzResult result = Run(end, 0, 5000);
    REQUIRE(result.finding);
    const uint64_t index = result.finding->index;
    CHECK(Mutator(kCorpus, kWords, 7).Input(index).find('!') != std::string::npos);
    CHECK(result.num_inputs == index);
    CHECK(Run(end, index, 1).finding);
    CHECK_FALSE(Run(end, 0, index).finding);
  }
}

TEST_CASE("an input that never ends, and one that takes memory, are found") {
  const auto hang = [] {
    for (volatile bool forever = true; forever;) continue;
  };
  const FuzzResult held = Run(hang, 0, 5000, {.hang = std::chrono::seconds(0)});
  REQUIRE(held.finding);
  CHECK(held.finding->what.starts_with("it took more than"));
  const auto wait = [] { pause(); };
  const FuzzResult waiting = Run(wait, 0, 5000, {.hang = std::chrono::seconds(0)});
  REQUIRE(waiting.finding);
  CHECK(waiting.finding->what.starts_with("it took more than"));
  const FuzzResult large = Run(hang, 0, 5000, {.resident_bytes = 1});
  REQUIRE(large.finding);
  CHECK(large.finding->what.starts_with("the process took"));
}

}  // namespace
}  // namespace quire::testing
