#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/load_plan.h"
#include "client/load_report.h"
#include "tests/client/fake_server.h"
#include "tests/client/run_quire.h"

namespace quire::testing {
namespace {

using Catch::Matchers::WithinRel;

TEST_CASE("a load is the same for the same seed, and another for another") {
  LoadOptions options;
  options.num_requests = 50;
  options.requests_per_second = 10;
  options.prompt.sigma = 0.5;
  options.cancel_ratio = 0.5;
  const auto first = PlanLoad(options, 1000);
  const auto again = PlanLoad(options, 1000);
  options.seed = 2;
  const auto other = PlanLoad(options, 1000);
  REQUIRE(first.size() == 50);
  int num_different = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].token_ids == again[i].token_ids);
    CHECK(first[i].start_seconds == again[i].start_seconds);
    CHECK(first[i].cancel_after_tokens == again[i].cancel_after_tokens);
    num_different += first[i].token_ids != other[i].token_ids ? 1 : 0;
  }
  CHECK(num_different == 50);
}

TEST_CASE("a load keeps to its lengths, rate, prefix, tenants and cancellations") {
  LoadOptions options;
  options.num_requests = 4000;
  options.requests_per_second = 20;
  options.prompt = {.median = 40, .sigma = 0.7, .max = 100};
  options.output = {.median = 7, .sigma = 0, .max = 1000};
  options.shared_prefix_tokens = 10;
  options.tenants = {{.name = "a", .share = 1}, {.name = "b", .share = 3}};
  options.cancel_ratio = 0.25;
  const auto plan = PlanLoad(options, 50);
  std::vector<size_t> lengths;
  int64_t num_a = 0;
  int64_t num_cancelled = 0;
  for (const PlannedRequest& request : plan) {
    REQUIRE(request.token_ids.size() >= 11);
    REQUIRE(request.token_ids.size() <= 110);
    REQUIRE(std::ranges::equal(request.token_ids.begin(), request.token_ids.begin() + 10, plan[0].token_ids.begin(),
                               plan[0].token_ids.begin() + 10));
    REQUIRE(std::ranges::all_of(request.token_ids, [](int32_t id) { return id >= 0 && id < 50; }));
    REQUIRE(request.max_tokens == 7);
    lengths.push_back(request.token_ids.size());
    num_a += request.tenant == "a" ? 1 : 0;
    num_cancelled += request.cancel_after_tokens ? 1 : 0;
  }
  std::ranges::sort(lengths);
  CHECK_THAT(static_cast<double>(lengths[2000]), WithinRel(50.0, 0.05));
  CHECK_THAT(plan.back().start_seconds, WithinRel(200.0, 0.1));
  CHECK_THAT(static_cast<double>(num_a), WithinRel(1000.0, 0.1));
  CHECK_THAT(static_cast<double>(num_cancelled), WithinRel(1000.0, 0.1));
}

LoadMeasurement Ended(double first_token_seconds, std::vector<double> gaps) {
  LoadMeasurement measurement;
  measurement.num_output_tokens = 1 + static_cast<int64_t>(gaps.size());
  measurement.first_token_seconds = first_token_seconds;
  measurement.gap_seconds = std::move(gaps);
  measurement.total_seconds = 9;
  return measurement;
}

TEST_CASE("the report counts what is good, what failed and what was cancelled, and leaves latencies of failures out") {
  LoadResult result;
  result.seconds = 10;
  result.measurements = {Ended(1, {0.1, 0.3}), Ended(3, {0.1, 0.1}), Ended(1, {0.5, 0.7}), Ended(8, {})};
  result.measurements[3].status = grpc::StatusCode::RESOURCE_EXHAUSTED;
  LoadMeasurement cancelled = Ended(7, {5});
  cancelled.status = grpc::StatusCode::CANCELLED;
  cancelled.cancelled_by_client = true;
  result.measurements.push_back(cancelled);

  const Json report = LoadReport(result, {.first_token_seconds = 2, .seconds_per_output_token = 0.2});
  CHECK(report["requests"] == 5);
  CHECK(report["by_status"] == Json{{"OK", 3}, {"RESOURCE_EXHAUSTED", 1}});
  CHECK(report["cancelled_by_client"] == 1);
  CHECK(report["good_requests"] == 1);
  CHECK(report["good_requests_per_second"] == 0.1);
  CHECK(report["output_tokens"] == 12);
  CHECK(report["time_to_first_token_seconds"]["count"] == 3);
  CHECK(report["time_to_first_token_seconds"]["p50"] == 1);
  CHECK(report["time_to_first_token_seconds"]["p95"] == 3);
  CHECK(report["time_to_first_token_seconds"]["p99"] == 3);
  CHECK(report["inter_token_seconds"]["max"] == 0.7);
  CHECK_FALSE(report.contains("tenants"));
}

TEST_CASE("load sends every request once and reports, per tenant too") {
  FakeServer server;
  server.model_info.set_vocab_size(100);
  server.on_stream = [](grpc::ServerContext&, const v1::GenerateRequest& request, StreamWriter& writer) {
    if (request.token_ids().ids_size() != 15) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "15 tokens were to come");
    }
    for (int i = 0; i < 3; ++i) {
      v1::GenerateStreamResponse response;
      response.mutable_chunk()->add_token_ids(7);
      writer.Write(response);
    }
    v1::GenerateStreamResponse last;
    last.mutable_finished()->mutable_usage()->set_cached_prompt_tokens(4);
    writer.Write(last);
    return grpc::Status::OK;
  };
  std::vector<std::string> arguments = {"load",
                                        "--address",
                                        server.address(),
                                        "--requests",
                                        "12",
                                        "--prompt-tokens",
                                        "10",
                                        "--output-tokens",
                                        "3",
                                        "--shared-prefix-tokens",
                                        "5",
                                        "--json",
                                        "--tenant-share",
                                        "a=1",
                                        "--tenant-share",
                                        "b=1"};
  SECTION("in a closed loop") { arguments.insert(arguments.end(), {"--concurrency", "3"}); }
  SECTION("in an open loop") { arguments.insert(arguments.end(), {"--rate", "1000"}); }
  const RunResult result = RunQuire(arguments);
  CHECK(result.code == ExitCode::kOk);
  const auto report = nlohmann::json::parse(result.out);
  CHECK(server.requests().size() == 12);
  CHECK(report["by_status"]["OK"] == 12);
  CHECK(report["output_tokens"] == 36);
  CHECK(report["prompt_tokens"] == 180);
  CHECK(report["cached_prompt_tokens"] == 48);
  CHECK(report["tenants"]["a"]["requests"].get<int>() + report["tenants"]["b"]["requests"].get<int>() == 12);
}

TEST_CASE("load tells failures by status and fails with them; its own cancellations are none") {
  FakeServer server;
  server.model_info.set_vocab_size(100);
  SECTION("refused") {
    server.on_stream = [](grpc::ServerContext&, const v1::GenerateRequest&, StreamWriter&) {
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full");
    };
    const RunResult result = RunQuire({"load", "--address", server.address(), "--requests", "3"});
    CHECK(result.code == ExitCode::kFailed);
    CHECK(result.out.find("RESOURCE_EXHAUSTED 3") != std::string::npos);
  }
  SECTION("cancelled") {
    server.on_stream = [](grpc::ServerContext& context, const v1::GenerateRequest&, StreamWriter& writer) {
      v1::GenerateStreamResponse response;
      response.mutable_chunk()->add_token_ids(7);
      while (!context.IsCancelled()) {
        writer.Write(response);
      }
      return grpc::Status::CANCELLED;
    };
    const RunResult result =
        RunQuire({"load", "--address", server.address(), "--requests", "5", "--cancel-ratio", "1", "--json"});
    CHECK(result.code == ExitCode::kOk);
    CHECK(nlohmann::json::parse(result.out)["cancelled_by_client"] == 5);
  }
  SECTION("a share that is none") {
    CHECK(RunQuire({"load", "--address", server.address(), "--tenant-share", "a=-1"}).code == ExitCode::kUsage);
  }
}

}  // namespace
}  // namespace quire::testing
