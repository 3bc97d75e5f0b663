#include "engine/kv_cache/kv_cache_invariants.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "engine/kv_cache/kv_cache_manager.h"
#include "tests/support/fake_clock.h"

namespace quire {
namespace {

// Two requests over 6 blocks of 4 tokens: blocks 0, 1 shared, 2 owned by the first, 3 to 5 free.
KvCacheSnapshot SoundSnapshot() {
  const testing::FakeClock clock;
  KvCacheManager manager({.num_blocks = 6, .block_size = 4}, &clock);
  REQUIRE(manager.AllocateSlots(RequestId{1}, 8));
  manager.Fork(RequestId{1}, RequestId{2});
  REQUIRE(manager.AllocateSlots(RequestId{1}, 10));
  return manager.Snapshot();
}

KvCacheSnapshot::RequestTable& TableOf(KvCacheSnapshot& snapshot, RequestId request) {
  return snapshot.tables[0].request == request ? snapshot.tables[0] : snapshot.tables[1];
}

void CheckViolation(const KvCacheSnapshot& snapshot, const std::string& expected) {
  std::string all;
  for (const std::string& violation : FindKvCacheViolations(snapshot)) all += violation + "\n";
  CHECK_THAT(all, Catch::Matchers::ContainsSubstring(expected));
}

TEST_CASE("A sound snapshot has no violation") {
  CHECK(FindKvCacheViolations(SoundSnapshot()) == std::vector<std::string>{});
}

TEST_CASE("Each violation is told") {
  KvCacheSnapshot snapshot = SoundSnapshot();
  SECTION("counts that do not sum to the total") {
    --snapshot.usage.num_free_blocks;
    CheckViolation(snapshot, "free + cached + used blocks: got 5, expected 6");
  }
  SECTION("a wrong number of used blocks") {
    ++snapshot.usage.num_used_blocks;
    CheckViolation(snapshot, "num_used_blocks: got 4, expected 3");
  }
  SECTION("a peak below what is used") {
    snapshot.usage.peak_used_blocks = 1;
    CheckViolation(snapshot, "peak_used_blocks: got 1");
  }
  SECTION("more tokens than the blocks hold") {
    snapshot.usage.num_stored_tokens = 13;
    CheckViolation(snapshot, "num_stored_tokens: got 13");
  }
  SECTION("a reference too many") {
    ++snapshot.ref_counts[1];
    CheckViolation(snapshot, "block 1: reference count: got 3, expected 2");
  }
  SECTION("a table too short for its tokens") {
    TableOf(snapshot, RequestId{1}).num_tokens = 13;
    CheckViolation(snapshot, "request 1: table length for 13 tokens: got 3, expected 4");
  }
  SECTION("a block twice in a table") {
    TableOf(snapshot, RequestId{2}).blocks[1] = 0;
    CheckViolation(snapshot, "request 2: block 0 stands in its table twice");
  }
  SECTION("a block that is none") {
    TableOf(snapshot, RequestId{2}).blocks[1] = 6;
    CheckViolation(snapshot, "request 2: block 6 is not one of 6");
  }
  SECTION("an owned block in the free queue") {
    snapshot.free_blocks.push_back(2);
    CheckViolation(snapshot, "block 2: times in the free queue with reference count 1: got 1, expected 0");
  }
  SECTION("a lost block") {
    snapshot.free_blocks.pop_back();
    CheckViolation(snapshot, "block 5: times in the free queue with reference count 0: got 0, expected 1");
  }
  SECTION("a block twice in the free queue") {
    snapshot.free_blocks.push_back(3);
    CheckViolation(snapshot, "block 3: times in the free queue with reference count 0: got 2, expected 1");
  }
  SECTION("a cached block that is not counted") {
    snapshot.prefix_ids[5] = 7;
    CheckViolation(snapshot, "num_cached_blocks: got 0, expected 1");
  }
  SECTION("two blocks with one prefix") {
    snapshot.prefix_ids[0] = 7;
    snapshot.prefix_ids[1] = 7;
    CheckViolation(snapshot, "prefix 7 is found in two blocks");
  }
  SECTION("a findable block that is not full") {
    TableOf(snapshot, RequestId{1}).num_indexed_blocks = 3;
    CheckViolation(snapshot, "request 1: 3 blocks are made findable, of 10 tokens");
  }
  SECTION("all at once") {
    --snapshot.usage.num_free_blocks;
    ++snapshot.ref_counts[1];
    CHECK(FindKvCacheViolations(snapshot).size() == 2);
  }
}

}  // namespace
}  // namespace quire
