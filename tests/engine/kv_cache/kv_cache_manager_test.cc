#include "engine/kv_cache/kv_cache_manager.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/kv_cache/kv_cache_invariants.h"
#include "tests/support/fake_clock.h"

namespace quire {
namespace {

using Ids = std::vector<BlockId>;

const testing::FakeClock clock;
constexpr RequestId kFirst{1};
constexpr RequestId kSecond{2};

Ids TableOf(const KvCacheManager& manager, RequestId request) {
  const auto table = manager.BlockTable(request);
  return Ids(table.begin(), table.end());
}

void RequireNoViolation(const KvCacheManager& manager) {
  REQUIRE(FindKvCacheViolations(manager.Snapshot()) == std::vector<std::string>{});
}

TEST_CASE("Blocks for tokens") {
  const KvCacheManager manager({.num_blocks = 8, .block_size = 16}, &clock);
  CHECK(manager.BlocksFor(0) == 0);
  CHECK(manager.BlocksFor(1) == 1);
  CHECK(manager.BlocksFor(16) == 1);
  CHECK(manager.BlocksFor(17) == 2);
  CHECK(manager.BlocksFor(128) == 8);
}

TEST_CASE("A table grows by a block when its last one is full") {
  KvCacheManager manager({.num_blocks = 4, .block_size = 16}, &clock);
  REQUIRE(manager.AllocateSlots(kFirst, 1));
  CHECK(TableOf(manager, kFirst) == Ids{0});
  REQUIRE(manager.AllocateSlots(kFirst, 16));
  CHECK(TableOf(manager, kFirst) == Ids{0});
  REQUIRE(manager.AllocateSlots(kFirst, 17));
  CHECK(TableOf(manager, kFirst) == Ids{0, 1});
  REQUIRE(manager.AllocateSlots(kFirst, 3));
  CHECK(manager.NumTokens(kFirst) == 17);
  CHECK(manager.Usage().num_stored_tokens == 17);
  RequireNoViolation(manager);
}

TEST_CASE("What does not fit changes nothing") {
  KvCacheManager manager({.num_blocks = 4, .block_size = 16}, &clock);
  REQUIRE(manager.AllocateSlots(kFirst, 33));
  CHECK_FALSE(manager.AllocateSlots(kSecond, 17));
  CHECK(manager.BlockTable(kSecond).empty());
  CHECK(manager.Snapshot().tables.size() == 1);
  CHECK_FALSE(manager.AllocateSlots(kFirst, 65));
  CHECK(manager.NumTokens(kFirst) == 33);
  CHECK(manager.Usage().num_free_blocks == 1);
  CHECK(manager.AllocateSlots(kSecond, 16));
  RequireNoViolation(manager);
}

TEST_CASE("An unknown request has no blocks and frees none") {
  KvCacheManager manager({.num_blocks = 4, .block_size = 16}, &clock);
  manager.Free(kFirst);
  CHECK(manager.BlockTable(kFirst).empty());
  CHECK(manager.NumTokens(kFirst) == 0);
  RequireNoViolation(manager);
}

TEST_CASE("An admitted request's table grows as far as it said without moving") {
  KvCacheManager manager({.num_blocks = 4, .block_size = 16}, &clock);
  const std::vector<TokenId> tokens = {7};
  REQUIRE(manager.Admit({.request = kFirst,
                         .token_ids = tokens,
                         .max_num_tokens = 64,
                         .cache_namespace = std::make_shared<const std::string>(),
                         .max_cached_tokens = 0,
                         .num_headroom_blocks = 3}) == 0);
  CHECK(manager.num_available_blocks() == 3);
  const BlockId* const begin = manager.BlockTable(kFirst).data();
  REQUIRE(manager.AllocateSlots(kFirst, 64));
  CHECK(manager.BlockTable(kFirst).data() == begin);
  RequireNoViolation(manager);
}

TEST_CASE("Freed blocks that nobody can find are used again before those never used") {
  KvCacheManager manager({.num_blocks = 4, .block_size = 16}, &clock);
  REQUIRE(manager.AllocateSlots(kFirst, 32));
  manager.Free(kFirst);
  REQUIRE(manager.AllocateSlots(kSecond, 48));
  CHECK(TableOf(manager, kSecond) == Ids{0, 1, 2});
  RequireNoViolation(manager);
}

TEST_CASE("Truncating keeps the blocks of the first tokens") {
  KvCacheManager manager({.num_blocks = 4, .block_size = 16}, &clock);
  REQUIRE(manager.AllocateSlots(kFirst, 64));
  manager.Truncate(kFirst, 100);
  CHECK(manager.NumTokens(kFirst) == 64);
  manager.Truncate(kFirst, 33);
  CHECK(TableOf(manager, kFirst) == Ids{0, 1, 2});
  manager.Truncate(kFirst, 32);
  CHECK(TableOf(manager, kFirst) == Ids{0, 1});
  CHECK(manager.num_available_blocks() == 2);
  manager.Truncate(kFirst, 0);
  CHECK(manager.num_available_blocks() == 4);
  RequireNoViolation(manager);
}

TEST_CASE("A fork shares blocks, counted once") {
  KvCacheManager manager({.num_blocks = 4, .block_size = 16}, &clock);
  REQUIRE(manager.AllocateSlots(kFirst, 20));
  manager.Fork(kFirst, kSecond);
  CHECK(TableOf(manager, kSecond) == TableOf(manager, kFirst));
  CHECK(manager.Usage().num_used_blocks == 2);
  CHECK(manager.Usage().num_stored_tokens == 20);
  RequireNoViolation(manager);

  // The child's own last block, as the contract says.
  manager.Truncate(kSecond, 16);
  REQUIRE(manager.AllocateSlots(kSecond, 21));
  CHECK(TableOf(manager, kSecond) == Ids{0, 2});
  CHECK(manager.Usage().num_stored_tokens == 25);
  manager.Free(kFirst);
  CHECK(manager.Usage().num_used_blocks == 2);
  CHECK(manager.Usage().num_stored_tokens == 21);
  RequireNoViolation(manager);
  manager.Free(kSecond);
  CHECK(manager.Usage().num_used_blocks == 0);
  CHECK(manager.Usage().peak_used_blocks == 3);
  RequireNoViolation(manager);
}

TEST_CASE("The manager keeps its invariants over random operations") {
  constexpr int64_t kNumBlocks = 20;
  constexpr int64_t kBlockSize = 4;
  KvCacheManager manager({.num_blocks = kNumBlocks, .block_size = kBlockSize}, &clock);
  std::map<RequestId, int64_t> expected_tokens;
  std::mt19937 random(3);
  for (int i = 0; i < 30000; ++i) {
    const RequestId request{random() % 8};
    const bool known = expected_tokens.contains(request);
    const int64_t num_tokens = static_cast<int64_t>(random() % 40);
    switch (random() % 6) {
      case 0:
        manager.Free(request);
        expected_tokens.erase(request);
        break;
      case 1:
        if (known) {
          manager.Truncate(request, num_tokens);
          expected_tokens[request] = std::min(expected_tokens[request], num_tokens);
        }
        break;
      case 2: {
        const RequestId child{random() % 8};
        if (known && !expected_tokens.contains(child)) {
          manager.Fork(request, child);
          expected_tokens[child] = expected_tokens[request];
        }
        break;
      }
      default: {
        const int64_t num_before = known ? expected_tokens[request] : 0;
        const int64_t num_missing = manager.BlocksFor(std::max(num_before, num_tokens)) - manager.BlocksFor(num_before);
        const bool fits = num_missing <= manager.num_available_blocks();
        REQUIRE(manager.AllocateSlots(request, num_tokens) == fits);
        if (fits) expected_tokens[request] = std::max(num_before, num_tokens);
      }
    }
    RequireNoViolation(manager);
    for (const auto& [id, count] : expected_tokens) REQUIRE(manager.NumTokens(id) == count);
    REQUIRE(manager.Snapshot().tables.size() == expected_tokens.size());
  }
}

}  // namespace
}  // namespace quire
