#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "engine/runtime/engine_loop.h"
#include "tests/support/fake_engine.h"

namespace quire::testing {

// Holds the engine's thread inside a step, so that a test knows where it stands.
class StepGate {
 public:
  // For FakeModelRunner::SetOnExecute.
  void Pass() {
    std::unique_lock lock(mutex_);
    is_inside_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return num_permits_ != 0; });
    if (num_permits_ > 0) --num_permits_;
    is_inside_ = false;
  }
  void WaitUntilInside() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_inside_; });
  }
  void LetOneStepPass() { AddPermits(1); }
  // Lets the step pass that is inside, and returns when the next one is.
  void GoToNextStep() {
    LetOneStepPass();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return num_permits_ == 0 && is_inside_; });
  }
  void Open() { AddPermits(kUnlimited); }

 private:
  static constexpr int kUnlimited = -1;
  void AddPermits(int permits) {
    const std::lock_guard lock(mutex_);
    num_permits_ = permits;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_inside_ = false;
  int num_permits_ = 0;
};

// A loop over an engine of the fake model, whose time is told by a clock of its own.
template <typename SomeClock>
class EngineLoopHarness {
 public:
  explicit EngineLoopHarness(const FakeEngineConfig& config = {}, bool gated = false, const QueueLimits& limits = {}) {
    FakeEngine fake = MakeFakeEngine(config, &clock);
    if (gated) fake.runner->SetOnExecute([this] { gate.Pass(); });
    fake.runner->SetRecording(false);
    loop = std::make_unique<EngineLoop>(std::move(fake.engine), limits);
  }
  // A test that has failed leaves nothing hanging.
  ~EngineLoopHarness() { gate.Open(); }

  GenerationRequest Request(const std::vector<TokenId>& prompt, std::optional<int64_t> max_tokens,
                            const std::shared_ptr<RecordingSink>& sink) const {
    return GreedyRequest(prompt, max_tokens, sink, clock);
  }
  // Must be accepted.
  std::shared_ptr<RecordingSink> Submit(std::optional<int64_t> max_tokens, RequestId* id = nullptr) {
    auto sink = std::make_shared<RecordingSink>();
    const auto submitted = loop->Submit(Request(prompt, max_tokens, sink));
    REQUIRE(submitted.ok());
    if (id != nullptr) *id = *submitted;
    return sink;
  }

  const std::vector<TokenId> prompt = {5, 6, 7};
  SomeClock clock;  // this and the gate outlive the loop
  StepGate gate;
  std::unique_ptr<EngineLoop> loop;
};

}  // namespace quire::testing
