// GET /metrics of a server that answers requests.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/server/gate.h"
#include "tests/server/http/http_client.h"
#include "tests/server/metrics/metrics_text.h"
#include "tests/server/read_first_chunk.h"
#include "tests/server/stream_drain.h"
#include "tests/server/test_server.h"

namespace quire::testing {
namespace {

using nlohmann::json;

constexpr const char* kModel = "{model_name=\"test-model\"}";

std::map<std::string, double> MetricsOf(HttpClient& client) { return ParseMetrics(client.GetText("/metrics")); }

json Completion(const json& more = json::object()) {
  json body = {{"prompt", "abc"}};
  body.update(more);
  return body;
}

std::string Ended(const std::string& how) {
  return "vllm:request_success_total{finished_reason=\"" + how + "\",model_name=\"test-model\"}";
}

TEST_CASE("ends and latencies are counted, each value there from the start") {
  TestServer server(WithHttp());
  HttpClient client(server);
  std::map<std::string, double> metrics = MetricsOf(client);
  for (const char* how : {"stop", "length", "abort", "error"}) CHECK(metrics.at(Ended(how)) == 0);
  CHECK(metrics.at("quire_refused_requests_total{reason=\"OVERLOADED\"}") == 0);

  REQUIRE(client.Post("/v1/completions", Completion()).code == 200);  // "hello" and its end: 6 tokens
  REQUIRE(client.Post("/v1/completions", Completion({{"max_tokens", 2}})).code == 200);
  metrics = MetricsOf(client);
  CHECK(metrics.at(Ended("stop")) == 1);
  CHECK(metrics.at(Ended("length")) == 1);
  CHECK(metrics.at(std::string("vllm:prompt_tokens_total") + kModel) == 6);
  CHECK(metrics.at(std::string("vllm:generation_tokens_total") + kModel) == 8);
  CHECK(metrics.at(std::string("vllm:time_to_first_token_seconds_count") + kModel) == 2);
  CHECK(metrics.at(std::string("vllm:inter_token_latency_seconds_count") + kModel) == 6);
  CHECK(metrics.at(std::string("vllm:e2e_request_latency_seconds_count") + kModel) == 2);
  CHECK(metrics.at(std::string("vllm:request_queue_time_seconds_count") + kModel) == 2);
  CHECK(metrics.at("quire_steps_total") == 8);
  CHECK(metrics.at("quire_step_seconds_count") == 8);
  CHECK(metrics.at("quire_step_tokens_sum") == 3 + 5 + 3 + 1);
}

// As ParseFamilies tells them.
std::set<std::string> CommittedFamilies() {
  std::set<std::string> families;
  std::ifstream file(QUIRE_EXPORTED_METRICS);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::string name, type, labels;
    std::istringstream(line) >> name >> type >> labels;
    std::set<std::string> sorted;
    std::istringstream parts(labels);
    for (std::string label; std::getline(parts, label, ',');) sorted.insert(label);
    std::string joined;
    for (const std::string& label : sorted) joined += (joined.empty() ? "" : ",") + label;
    families.insert(name + " " + type + " " + joined);
  }
  return families;
}

TEST_CASE("what is exported is what dashboards, rules and autoscalers count on") {
  TestServer server(WithHttp());
  HttpClient client(server);
  CHECK(ParseFamilies(client.GetText("/metrics")) == CommittedFamilies());
}

TEST_CASE("refusals are counted by their reason, over both protocols") {
  TestServer server(WithHttp());
  HttpClient client(server);
  CHECK(client.Post("/v1/completions", Completion({{"temperature", -1}})).code == 400);
  v1::GenerateRequest request = TextRequest("abc");
  request.set_model("another");
  grpc::ClientContext context;
  v1::GenerateResponse response;
  CHECK(server.generation().Generate(&context, request, &response).error_code() == grpc::StatusCode::NOT_FOUND);
  std::map<std::string, double> metrics = MetricsOf(client);
  CHECK(metrics.at("quire_refused_requests_total{reason=\"INVALID_ARGUMENT\"}") == 1);
  CHECK(metrics.at("quire_refused_requests_total{reason=\"NOT_FOUND\"}") == 1);
  CHECK(metrics.at(Ended("error")) == 0);
}

TEST_CASE("gauges are GetCacheStats' figures while requests run, and back at zero when none does") {
  TestServer server(WithHttp(EndlessAnswers()));
  HttpClient client(server);
  grpc::ClientContext context;
  const auto stream = server.generation().GenerateStream(&context, TextRequest("abc"));
  ReadFirstChunk(*stream);
  auto drain = std::make_unique<StreamDrain>(stream.get());
  std::map<std::string, double> metrics = MetricsOf(client);
  CHECK(metrics.at(std::string("vllm:num_requests_running") + kModel) == 1);
  CHECK(metrics.at("quire_kv_used_bytes") > 0);
  CHECK(metrics.at(std::string("vllm:kv_cache_usage_perc") + kModel) > 0);
  context.TryCancel();
  drain.reset();
  CHECK(stream->Finish().error_code() == grpc::StatusCode::CANCELLED);
  REQUIRE(server.PollUntilIdle());

  metrics = MetricsOf(client);
  const json stats = client.Get("/v1/cache").body;
  CHECK(metrics.at(std::string("vllm:num_requests_running") + kModel) == 0);
  CHECK(metrics.at(std::string("vllm:num_requests_waiting") + kModel) == 0);
  CHECK(metrics.at("quire_kv_used_bytes") == 0);
  CHECK(metrics.at("quire_kv_wasted_bytes") == 0);
  CHECK(metrics.at("quire_queued_tokens") == 0);
  for (const auto& [metric, field] : {std::pair("quire_kv_pool_bytes", "pool_bytes"),
                                      {"quire_kv_cached_bytes", "cached_bytes"},
                                      {"quire_kv_free_bytes", "free_bytes"},
                                      {"quire_memory_budget_bytes", "budget_bytes"}}) {
    INFO(metric);
    CHECK(metrics.at(metric) == stats.at(field).get<double>());
  }
  CHECK(metrics.at("quire_kv_cached_bytes") > 0);
}

}  // namespace
}  // namespace quire::testing
