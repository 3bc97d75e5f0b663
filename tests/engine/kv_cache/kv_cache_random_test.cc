#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kv_cache/kv_cache_invariants.h"
#include "engine/kv_cache/kv_cache_manager.h"
#include "tests/support/fake_clock.h"
#include "tests/support/random_operations.h"

namespace quire {
namespace {

using testing::NumRandomOperations;
using testing::WeakHash;
using Tokens = std::vector<TokenId>;

// A manager beside the plainest account of it: what each request's tokens are, how many are computed, and what each
// block holds. Checked after every operation.
class RandomCache {
 public:
  RandomCache(int64_t num_blocks, int64_t block_size, BlockHashFunction hash, uint32_t seed)
      : random_(seed),
        block_size_(block_size),
        manager_({.num_blocks = num_blocks, .block_size = block_size}, &clock_, hash),
        contents_(static_cast<size_t>(num_blocks)) {}

  void Run(int64_t num_operations) {
    for (int64_t i = 0; i < num_operations; ++i) {
      INFO("operation " << i);
      DoAnything();
      Check();
    }
    while (!requests_.empty()) Free(requests_.begin()->first);
    CHECK(manager_.num_available_blocks() == manager_.num_blocks());
  }

  int64_t num_hit_tokens() const { return num_hit_tokens_; }
  int64_t num_refusals() const { return num_refusals_; }

 private:
  struct PlainRequest {
    std::string cache_namespace;
    Tokens tokens;
    int64_t num_slots = 0;
    int64_t num_computed = 0;
    bool writes_last_block = true;  // false: a fork, which may not write into what it shares
  };
  struct Content {
    std::string cache_namespace;
    Tokens tokens;  // from the sequence's beginning to the block's last computed token
  };

  int64_t Below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(random_); }
  RequestId AnyRequest() { return std::next(requests_.begin(), Below(static_cast<int64_t>(requests_.size())))->first; }

  void DoAnything() {
    clock_.Advance(std::chrono::milliseconds(Below(1000)));
    const int64_t choice = Below(100);
    if (choice < 25 || requests_.empty()) {
      Admit();
    } else if (choice < 55) {
      Compute(AnyRequest());
    } else if (choice < 75) {
      Grow(AnyRequest());
    } else if (choice < 82) {
      Truncate(AnyRequest());
    } else if (choice < 86) {
      Fork(AnyRequest());
    } else if (choice < 99) {
      Free(AnyRequest());
    } else {
      manager_.ClearPrefixCache();
      REQUIRE(manager_.Usage().num_cached_blocks == 0);
    }
  }

  Tokens SomeTokens(int64_t count) {
    Tokens tokens;
    for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(Below(2)));
    return tokens;
  }

  void Admit() {
    PlainRequest plain;
    plain.cache_namespace = Below(3) == 0 ? "other" : "";
    // Often one of few beginnings, so that something is found.
    plain.tokens = Tokens(static_cast<size_t>(Below(30)), static_cast<TokenId>(Below(2)));
    const Tokens own = SomeTokens(1 + Below(10));
    plain.tokens.insert(plain.tokens.end(), own.begin(), own.end());
    plain.num_slots = static_cast<int64_t>(plain.tokens.size());
    const int64_t max_cached = Below(4) == 0 ? Below(plain.num_slots) : plain.num_slots;
    const int64_t headroom = Below(3) == 0 ? Below(3) : 0;
    const int64_t num_available = manager_.num_available_blocks();
    const RequestId id{next_id_++};
    const std::optional<int64_t> num_cached =
        manager_.Admit({.request = id,
                        .token_ids = plain.tokens,
                        .max_num_tokens = plain.num_slots + 20,
                        .cache_namespace = std::make_shared<const std::string>(plain.cache_namespace),
                        .max_cached_tokens = max_cached,
                        .num_headroom_blocks = headroom});
    if (!num_cached) {
      // At worst it needed a block for all of its tokens.
      REQUIRE(manager_.BlocksFor(plain.num_slots) + headroom > num_available);
      REQUIRE(manager_.num_available_blocks() == num_available);
      ++num_refusals_;
      return;
    }
    REQUIRE(manager_.num_available_blocks() >= headroom);
    REQUIRE(*num_cached % block_size_ == 0);
    REQUIRE(*num_cached <= std::min(max_cached, plain.num_slots - 1));
    plain.num_computed = *num_cached;
    num_hit_tokens_ += *num_cached;
    requests_[id] = plain;
    CheckHolds(id, plain);
    ForgetFrom(id, plain.num_computed);
  }

  // The request's blocks from that token on are new to it: what they held is gone.
  void ForgetFrom(RequestId id, int64_t first_token) {
    const auto table = manager_.BlockTable(id);
    for (auto i = static_cast<size_t>((first_token + block_size_ - 1) / block_size_); i < table.size(); ++i) {
      contents_[static_cast<size_t>(table[i])] = {};
    }
  }

  void Compute(RequestId id) {
    PlainRequest& plain = requests_.at(id);
    if (!plain.writes_last_block || plain.num_computed == plain.num_slots) return;
    const int64_t first = plain.num_computed;
    plain.num_computed += 1 + Below(plain.num_slots - first);
    const auto table = manager_.BlockTable(id);
    for (int64_t i = first / block_size_; i * block_size_ < plain.num_computed; ++i) {
      const int64_t end = std::min(plain.num_computed, (i + 1) * block_size_);
      contents_[static_cast<size_t>(table[static_cast<size_t>(i)])] = {
          plain.cache_namespace, {plain.tokens.begin(), plain.tokens.begin() + end}};
    }
    manager_.CacheComputed(id, plain.tokens, plain.num_computed);
  }

  void Grow(RequestId id) {
    PlainRequest& plain = requests_.at(id);
    if (!plain.writes_last_block) return;
    const int64_t num_slots = plain.num_slots + 1 + Below(4);
    const int64_t num_missing = manager_.BlocksFor(num_slots) - manager_.BlocksFor(plain.num_slots);
    const bool fits = num_missing <= manager_.num_available_blocks();
    REQUIRE(manager_.AllocateSlots(id, num_slots) == fits);
    if (!fits) {
      ++num_refusals_;
      return;
    }
    ForgetFrom(id, plain.num_slots);
    const Tokens added = SomeTokens(num_slots - plain.num_slots);
    plain.tokens.insert(plain.tokens.end(), added.begin(), added.end());
    plain.num_slots = num_slots;
  }

  void Truncate(RequestId id) {
    PlainRequest& plain = requests_.at(id);
    int64_t num_kept = Below(plain.num_slots + 1);
    // A block that others own too is never to be written again: only whole ones may be kept.
    if (IsShared(id)) num_kept -= num_kept % block_size_;
    manager_.Truncate(id, num_kept);
    plain.tokens.resize(static_cast<size_t>(num_kept));
    plain.num_slots = num_kept;
    plain.num_computed = std::min(plain.num_computed, num_kept);
    // With nothing left but full blocks that are computed, it never writes to what it shares.
    const bool is_full = num_kept % block_size_ == 0 && plain.num_computed == num_kept;
    plain.writes_last_block = plain.writes_last_block || is_full;
    if (num_kept % block_size_ == 0 || !plain.writes_last_block) return;
    auto& last = contents_[static_cast<size_t>(manager_.BlockTable(id).back())].tokens;
    last.resize(std::min(last.size(), static_cast<size_t>(num_kept)));
  }

  bool IsShared(RequestId id) const {
    const std::map<BlockId, int64_t> owners = CountOwners();
    return std::ranges::any_of(manager_.BlockTable(id), [&](BlockId block) { return owners.at(block) > 1; });
  }

  void Fork(RequestId parent) {
    // The parent may go on writing into the last block while the child only reads it.
    const RequestId child{next_id_++};
    manager_.Fork(parent, child);
    requests_[child] = requests_.at(parent);
    requests_.at(child).writes_last_block = false;
  }

  void Free(RequestId id) {
    manager_.Free(id);
    requests_.erase(id);
    REQUIRE(manager_.BlockTable(id).empty());
  }

  std::map<BlockId, int64_t> CountOwners() const {
    std::map<BlockId, int64_t> owners;
    for (const auto& [id, plain] : requests_) {
      for (const BlockId block : manager_.BlockTable(id)) ++owners[block];
    }
    return owners;
  }

  // What it has computed stands in its blocks.
  void CheckHolds(RequestId id, const PlainRequest& plain) const {
    const auto table = manager_.BlockTable(id);
    REQUIRE(static_cast<int64_t>(table.size()) == manager_.BlocksFor(plain.num_slots));
    for (int64_t i = 0; i * block_size_ < plain.num_computed; ++i) {
      const Content& content = contents_[static_cast<size_t>(table[static_cast<size_t>(i)])];
      const auto end = static_cast<size_t>(std::min(plain.num_computed, (i + 1) * block_size_));
      const bool holds =
          content.cache_namespace == plain.cache_namespace && content.tokens.size() >= end &&
          std::equal(plain.tokens.begin(), plain.tokens.begin() + static_cast<int64_t>(end), content.tokens.begin());
      if (!holds) FAIL("request " << static_cast<uint64_t>(id) << " does not find its tokens in block " << i);
    }
  }

  void Check() const {
    REQUIRE(FindKvCacheViolations(manager_.Snapshot()) == std::vector<std::string>{});
    for (const auto& [id, plain] : requests_) CheckHolds(id, plain);
    const std::map<BlockId, int64_t> owners = CountOwners();
    const KvCacheUsage usage = manager_.Usage();
    REQUIRE(usage.num_used_blocks == static_cast<int64_t>(owners.size()));
    REQUIRE(usage.num_shared_blocks ==
            std::ranges::count_if(owners, [](const auto& owner) { return owner.second > 1; }));
    REQUIRE(usage.num_prefix_hit_tokens == num_hit_tokens_);
  }

  std::mt19937 random_;
  const int64_t block_size_;
  testing::FakeClock clock_;
  KvCacheManager manager_;
  std::map<RequestId, PlainRequest> requests_;
  std::vector<Content> contents_;  // [num_blocks]
  uint64_t next_id_ = 1;
  int64_t num_hit_tokens_ = 0;
  int64_t num_refusals_ = 0;
};

TEST_CASE("Whatever is admitted, shared, forked, cut and freed, each request finds its own tokens in its blocks") {
  const int64_t num_operations = NumRandomOperations(200000) / 16;
  int64_t num_hit_tokens = 0;
  int64_t num_refusals = 0;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    for (const int64_t block_size : {1, 2, 4, 16}) {
      INFO("seed " << seed << ", block size " << block_size);
      RandomCache cache(/*num_blocks=*/128 / block_size, block_size, seed % 2 == 0 ? WeakHash : HashBlock, seed);
      cache.Run(num_operations);
      num_hit_tokens += cache.num_hit_tokens();
      num_refusals += cache.num_refusals();
    }
  }
  INFO(num_hit_tokens << " tokens found, " << num_refusals << " refusals");
  CHECK(num_hit_tokens > num_operations);
  CHECK(num_refusals > num_operations / 10);
}

}  // namespace
}  // namespace quire
