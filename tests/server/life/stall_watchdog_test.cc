// An engine that hangs is told from one that works or rests; time moves only when a test moves it.
#include "server/life/stall_watchdog.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>

#include "tests/server/gate.h"
#include "tests/server/test_server.h"
#include "tests/support/fake_clock.h"

namespace quire::testing {
namespace {

using grpc::health::v1::HealthCheckResponse;
using std::chrono::seconds;

EngineProgress Working(int64_t num_steps, double predicted_step_seconds = 0) {
  return {.num_steps = num_steps,
          .num_open_requests = 1,
          .stage = StepStage::kExecute,
          .predicted_step_seconds = predicted_step_seconds};
}

TEST_CASE("an engine stalls when work waits and no step ends") {
  FakeClock clock;
  StallDetector detector(30);
  const auto after = [&](int64_t num_seconds, const EngineProgress& progress) {
    clock.Advance(seconds(num_seconds));
    return detector.Observe(progress, clock.Now());
  };
  CHECK_FALSE(after(0, Working(0)));
  CHECK_FALSE(after(29, Working(0)));
  CHECK(after(1, Working(0)));
  CHECK(detector.seconds_without_progress() == 30);
  CHECK(after(1000, Working(0)));
  CHECK_FALSE(after(1, Working(1)));  // it goes on
  CHECK_FALSE(after(29, Working(1)));
  CHECK_FALSE(after(29, Working(2)));
}

TEST_CASE("an engine without work does not stall, however long") {
  FakeClock clock;
  StallDetector detector(30);
  for (int i = 0; i < 10; ++i) {
    CHECK_FALSE(detector.Observe({}, clock.Now()));
    clock.Advance(seconds(1000));
  }
  CHECK_FALSE(detector.Observe({}, clock.Now()));
  CHECK_FALSE(detector.Observe(Working(0), clock.Now()));  // work has just come
  clock.Advance(seconds(30));
  CHECK(detector.Observe(Working(0), clock.Now()));
}

TEST_CASE("steps predicted to be long get five times their prediction") {
  FakeClock clock;
  StallDetector detector(30);
  CHECK_FALSE(detector.Observe(Working(3, 10), clock.Now()));
  clock.Advance(seconds(49));
  CHECK_FALSE(detector.Observe(Working(3, 10), clock.Now()));
  clock.Advance(seconds(1));
  CHECK(detector.Observe(Working(3, 10), clock.Now()));
}

TEST_CASE("health says NOT_SERVING while the engine hangs and SERVING when it goes on") {
  FakeClock clock;
  Gate gate;
  TestServer server({.execute_gate = &gate, .stall_seconds = 0.1, .clock = &clock});
  grpc::ClientContext context;
  const auto reader = server.generation().GenerateStream(&context, TextRequest("p"));
  gate.WaitUntilHeld();
  CHECK(HealthOf(server.channel(), "") == HealthCheckResponse::SERVING);
  // Once it has looked at the held step, a moved clock tells it that the step does not end.
  const auto hangs = [&](const char* service) {
    clock.Advance(seconds(1));
    return HealthOf(server.channel(), service) == HealthCheckResponse::NOT_SERVING;
  };
  int num_polls = 0;
  while (!hangs("") && num_polls < 20000) ++num_polls;
  CHECK(num_polls < 20000);
  CHECK(PollHealth(server.channel(), "quire.v1.Generation", HealthCheckResponse::NOT_SERVING));
  CHECK(PollHealth(server.channel(), "quire.v1.Cache", HealthCheckResponse::NOT_SERVING));
  gate.Open();
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) continue;
  CHECK(reader->Finish().ok());
  CHECK(PollHealth(server.channel(), "", HealthCheckResponse::SERVING));
  CHECK(PollHealth(server.channel(), "quire.v1.Generation", HealthCheckResponse::SERVING));
}

}  // namespace
}  // namespace quire::testing
