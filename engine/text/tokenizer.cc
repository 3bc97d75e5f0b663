#include "engine/text/tokenizer.h"

#include <malloc.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/base/strings.h"
#include "engine/text/gguf_vocabulary.h"
#include "engine/text/text_ffi_handles.h"
#include "engine/text/utf8.h"

namespace quire {
namespace {

std::vector<QuireBytes> ToQuireBytes(std::span<const std::string> texts) {
  std::vector<QuireBytes> bytes;
  bytes.reserve(texts.size());
  for (const std::string& text : texts) bytes.push_back(quire::ToQuireBytes(std::string_view(text)));
  return bytes;
}

absl::StatusOr<QuireTokenizerHandle> MakeHandle(const GgufVocabulary& vocabulary) {
  const std::vector<QuireBytes> tokens = ToQuireBytes(vocabulary.tokens);
  const std::vector<QuireBytes> merges = ToQuireBytes(vocabulary.merges);
  const std::vector<TokenId> special = vocabulary.IdsOf(TokenKind::kControl);
  const std::vector<TokenId> user_defined = vocabulary.IdsOf(TokenKind::kUserDefined);
  const QuireVocabulary borrowed = {
      .pre_tokenizer = vocabulary.pre_tokenizer,
      .tokens = tokens.data(),
      .scores = vocabulary.scores.empty() ? nullptr : vocabulary.scores.data(),
      .num_tokens = tokens.size(),
      .merges = merges.data(),
      .num_merges = merges.size(),
      .special_ids = special.data(),
      .num_special = special.size(),
      .user_defined_ids = user_defined.data(),
      .num_user_defined = user_defined.size(),
      .add_space_prefix = vocabulary.add_space_prefix ? 1 : 0,
  };
  QuireTokenizer* tokenizer = nullptr;
  QuireString error = {};
  const QuireTextStatus status = quire_tokenizer_create(&borrowed, &tokenizer, &error);
  if (status != QUIRE_TEXT_OK) return TakeTextError(status, "tokenizer", error);
  return QuireTokenizerHandle(tokenizer);
}

// Every token's bytes, end to end.
class TokenBytesTable {
 public:
  explicit TokenBytesTable(const GgufVocabulary& vocabulary) {
    offsets_.reserve(vocabulary.tokens.size() + 1);
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      const std::string bytes = BytesOfToken(vocabulary, static_cast<TokenId>(id));
      longest_ = std::max(longest_, bytes.size());
      bytes_ += bytes;
      offsets_.push_back(bytes_.size());
    }
    bytes_.shrink_to_fit();
  }

  size_t size() const { return offsets_.size() - 1; }
  size_t longest() const { return longest_; }
  std::string_view operator[](TokenId id) const {
    return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }

 private:
  std::string bytes_;
  std::vector<size_t> offsets_ = {0};  // [size + 1]
  size_t longest_ = 0;
};

class GgufTokenizer : public Tokenizer {
 public:
  GgufTokenizer(const GgufVocabulary& vocabulary, QuireTokenizerHandle handle)
      : handle_(std::move(handle)),
        bytes_(vocabulary),
        is_special_(vocabulary.tokens.size()),
        end_ids_(vocabulary.end_of_generation_ids),
        bos_id_(vocabulary.bos_id),
        add_bos_(vocabulary.add_bos),
        add_space_prefix_(vocabulary.add_space_prefix),
        bos_text_(vocabulary.bos_id ? vocabulary.tokens[*vocabulary.bos_id] : ""),
        eos_text_(vocabulary.eos_id ? vocabulary.tokens[*vocabulary.eos_id] : "") {
    for (const TokenKind kind : {TokenKind::kControl, TokenKind::kUnknown}) {
      for (const TokenId id : vocabulary.IdsOf(kind)) is_special_[id] = true;
    }
  }

  int64_t vocab_size() const override { return static_cast<int64_t>(bytes_.size()); }
  int64_t max_token_bytes() const override { return static_cast<int64_t>(bytes_.longest()); }

  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text, bool parse_special, bool add_bos) const override {
    if (const size_t valid = Utf8ValidPrefix(text); valid != text.size()) {
      return InvalidArgument("text", StrCat("a broken character at byte ", valid), "valid UTF-8");
    }
    QuireTokenIds encoded = {};
    QuireString error = {};
    const QuireTextStatus status =
        quire_tokenizer_encode(handle_.get(), quire::ToQuireBytes(text), parse_special ? 1 : 0, &encoded, &error);
    if (status != QUIRE_TEXT_OK) return TakeTextError(status, "tokenizer", error);
    std::vector<TokenId> ids;
    const bool with_bos = add_bos && add_bos_ && bos_id_.has_value();
    ids.reserve(encoded.size + (with_bos ? 1 : 0));
    if (with_bos) ids.push_back(*bos_id_);
    ids.insert(ids.end(), encoded.data, encoded.data + encoded.size);
    quire_token_ids_free(encoded);
    return ids;
  }

  absl::StatusOr<std::string> Decode(std::span<const TokenId> ids, bool with_special) const override {
    std::string bytes;
    for (const TokenId id : ids) {
      if (id < 0 || id >= vocab_size()) {
        return InvalidArgument("token_ids", id, StrCat("ids in [0, ", vocab_size(), ")"));
      }
      if (with_special || !is_special_[id]) bytes += bytes_[id];
    }
    if (add_space_prefix_ && bytes.starts_with(' ')) bytes.erase(0, 1);
    std::string text;
    MoveUtf8(bytes, /*is_last=*/true, text);
    return text;
  }

  std::string TokenBytes(TokenId id) const override {
    CheckId(id);
    return std::string(bytes_[id]);
  }

  bool IsSpecial(TokenId id) const override {
    CheckId(id);
    return is_special_[id];
  }

  std::span<const TokenId> end_of_generation_ids() const override { return end_ids_; }
  const std::string& bos_text() const override { return bos_text_; }
  const std::string& eos_text() const override { return eos_text_; }

 private:
  void CheckId(TokenId id) const {
    QUIRE_CHECK_LE(0, id);
    QUIRE_CHECK_LT(id, vocab_size());
  }

  QuireTokenizerHandle handle_;
  TokenBytesTable bytes_;
  std::vector<bool> is_special_;  // [vocab_size]
  std::vector<TokenId> end_ids_;
  std::optional<TokenId> bos_id_;
  bool add_bos_;
  bool add_space_prefix_;
  std::string bos_text_;
  std::string eos_text_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(const Checkpoint& checkpoint) {
  std::unique_ptr<Tokenizer> tokenizer;
  {
    QUIRE_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary, ReadGgufVocabulary(checkpoint));
    QUIRE_ASSIGN_OR_RETURN(QuireTokenizerHandle handle, MakeHandle(vocabulary));
    tokenizer = std::make_unique<GgufTokenizer>(vocabulary, std::move(handle));
  }
  // Hundreds of thousands of short strings were made and dropped; the allocator would keep their pages, about as much
  // as the tokenizer itself, outside of every memory sum.
  malloc_trim(0);
  return tokenizer;
}

}  // namespace quire
