#include "engine/kv_cache/kv_cache_invariants.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "engine/base/math.h"
#include "engine/base/strings.h"

namespace quire {
namespace {

// Collects violations; each check is a function, so that the list in the header reads like the code.
class Validator {
 public:
  explicit Validator(const KvCacheSnapshot& snapshot) : snapshot_(snapshot) {}

  std::vector<std::string> Run() {
    CheckUsage();
    CheckTables();
    CheckReferenceCounts();
    CheckFreeQueue();
    CheckPrefixes();
    return std::move(violations_);
  }

 private:
  int64_t num_blocks() const { return static_cast<int64_t>(snapshot_.ref_counts.size()); }
  bool IsBlock(BlockId id) const { return id >= 0 && id < num_blocks(); }

  template <typename... Parts>
  void Report(const Parts&... parts) {
    violations_.push_back(StrCat(parts...));
  }

  void ExpectEqual(std::string_view what, int64_t got, int64_t expected) {
    if (got != expected) Report(what, ": got ", got, ", expected ", expected);
  }

  void CheckUsage() {
    const KvCacheUsage& usage = snapshot_.usage;
    const auto& counts = snapshot_.ref_counts;
    const int64_t num_owned = num_blocks() - std::count(counts.begin(), counts.end(), 0);
    ExpectEqual("num_blocks", usage.num_blocks, num_blocks());
    ExpectEqual("num_used_blocks", usage.num_used_blocks, num_owned);
    ExpectEqual("free + cached + used blocks", usage.num_free_blocks + usage.num_cached_blocks + usage.num_used_blocks,
                usage.num_blocks);
    if (usage.peak_used_blocks < usage.num_used_blocks || usage.peak_used_blocks > usage.num_blocks) {
      Report("peak_used_blocks: got ", usage.peak_used_blocks, ", expected between the ", usage.num_used_blocks,
             " used and all ", usage.num_blocks);
    }
    if (usage.num_stored_tokens > usage.num_used_blocks * snapshot_.block_size) {
      Report("num_stored_tokens: got ", usage.num_stored_tokens, ", more than ", usage.num_used_blocks,
             " used blocks hold");
    }
  }

  void CheckTables() {
    for (const auto& table : snapshot_.tables) {
      const std::string name = StrCat("request ", static_cast<uint64_t>(table.request));
      ExpectEqual(StrCat(name, ": table length for ", table.num_tokens, " tokens"),
                  static_cast<int64_t>(table.blocks.size()), CeilDiv(table.num_tokens, snapshot_.block_size));
      if (table.num_indexed_blocks > table.num_tokens / snapshot_.block_size) {
        Report(name, ": ", table.num_indexed_blocks, " blocks are made findable, of ", table.num_tokens, " tokens");
      }
      std::vector<BlockId> sorted = table.blocks;
      std::sort(sorted.begin(), sorted.end());
      const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
      if (twice != sorted.end()) Report(name, ": block ", *twice, " stands in its table twice");
    }
  }

  void CheckReferenceCounts() {
    std::vector<int64_t> owners(snapshot_.ref_counts.size(), 0);  // [num_blocks]
    for (const auto& table : snapshot_.tables) {
      for (const BlockId id : table.blocks) {
        if (IsBlock(id)) {
          ++owners[static_cast<size_t>(id)];
        } else {
          Report("request ", static_cast<uint64_t>(table.request), ": block ", id, " is not one of ", num_blocks());
        }
      }
    }
    for (size_t id = 0; id < owners.size(); ++id) {
      ExpectEqual(StrCat("block ", id, ": reference count"), snapshot_.ref_counts[id], owners[id]);
    }
  }

  void CheckFreeQueue() {
    std::vector<int64_t> occurrences(snapshot_.ref_counts.size(), 0);  // [num_blocks]
    for (const BlockId id : snapshot_.free_blocks) {
      if (IsBlock(id)) {
        ++occurrences[static_cast<size_t>(id)];
      } else {
        Report("free queue: block ", id, " is not one of ", num_blocks());
      }
    }
    for (size_t id = 0; id < occurrences.size(); ++id) {
      ExpectEqual(StrCat("block ", id, ": times in the free queue with reference count ", snapshot_.ref_counts[id]),
                  occurrences[id], snapshot_.ref_counts[id] == 0 ? 1 : 0);
    }
  }

  void CheckPrefixes() {
    int64_t num_cached = 0;
    std::vector<uint64_t> ids;
    for (size_t block = 0; block < snapshot_.prefix_ids.size(); ++block) {
      if (snapshot_.prefix_ids[block] == 0) continue;
      ids.push_back(snapshot_.prefix_ids[block]);
      if (snapshot_.ref_counts[block] == 0) ++num_cached;
    }
    ExpectEqual("num_cached_blocks", snapshot_.usage.num_cached_blocks, num_cached);
    std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    if (twice != ids.end()) Report("prefix ", *twice, " is found in two blocks");
  }

  const KvCacheSnapshot& snapshot_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> FindKvCacheViolations(const KvCacheSnapshot& snapshot) { return Validator(snapshot).Run(); }

}  // namespace quire
