#include "engine/kv_cache/block_pool.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

namespace quire {
namespace {

using Ids = std::vector<BlockId>;

TEST_CASE("Blocks are given all or none") {
  BlockPool pool(4);
  Ids ids;
  CHECK_FALSE(pool.Allocate(5, &ids));
  CHECK(ids.empty());
  CHECK(pool.num_free_blocks() == 4);

  REQUIRE(pool.Allocate(3, &ids));
  CHECK(ids == Ids{0, 1, 2});
  CHECK_FALSE(pool.Allocate(2, &ids));
  CHECK(ids.size() == 3);
  CHECK(pool.num_free_blocks() == 1);
  CHECK(pool.Allocate(0, &ids));
  REQUIRE(pool.Allocate(1, &ids));
  CHECK(pool.num_free_blocks() == 0);
  CHECK(pool.num_used_blocks() == 4);
}

TEST_CASE("Of the blocks to be reused last, the least recently freed is given first") {
  BlockPool pool(4);
  Ids ids;
  REQUIRE(pool.Allocate(4, &ids));
  for (const BlockId id : {2, 0, 3}) CHECK(pool.DropReference(id, Reuse::kLast));
  Ids again;
  REQUIRE(pool.Allocate(2, &again));
  CHECK(again == Ids{2, 0});
  CHECK(pool.FreeBlockIds() == Ids{3});
}

TEST_CASE("A block to be reused first goes before all others") {
  BlockPool pool(3);
  Ids ids;
  REQUIRE(pool.Allocate(3, &ids));
  CHECK(pool.DropReference(0, Reuse::kLast));
  CHECK(pool.DropReference(1, Reuse::kFirst));
  CHECK(pool.DropReference(2, Reuse::kFirst));
  CHECK(pool.FreeBlockIds() == Ids{2, 1, 0});
}

TEST_CASE("A free block can get an owner again") {
  BlockPool pool(2);
  Ids ids;
  REQUIRE(pool.Allocate(2, &ids));
  CHECK(pool.DropReference(0, Reuse::kLast));
  CHECK(pool.DropReference(1, Reuse::kLast));
  pool.AddReference(0);
  CHECK(pool.ref_count(0) == 1);
  CHECK(pool.FreeBlockIds() == Ids{1});
}

TEST_CASE("A shared block is free when its last owner is gone") {
  BlockPool pool(2);
  Ids ids;
  REQUIRE(pool.Allocate(1, &ids));
  pool.AddReference(ids[0]);
  CHECK(pool.ref_count(ids[0]) == 2);
  CHECK_FALSE(pool.DropReference(ids[0], Reuse::kLast));
  CHECK(pool.num_free_blocks() == 1);
  CHECK(pool.DropReference(ids[0], Reuse::kLast));
  CHECK(pool.num_free_blocks() == 2);
  CHECK(pool.ref_count(ids[0]) == 0);
}

TEST_CASE("The pool keeps its counts over random operations") {
  constexpr int64_t kNumBlocks = 24;
  BlockPool pool(kNumBlocks);
  std::vector<int32_t> owners(kNumBlocks, 0);
  std::mt19937 random(2);
  for (int i = 0; i < 30000; ++i) {
    const BlockId id = static_cast<BlockId>(random() % kNumBlocks);
    int32_t& count = owners[static_cast<size_t>(id)];
    const int64_t num_free = std::count(owners.begin(), owners.end(), 0);
    if (random() % 3 == 0) {
      const int64_t num_wanted = static_cast<int64_t>(random() % 5);
      const Ids oldest = pool.FreeBlockIds();
      Ids ids;
      REQUIRE(pool.Allocate(num_wanted, &ids) == (num_wanted <= num_free));
      REQUIRE(std::equal(ids.begin(), ids.end(), oldest.begin()));
      for (const BlockId given : ids) ++owners[static_cast<size_t>(given)];
    } else if (count < 4 && random() % 3 == 0) {
      pool.AddReference(id);
      ++count;
    } else if (count > 0) {
      const Reuse reuse = random() % 2 == 0 ? Reuse::kFirst : Reuse::kLast;
      REQUIRE(pool.DropReference(id, reuse) == (--count == 0));
      const Ids free = pool.FreeBlockIds();
      if (count == 0) REQUIRE((reuse == Reuse::kFirst ? free.front() : free.back()) == id);
    }
    Ids free = pool.FreeBlockIds();
    std::sort(free.begin(), free.end());
    REQUIRE(std::adjacent_find(free.begin(), free.end()) == free.end());
    for (BlockId block = 0; block < kNumBlocks; ++block) {
      const int32_t expected = owners[static_cast<size_t>(block)];
      REQUIRE(pool.ref_count(block) == expected);
      REQUIRE(std::binary_search(free.begin(), free.end(), block) == (expected == 0));
    }
  }
}

}  // namespace
}  // namespace quire
