#include "engine/text/text_memory.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "engine/base/math.h"
#include "engine/text/gguf_vocabulary.h"

namespace quire {
namespace {

// Bytes of a hash table as the crate's maps keep it: a power of two of buckets, at most 7/8 full, and a mark for each.
int64_t HashTableBytes(int64_t num_entries, int64_t entry_bytes) {
  const auto buckets = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(CeilDiv<int64_t>(num_entries * 8, 7))));
  return buckets * (entry_bytes + 1);
}

// Bytes that the allocator takes for a string's characters.
int64_t AllocatedBytes(const std::string& text) {
  return std::max<int64_t>(32, AlignUp<int64_t>(static_cast<int64_t>(text.size()) + 8, 16));
}

constexpr int64_t kVocabularyEntryBytes = 32;         // a string and an id
constexpr int64_t kMergeEntryBytes = 16;              // two ids, rank and new id
constexpr int64_t kMatchingBytes = int64_t{3} << 20;  // code, character classes, what matching remembers

// Of an encoding thread: the states that a pattern remembers.
constexpr int64_t kPatternStateBytes = int64_t{2} << 20;
// While a byte of text is encoded and what came of it is answered: copies of the text, words, ids, each token's text.
constexpr int64_t kEncodingBytesPerTextByte = 40;

}  // namespace

int64_t EstimateTextLayerBytes(const Checkpoint& checkpoint) {
  const auto tokens = checkpoint.GetStringArray("tokenizer.ggml.tokens");
  if (!tokens.ok()) return 0;
  const auto num_tokens = static_cast<int64_t>(tokens->size());
  const auto merges = checkpoint.GetStringArray("tokenizer.ggml.merges");
  // Sentence pieces have about two ways to be made each.
  const int64_t num_merges = merges.ok() ? static_cast<int64_t>(merges->size()) : 2 * num_tokens;
  int64_t bytes = 2 * HashTableBytes(num_tokens, kVocabularyEntryBytes) + HashTableBytes(num_merges, kMergeEntryBytes);
  for (const std::string& token : *tokens) {
    bytes += 2 * AllocatedBytes(token);                                // text to id, id to text
    bytes += static_cast<int64_t>(token.size() + sizeof(size_t)) + 1;  // the bytes that it stands for
  }
  return bytes + bytes / 4 + kMatchingBytes;  // a quarter for the allocator's gaps
}

int64_t EncodingBytesFor(int64_t max_text_bytes, int64_t num_threads) {
  return num_threads * (max_text_bytes * kEncodingBytesPerTextByte + kPatternStateBytes);
}

int64_t LongestTokenBytes(const Checkpoint& checkpoint) {
  const auto vocabulary = ReadGgufVocabulary(checkpoint);
  if (!vocabulary.ok()) return 0;
  size_t longest = 0;
  for (size_t id = 0; id < vocabulary->tokens.size(); ++id) {
    longest = std::max(longest, BytesOfToken(*vocabulary, static_cast<TokenId>(id)).size());
  }
  return static_cast<int64_t>(longest);
}

}  // namespace quire
