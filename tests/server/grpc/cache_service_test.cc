// What quire.v1.Cache and the cache's part of quire.v1.Admin answer.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/gate.h"
#include "tests/server/test_server.h"

namespace quire::testing {
namespace {

v1::CacheStats StatsOf(TestServer& server) {
  grpc::ClientContext context;
  v1::GetCacheStatsRequest request;
  request.set_include_requests(true);
  v1::CacheStats stats;
  const grpc::Status status = server.cache().GetCacheStats(&context, request, &stats);
  CAPTURE(status.error_code(), status.error_message());
  REQUIRE(status.ok());
  return stats;
}

// Each of these is exact at every reading.
void CheckSums(const v1::CacheStats& stats) {
  REQUIRE(stats.blocks_free() + stats.blocks_cached() + stats.blocks_used() == stats.blocks_total());
  REQUIRE(stats.free_bytes() + stats.cached_bytes() + stats.used_bytes() == stats.pool_bytes());
  REQUIRE(stats.used_bytes() == stats.blocks_used() * stats.bytes_per_block());
  int64_t memory_bytes = 0;
  for (const v1::MemoryItem& item : stats.memory_items()) memory_bytes += item.bytes();
  REQUIRE(memory_bytes == stats.budget_bytes());
  REQUIRE(stats.tokens_stored() + stats.wasted_slots() == stats.blocks_used() * stats.block_size_tokens());
  REQUIRE(stats.process_resident_bytes() > 0);
  REQUIRE(stats.process_peak_resident_bytes() >= stats.process_resident_bytes());
  REQUIRE(stats.blocks_shared() <= stats.blocks_used());
  REQUIRE(stats.blocks_peak_used() >= stats.blocks_used());
  REQUIRE(stats.prefix_hit_tokens() <= stats.prefix_query_tokens());
  int64_t num_aged = 0;
  for (const int64_t count : stats.cached_block_age_seconds().counts()) num_aged += count;
  REQUIRE(num_aged == stats.blocks_cached());
  int64_t request_blocks = 0;
  for (const v1::RequestCacheStats& request : stats.requests()) request_blocks += request.blocks();
  int64_t tenant_blocks = 0;
  for (const v1::TenantCacheStats& tenant : stats.tenants()) tenant_blocks += tenant.blocks();
  REQUIRE(request_blocks == tenant_blocks);
  REQUIRE(request_blocks >= stats.blocks_used());
  REQUIRE(stats.requests_size() == stats.requests_running() + stats.requests_waiting());
  REQUIRE(stats.invariant_violations() == 0);
}

// Streams of prompts that share beginnings, some of them cancelled, from several clients until it is destroyed.
class Load {
 public:
  explicit Load(TestServer* server) : server_(server) {
    for (int number = 0; number < 6; ++number) {
      threads_.emplace_back([this, number] { Run(number); });
    }
  }
  ~Load() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Run(int number) {
    const auto stub = v1::Generation::NewStub(server_->NewChannel());
    for (int i = 0; !stop_; ++i) {
      v1::GenerateRequest request =
          TextRequest(std::string(static_cast<size_t>(20 + 30 * (i % 3)), 'a') + std::to_string(number * 1000 + i % 7));
      request.mutable_sampling()->set_max_tokens(5 + 11 * (i % 4));
      grpc::ClientContext context;
      context.AddMetadata("x-tenant-id", number % 2 == 0 ? "even" : "odd");
      const auto reader = stub->GenerateStream(&context, request);
      v1::GenerateStreamResponse response;
      if (i % 5 == 0 && reader->Read(&response)) context.TryCancel();
      while (reader->Read(&response)) continue;
      reader->Finish();
    }
  }

  TestServer* server_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

TEST_CASE("sums are exact at each of a thousand readings under load") {
  // Too few blocks for all: preemptions and evictions too.
  TestServer server({.script = "abcdefgh", .script_ends = false, .max_model_len = 256, .num_blocks = 24});
  int64_t most_used = 0;
  {
    const Load load(&server);
    for (int i = 0; i < 1000; ++i) {
      const v1::CacheStats stats = StatsOf(server);
      CheckSums(stats);
      most_used = std::max(most_used, stats.blocks_used());
    }
  }
  CHECK(most_used > 0);
  CHECK(server.PollUntilIdle());
  const v1::CacheStats stats = StatsOf(server);
  CheckSums(stats);
  CHECK(stats.prefix_hit_tokens() > 0);
  CHECK(stats.evictions() > 0);
  CHECK(stats.requests_finished() > 0);
  CHECK(stats.output_tokens() > 0);
  CHECK(stats.release_steps().max() <= 1);
}

TEST_CASE("requests and tenants show what they hold") {
  TestServer server({.script = "abcdefgh", .script_ends = false, .max_model_len = 1 << 20, .num_blocks = 1 << 17});
  grpc::ClientContext context;
  context.AddMetadata("x-tenant-id", "acme");
  v1::GenerateRequest request = TextRequest("p");
  request.set_priority(-7);
  const auto reader = server.generation().GenerateStream(&context, request);
  CHECK(server.PollStats([](const v1::CacheStats& stats) {
    if (stats.requests_size() != 1 || stats.tenants_size() != 1 || stats.blocks_used() == 0) return false;
    CHECK(stats.requests(0).tenant() == "acme");
    CHECK(stats.requests(0).priority() == -7);
    CHECK(stats.tenants(0).tenant() == "acme");
    CHECK(stats.tenants(0).weight() == 1);
    CHECK(stats.tenants(0).requests_running() == 1);
    CHECK(stats.tenants(0).bytes() == stats.requests(0).bytes());
    return true;
  }));
  context.TryCancel();
  CHECK(reader->Finish().error_code() == grpc::CANCELLED);
  CHECK(server.PollStats([](const v1::CacheStats& stats) {
    const auto& counts = stats.release_steps().counts();
    return counts.size() > 1 && counts[0] + counts[1] == 1;  // within a step
  }));
}

TEST_CASE("an operator can make the server forget cached prefixes") {
  TestServer server;
  const std::string prompt(64, 'p');
  const auto cached_tokens = [&] {
    grpc::ClientContext context;
    v1::GenerateResponse response;
    REQUIRE(server.generation().Generate(&context, TextRequest(prompt), &response).ok());
    return response.usage().cached_prompt_tokens();
  };
  CHECK(cached_tokens() == 0);
  CHECK(cached_tokens() == 48);
  const int64_t num_cached = StatsOf(server).blocks_cached();
  CHECK(num_cached > 0);
  grpc::ClientContext context;
  v1::ClearPrefixCacheResponse cleared;
  REQUIRE(server.admin().ClearPrefixCache(&context, {}, &cleared).ok());
  CHECK(cleared.blocks_freed() == num_cached);
  CHECK(StatsOf(server).blocks_cached() == 0);
  CHECK(cached_tokens() == 0);
}

TEST_CASE("the cache's configuration is told") {
  TestServer server;
  grpc::ClientContext context;
  v1::CacheConfig config;
  REQUIRE(server.cache().GetCacheConfig(&context, {}, &config).ok());
  CHECK(config.block_size_tokens() == 16);
  CHECK(config.bytes_per_block() == 4096);
  CHECK(config.bytes_per_token() == 256);
  CHECK(config.blocks_total() == 256);
  CHECK(config.pool_bytes() == 256 * 4096);
  CHECK(config.kv_cache_type() == "f32");
  CHECK(config.prefix_caching_enabled());
  CHECK_FALSE(config.prefix_hash().empty());
  CHECK(config.max_queued_requests() == 1024);
  CHECK(config.max_num_batched_tokens_auto());
}

TEST_CASE("cache statistics are the allocator's") {
  TestServer server({.script = "abcdefgh", .script_ends = false, .max_model_len = 1 << 20, .num_blocks = 1 << 17});
  grpc::ClientContext context;
  v1::GenerateRequest request = TextRequest("0123456789");
  request.set_request_id("shown");
  const auto reader = server.generation().GenerateStream(&context, request);
  CHECK(server.PollStats([](const v1::CacheStats& stats) {
    if (stats.requests_size() != 1 || stats.tokens_stored() == 0) return false;
    const v1::RequestCacheStats& shown = stats.requests(0);
    CHECK(shown.request_id() == "shown");
    CHECK(shown.state() == "running");
    CHECK(shown.blocks() == stats.blocks_used());
    CHECK(shown.bytes() == shown.blocks() * stats.bytes_per_block());
    CHECK(shown.tokens() == stats.tokens_stored());
    CHECK(stats.blocks_used() + stats.blocks_free() + stats.blocks_cached() == stats.blocks_total());
    CHECK(stats.used_bytes() == stats.blocks_used() * stats.bytes_per_block());
    CHECK(stats.pool_bytes() == stats.blocks_total() * stats.bytes_per_block());
    CHECK(stats.block_size_tokens() == 16);
    CHECK(stats.blocks_peak_used() >= stats.blocks_used());
    CHECK(stats.requests_running() == 1);
    return true;
  }));
  context.TryCancel();
  reader->Finish();
  CHECK(server.PollUntilIdle());
}

TEST_CASE("a watch brings statistics again and again until it is cancelled") {
  TestServer server;
  grpc::ClientContext context;
  v1::WatchCacheStatsRequest request;
  request.set_interval_seconds(0.05);
  const auto reader = server.cache().WatchCacheStats(&context, request);
  v1::CacheStats stats;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(reader->Read(&stats));
    CHECK(stats.blocks_total() == 256);
  }
  context.TryCancel();
  CHECK(reader->Finish().error_code() == grpc::CANCELLED);
}

TEST_CASE("a watch that sleeps ends when the server shuts down") {
  TestServer server;
  grpc::ClientContext context;
  v1::WatchCacheStatsRequest request;
  request.set_interval_seconds(3600);
  const auto reader = server.cache().WatchCacheStats(&context, request);
  v1::CacheStats stats;
  REQUIRE(reader->Read(&stats));
  std::thread shutdown([&server] { server.server().Shutdown(Duration::zero()); });
  CHECK_FALSE(reader->Read(&stats));
  CHECK(reader->Finish().error_code() == grpc::UNAVAILABLE);
  shutdown.join();
}

TEST_CASE("watch intervals out of range are refused") {
  TestServer server;
  for (const double interval : {0.0, -1.0, 0.01, 4000.0}) {
    grpc::ClientContext context;
    v1::WatchCacheStatsRequest request;
    request.set_interval_seconds(interval);
    const auto reader = server.cache().WatchCacheStats(&context, request);
    v1::CacheStats stats;
    CHECK_FALSE(reader->Read(&stats));
    CHECK(reader->Finish().error_code() == grpc::INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace quire::testing
