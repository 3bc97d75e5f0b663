#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kv_cache/kv_cache_invariants.h"
#include "engine/kv_cache/kv_cache_manager.h"
#include "tests/support/fake_clock.h"

namespace quire {
namespace {

using Ids = std::vector<BlockId>;
using Tokens = std::vector<TokenId>;

constexpr int64_t kBlockSize = 4;
constexpr int64_t kAll = 1 << 20;

PrefixIndex::Namespace Name(std::string_view name) { return std::make_shared<const std::string>(name); }

// `num_tokens` tokens that count up from `first`.
Tokens Counting(TokenId first, int64_t num_tokens) {
  Tokens tokens;
  for (int64_t i = 0; i < num_tokens; ++i) tokens.push_back(first + static_cast<TokenId>(i));
  return tokens;
}

Tokens Joined(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A manager whose requests are admitted, computed whole and made findable.
class Cache {
 public:
  explicit Cache(int64_t num_blocks, BlockHashFunction hash = HashBlock)
      : manager({.num_blocks = num_blocks, .block_size = kBlockSize}, &clock, hash) {}

  // How many tokens were found; -1: it did not fit.
  int64_t Run(uint64_t id, const Tokens& tokens, std::string_view cache_namespace = "", int64_t max_cached = kAll) {
    const auto num_cached = manager.Admit({.request = RequestId{id},
                                           .token_ids = tokens,
                                           .max_num_tokens = static_cast<int64_t>(tokens.size()),
                                           .cache_namespace = Name(cache_namespace),
                                           .max_cached_tokens = max_cached,
                                           .num_headroom_blocks = 0});
    if (num_cached) manager.CacheComputed(RequestId{id}, tokens, static_cast<int64_t>(tokens.size()));
    RequireNoViolation();
    return num_cached.value_or(-1);
  }

  void Free(uint64_t id) {
    manager.Free(RequestId{id});
    RequireNoViolation();
  }

  Ids Table(uint64_t id) const {
    const auto table = manager.BlockTable(RequestId{id});
    return {table.begin(), table.end()};
  }

  void RequireNoViolation() const { REQUIRE(FindKvCacheViolations(manager.Snapshot()) == std::vector<std::string>{}); }

  testing::FakeClock clock;
  KvCacheManager manager;
};

TEST_CASE("A later request shares the full blocks of an equal prefix, while the first runs and after it") {
  Cache cache(16);
  CHECK(cache.Run(1, Counting(0, 10)) == 0);
  CHECK(cache.Run(2, Joined(Counting(0, 10), {50, 51, 52})) == 8);
  CHECK(cache.Table(2)[0] == cache.Table(1)[0]);
  CHECK(cache.Table(2)[1] == cache.Table(1)[1]);
  CHECK(cache.Table(2)[2] != cache.Table(1)[2]);
  CHECK(cache.manager.Usage().num_shared_blocks == 2);
  CHECK(cache.manager.Usage().num_used_blocks == 5);

  cache.Free(1);
  cache.Free(2);
  // The second request's third block was full too.
  CHECK(cache.manager.Usage().num_cached_blocks == 3);
  CHECK(cache.manager.Usage().num_free_blocks == 13);
  CHECK(cache.Run(3, Joined(Counting(0, 10), {50, 51, 60})) == 12);
  CHECK(cache.manager.Usage().num_prefix_query_tokens == 36);
  CHECK(cache.manager.Usage().num_prefix_hit_tokens == 20);
}

TEST_CASE("One token at least is left to be computed") {
  Cache cache(16);
  CHECK(cache.Run(1, Counting(0, 8)) == 0);
  CHECK(cache.Run(2, Counting(0, 8)) == 4);
  CHECK(cache.Run(3, Counting(0, 9)) == 8);
}

TEST_CASE("Equal tokens after another beginning are not found") {
  Cache cache(16);
  cache.Run(1, Joined({1, 2, 3, 4}, Counting(10, 5)));
  CHECK(cache.Run(2, Joined({1, 2, 3, 5}, Counting(10, 5))) == 0);
  CHECK(cache.Run(3, Joined({1, 2, 3, 4}, Counting(10, 5))) == 8);
}

TEST_CASE("Another namespace finds nothing") {
  Cache cache(16);
  cache.Run(1, Counting(0, 9), "tenant a");
  CHECK(cache.Run(2, Counting(0, 9), "tenant b") == 0);
  CHECK(cache.Run(3, Counting(0, 9), "tenant a") == 8);
  CHECK(cache.Run(4, Counting(0, 9), "") == 0);
}

TEST_CASE("A request that reads no cache computes all, and can be read") {
  Cache cache(16);
  cache.Run(1, Counting(0, 9));
  CHECK(cache.Run(2, Counting(0, 9), "", 0) == 0);
  CHECK(cache.manager.Usage().num_prefix_query_tokens == 9);
  cache.Free(1);
  CHECK(cache.Run(3, Counting(0, 9), "", 7) == 4);
}

TEST_CASE("Equal hashes never pass for equal prefixes") {
  // Every block has the same hash: only comparison tells them apart.
  Cache cache(32, [](BlockHash, std::span<const TokenId>, std::string_view) -> BlockHash { return 7; });
  cache.Run(1, Joined(Counting(0, 4), Counting(100, 5)));
  cache.Run(2, Joined(Counting(50, 4), Counting(100, 5)));
  // The same second block after another first one, other tokens, another namespace.
  CHECK(cache.Run(3, Joined(Counting(50, 4), Counting(100, 5))) == 8);
  CHECK(cache.Table(3)[1] == cache.Table(2)[1]);
  CHECK(cache.Run(4, Joined(Counting(0, 4), Counting(200, 5))) == 4);
  CHECK(cache.Run(5, Joined(Counting(60, 4), Counting(100, 5))) == 0);
  CHECK(cache.Run(6, Joined(Counting(0, 4), Counting(100, 5)), "other") == 0);
  CHECK(cache.Run(7, Joined(Counting(0, 4), Counting(100, 5))) == 8);
  CHECK(cache.Table(7)[1] == cache.Table(1)[1]);
}

TEST_CASE("The least recently used prefix is evicted first, and its end before its beginning") {
  Cache cache(6);
  cache.Run(1, Counting(0, 9));  // two full blocks and one begun
  cache.Run(2, Counting(100, 9));
  cache.Free(1);
  cache.Free(2);
  CHECK(cache.manager.Usage().num_cached_blocks == 4);
  // Free blocks are taken before any cached one.
  cache.Run(3, Counting(200, 7));
  CHECK(cache.manager.Usage().num_evictions == 0);
  cache.Run(4, Counting(300, 3));
  CHECK(cache.manager.Usage().num_evictions == 1);
  cache.Free(4);
  // Of the first prefix the second block is gone; the second prefix is whole.
  CHECK(cache.Run(5, Counting(0, 6)) == 4);
  cache.Free(5);
  CHECK(cache.Run(6, Counting(100, 9)) == 8);
}

TEST_CASE("Blocks that are found are not evicted for the same request") {
  Cache cache(4);
  cache.Run(1, Counting(0, 9));
  cache.Free(1);
  // Two cached and two free: all four are needed.
  CHECK(cache.Run(2, Counting(0, 16)) == 8);
  CHECK(cache.manager.num_available_blocks() == 0);
  CHECK(cache.Run(3, {1}) == -1);
}

TEST_CASE("An admission that does not fit changes nothing, and leaves the headroom asked for") {
  Cache cache(4);
  cache.Run(1, Counting(0, 9));
  cache.Free(1);
  const KvCacheUsage before = cache.manager.Usage();
  CHECK(cache.Run(2, Counting(0, 17)) == -1);
  CHECK(cache.manager.Usage().num_cached_blocks == before.num_cached_blocks);
  CHECK(cache.manager.Usage().num_prefix_query_tokens == before.num_prefix_query_tokens);
  const Tokens tokens = Counting(0, 12);
  const auto admit = [&](int64_t num_headroom_blocks) {
    return cache.manager.Admit({.request = RequestId{3},
                                .token_ids = tokens,
                                .max_num_tokens = 12,
                                .cache_namespace = Name(""),
                                .max_cached_tokens = kAll,
                                .num_headroom_blocks = num_headroom_blocks});
  };
  CHECK(admit(2) == std::nullopt);
  CHECK(admit(1) == 8);
}

TEST_CASE("What is not computed yet is not found") {
  Cache cache(8);
  const Tokens tokens = Counting(0, 12);
  const auto num_cached = cache.manager.Admit({.request = RequestId{1},
                                               .token_ids = tokens,
                                               .max_num_tokens = 12,
                                               .cache_namespace = Name(""),
                                               .max_cached_tokens = kAll,
                                               .num_headroom_blocks = 0});
  REQUIRE(num_cached == 0);
  CHECK(cache.Run(2, tokens) == 0);
  cache.Free(2);
  cache.manager.CacheComputed(RequestId{1}, tokens, 7);
  CHECK(cache.Run(3, tokens) == 8);  // the second request's, which computed all
}

TEST_CASE("The same prefix computed twice is kept once") {
  Cache cache(8);
  cache.Run(1, Counting(0, 8), "", 0);
  cache.Run(2, Counting(0, 8), "", 0);
  cache.Free(2);
  CHECK(cache.manager.Usage().num_cached_blocks == 0);
  cache.Free(1);
  CHECK(cache.manager.Usage().num_cached_blocks == 2);
}

TEST_CASE("Clearing forgets every prefix; running requests keep their blocks and go on") {
  Cache cache(8);
  const Tokens running = Counting(0, 9);
  cache.Run(1, running);
  cache.Run(2, Counting(100, 8));
  cache.Free(2);
  CHECK(cache.manager.ClearPrefixCache() == 2);
  CHECK(cache.manager.Usage().num_cached_blocks == 0);
  cache.RequireNoViolation();
  CHECK(cache.Run(3, Counting(100, 8)) == 0);
  CHECK(cache.Run(4, running) == 0);
  cache.Free(4);
  cache.manager.CacheComputed(RequestId{1}, running, 9);
  cache.RequireNoViolation();
}

TEST_CASE("A block that is cut short is found no more") {
  Cache cache(8);
  const Tokens tokens = Counting(0, 12);
  cache.Run(1, tokens);
  cache.manager.Truncate(RequestId{1}, 6);
  cache.RequireNoViolation();
  CHECK(cache.Run(2, tokens) == 4);
  cache.Free(2);
  // Other tokens after the cut: the second block is found as what it holds now.
  const Tokens others = Joined(Counting(0, 6), Counting(70, 6));
  REQUIRE(cache.manager.AllocateSlots(RequestId{1}, 12));
  cache.manager.CacheComputed(RequestId{1}, others, 12);
  cache.RequireNoViolation();
  CHECK(cache.Run(3, Joined(others, {1})) == 12);
}

TEST_CASE("Ages of cached blocks") {
  Cache cache(8);
  cache.Run(1, Counting(0, 8));
  cache.Free(1);
  cache.clock.Advance(std::chrono::seconds(30));
  cache.Run(2, Counting(100, 4));
  cache.Free(2);
  const Histogram ages = cache.manager.Usage().cached_block_ages;
  CHECK(ages.num_values() == 3);
  CHECK(ages.counts()[0] == 1);  // up to a second
  CHECK(ages.counts()[2] == 2);  // up to a minute
}

TEST_CASE("Without prefix caching nothing is found or kept") {
  const testing::FakeClock clock;
  KvCacheManager manager({.num_blocks = 8, .block_size = kBlockSize, .enable_prefix_caching = false}, &clock);
  const Tokens tokens = Counting(0, 9);
  for (const uint64_t id : {1, 2}) {
    const CacheAdmission admission = {.request = RequestId{id},
                                      .token_ids = tokens,
                                      .max_num_tokens = 9,
                                      .cache_namespace = Name(""),
                                      .max_cached_tokens = kAll,
                                      .num_headroom_blocks = 0};
    CHECK(manager.Admit(admission) == 0);
    manager.CacheComputed(RequestId{id}, tokens, 9);
    manager.Free(RequestId{id});
  }
  CHECK(manager.Usage().num_cached_blocks == 0);
  CHECK(manager.ClearPrefixCache() == 0);
}

}  // namespace
}  // namespace quire
