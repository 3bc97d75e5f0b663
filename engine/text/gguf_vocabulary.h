#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/ids.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/text/text_ffi.h"

namespace quire {

// What a token is, in GGUF's numbers.
enum class TokenKind : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// The `tokenizer.ggml.*` metadata of a checkpoint, checked: every id is in the vocabulary, every array has its length.
struct GgufVocabulary {
  QuirePreTokenizer pre_tokenizer = QUIRE_PRE_TOKENIZER_GPT2;
  std::vector<std::string> tokens;  // as the vocabulary writes them
  std::vector<TokenKind> kinds;     // [tokens.size()]
  std::vector<float> scores;        // [tokens.size()] for sentence pieces, else empty
  std::vector<std::string> merges;  // "left right"; empty for sentence pieces
  std::optional<TokenId> bos_id;
  std::optional<TokenId> eos_id;
  std::vector<TokenId> end_of_generation_ids;  // sorted, no duplicates
  bool add_bos = false;
  bool add_space_prefix = false;  // sentence pieces only

  bool is_sentence_piece() const { return pre_tokenizer == QUIRE_PRE_TOKENIZER_SENTENCE_PIECE; }
  std::vector<TokenId> IdsOf(TokenKind kind) const;
};

// Unimplemented names a tokenizer model or pre-tokenizer that is not supported.
absl::StatusOr<GgufVocabulary> ReadGgufVocabulary(const Checkpoint& checkpoint);

// The bytes that `token` stands for in text. Control tokens stand for their own name.
std::string BytesOfToken(const GgufVocabulary& vocabulary, TokenId id);

}  // namespace quire
