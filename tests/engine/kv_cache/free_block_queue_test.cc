#include "engine/kv_cache/free_block_queue.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <deque>
#include <random>
#include <vector>

namespace quire {
namespace {

std::vector<KvBlock> MakeBlocks(BlockId num_blocks) {
  std::vector<KvBlock> blocks(static_cast<size_t>(num_blocks));
  for (BlockId id = 0; id < num_blocks; ++id) blocks[static_cast<size_t>(id)].id = id;
  return blocks;
}

using Ids = std::vector<BlockId>;

TEST_CASE("A new queue is empty") {
  FreeBlockQueue queue;
  CHECK(queue.size() == 0);
  CHECK(queue.BlockIds().empty());
}

TEST_CASE("Blocks leave in the order of their coming") {
  auto blocks = MakeBlocks(3);
  FreeBlockQueue queue;
  for (const size_t i : {2, 0, 1}) queue.PushBack(&blocks[i]);
  CHECK(queue.BlockIds() == Ids{2, 0, 1});
  CHECK(queue.PopFront()->id == 2);
  CHECK(queue.PopFront()->id == 0);
  CHECK(queue.size() == 1);
  queue.PushBack(&blocks[2]);
  CHECK(queue.BlockIds() == Ids{1, 2});
  queue.PushFront(&blocks[0]);
  CHECK(queue.BlockIds() == Ids{0, 1, 2});
}

TEST_CASE("A block is removed from the front, the middle and the back") {
  auto blocks = MakeBlocks(4);
  FreeBlockQueue queue;
  for (auto& block : blocks) queue.PushBack(&block);
  queue.Remove(&blocks[1]);
  CHECK(queue.BlockIds() == Ids{0, 2, 3});
  queue.Remove(&blocks[0]);
  CHECK(queue.BlockIds() == Ids{2, 3});
  queue.Remove(&blocks[3]);
  CHECK(queue.BlockIds() == Ids{2});
  queue.Remove(&blocks[2]);
  CHECK(queue.size() == 0);
  queue.PushBack(&blocks[1]);
  CHECK(queue.BlockIds() == Ids{1});
}

TEST_CASE("The queue does what a list does, over random operations") {
  auto blocks = MakeBlocks(32);
  FreeBlockQueue queue;
  std::deque<BlockId> expected;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    KvBlock* block = &blocks[random() % blocks.size()];
    const auto found = std::find(expected.begin(), expected.end(), block->id);
    if (random() % 4 == 0 && !expected.empty()) {
      REQUIRE(queue.PopFront()->id == expected.front());
      expected.pop_front();
    } else if (found != expected.end()) {
      queue.Remove(block);
      expected.erase(found);
    } else if (random() % 2 == 0) {
      queue.PushFront(block);
      expected.push_front(block->id);
    } else {
      queue.PushBack(block);
      expected.push_back(block->id);
    }
    REQUIRE(queue.size() == static_cast<int64_t>(expected.size()));
    REQUIRE(queue.BlockIds() == Ids(expected.begin(), expected.end()));
  }
}

}  // namespace
}  // namespace quire
