// Counts heap allocations: this binary replaces operator new, so it holds nothing else.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "engine/runtime/engine.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_engine.h"

namespace {

std::atomic<int64_t> num_allocations = 0;

}  // namespace

void* operator new(size_t size_bytes) {
  ++num_allocations;
  if (void* memory = std::malloc(size_bytes == 0 ? 1 : size_bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace quire {
namespace {

// Takes tokens without keeping them.
class DiscardingSink : public TokenSink {
 public:
  void OnPromptLogprobs(std::vector<PositionLogprobs>) override {}
  void OnTokens(std::vector<OutputToken>) override {}
  void OnFinish(const GenerationResult&) override {}
};

TEST_CASE("a steady decode step allocates nothing but the vectors that sinks are given") {
  constexpr int64_t kNumRequests = 8;
  constexpr int64_t kNumSteps = 50;
  testing::FakeClock clock;
  const testing::FakeEngine fake = testing::MakeFakeEngine({}, &clock);
  fake.runner->SetRecording(false);
  for (int64_t i = 0; i < kNumRequests; ++i) {
    GenerationRequest request =
        testing::GreedyRequest({1, 2, static_cast<TokenId>(i)}, 200, std::make_shared<DiscardingSink>(), clock);
    if (i % 2 == 1) {
      request.sampling.temperature = 0.7F;
      request.sampling.top_k = i == 1 ? 20 : 0;
      request.sampling.top_p = 0.9F;
      request.sampling.repetition_penalty = 1.1F;
    }
    fake.engine->AddRequest(RequestId{static_cast<uint64_t>(i + 1)}, std::move(request));
  }
  for (int i = 0; i < 3; ++i) REQUIRE(fake.engine->Step() == StepOutcome::kRan);
#ifdef NDEBUG
  const int64_t before = num_allocations;
  for (int64_t i = 0; i < kNumSteps; ++i) (void)fake.engine->Step();
  CHECK(num_allocations - before == kNumSteps * kNumRequests);
#else
  (void)kNumSteps;
  SKIP("Debug builds validate invariants in every step, which allocates");
#endif
}

}  // namespace
}  // namespace quire
