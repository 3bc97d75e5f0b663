#include "server/grpc/load_report.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/connected_channel.h"
#include "tests/server/gate.h"
#include "tests/server/tcp_relay.h"
#include "tests/server/test_server.h"
#include "tests/support/fake_clock.h"
#include "xds/data/orca/v3/orca_load_report.pb.h"

namespace quire::testing {
namespace {

using Catch::Matchers::WithinAbs;
class NoSink : public TokenSink {
 public:
  void OnPromptLogprobs(std::vector<PositionLogprobs>) override {}
  void OnTokens(std::vector<OutputToken>) override {}
  void OnFinish(const GenerationResult&) override {}
};

using Report = xds::data::orca::v3::OrcaLoadReport;

// gRPC's C++ client keeps this trailer to itself: it is looked for in the bytes.
TEST_CASE("every call of the API tells the load, failed ones too, and no other") {
  TestServer server;
  const auto is_told = [&](const auto& call) {
    TcpRelay relay(server.address());
    call(ConnectedChannel(relay.address()));
    return relay.from_server().find("endpoint-load-metrics-bin") != std::string::npos;
  };
  const auto generate = [](const std::string& model) {
    return [model](const std::shared_ptr<grpc::Channel>& channel) {
      grpc::ClientContext context;
      v1::GenerateRequest request = TextRequest("abc");
      request.set_model(model);
      v1::GenerateResponse response;
      const grpc::Status status = v1::Generation::NewStub(channel)->Generate(&context, request, &response);
      CHECK(status.ok() == model.empty());
    };
  };
  CHECK(is_told(generate("")));
  CHECK(is_told(generate("another")));
  CHECK_FALSE(is_told([](const std::shared_ptr<grpc::Channel>& channel) {
    CHECK(HealthOf(channel, "") == grpc::health::v1::HealthCheckResponse::SERVING);
  }));
}

TEST_CASE("requests that run and wait are in the load") {
  SteadyClock clock;
  Gate gate;
  const TestServerOptions options = {.num_blocks = 10, .max_num_seqs = 2};
  auto runner = std::make_unique<ScriptedModelRunner>(ScriptOf(options), ByteTokenizer::kVocabSize);
  runner->SetOnExecute([&gate] { gate.Pass(); });
  const auto engine = MakeTestEngine(options, std::move(runner), &clock);
  for (int i = 0; i < 3; ++i) {
    GenerationRequest request;
    request.prompt_token_ids = {1, 2, 3};
    request.arrival_time = clock.Now();
    request.sink = std::make_shared<NoSink>();
    CHECK(engine->Submit(std::move(request)).ok());
    if (i == 0) gate.WaitUntilHeld();
  }
  const EngineLoad load = engine->load();
  gate.Open();
  CHECK(load.num_running_requests == 1);
  CHECK(load.num_waiting_requests == 2);
  CHECK(load.max_running_requests == 2);
  CHECK_THAT(load.kv_cache_use, WithinAbs(0.1, 1e-9));

  Report report;
  REQUIRE(report.ParseFromString(SerializeLoadReport(load, 7)));
  CHECK(report.rps_fractional() == 7);
  CHECK_THAT(report.mem_utilization(), WithinAbs(0.1, 1e-9));
  CHECK_THAT(report.application_utilization(), WithinAbs(1.5, 1e-9));  // three, of two seats
  CHECK(report.named_metrics().at("requests_running") == 1);
  CHECK(report.named_metrics().at("requests_waiting") == 2);
  CHECK_THAT(report.named_metrics().at("kv_cache_usage"), WithinAbs(0.1, 1e-9));
}

TEST_CASE("a rate is of the last seconds") {
  FakeClock clock;
  EventRate rate(&clock);
  for (int i = 0; i < 50; ++i) {
    clock.Advance(std::chrono::milliseconds(500));
    rate.Count();
  }
  clock.Advance(std::chrono::milliseconds(500));
  CHECK_THAT(rate.Count(), WithinAbs(2, 0.25));
  clock.Advance(std::chrono::hours(1));
  CHECK(rate.Count() < 0.3);
}

}  // namespace
}  // namespace quire::testing
