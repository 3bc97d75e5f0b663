#include "engine/text/gguf_vocabulary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/strings.h"
#include "engine/text/utf8.h"

namespace quire {
namespace {

constexpr std::string_view kSentencePieceSpace = "\xE2\x96\x81";  // U+2581

// Names that llama.cpp's converter gives to pre-tokenizers, and the family each belongs to.
constexpr auto kPreTokenizers = std::to_array<std::pair<std::string_view, QuirePreTokenizer>>({
    {"default", QUIRE_PRE_TOKENIZER_GPT2},
    {"gpt-2", QUIRE_PRE_TOKENIZER_GPT2},
    {"phi-2", QUIRE_PRE_TOKENIZER_GPT2},
    {"smollm", QUIRE_PRE_TOKENIZER_SINGLE_DIGITS},
    {"starcoder", QUIRE_PRE_TOKENIZER_SINGLE_DIGITS},
    {"command-r", QUIRE_PRE_TOKENIZER_SINGLE_DIGITS},
    {"llama-bpe", QUIRE_PRE_TOKENIZER_LLAMA3},
    {"llama3", QUIRE_PRE_TOKENIZER_LLAMA3},
    {"llama-v3", QUIRE_PRE_TOKENIZER_LLAMA3},
    {"qwen2", QUIRE_PRE_TOKENIZER_QWEN2},
    {"deepseek-r1-qwen", QUIRE_PRE_TOKENIZER_QWEN2},
});

// Control tokens that end an answer by their name, whatever else the file declares.
constexpr auto kEndNames = std::to_array<std::string_view>(
    {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "</s>", "<|end_of_text|>"});

constexpr auto kEndKeys = std::to_array<std::string_view>(
    {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"});

absl::StatusOr<QuirePreTokenizer> ReadPreTokenizer(const Checkpoint& checkpoint) {
  QUIRE_ASSIGN_OR_RETURN(const std::string model, checkpoint.GetString("tokenizer.ggml.model"));
  if (model == "llama") return QUIRE_PRE_TOKENIZER_SENTENCE_PIECE;
  if (model != "gpt2") {
    return absl::UnimplementedError(StrCat("tokenizer.ggml.model: got \"", model, "\", expected gpt2 or llama"));
  }
  std::string name = "default";
  if (checkpoint.HasKey("tokenizer.ggml.pre")) {
    QUIRE_ASSIGN_OR_RETURN(name, checkpoint.GetString("tokenizer.ggml.pre"));
  }
  std::string known;
  for (const auto& [candidate, family] : kPreTokenizers) {
    if (candidate == name) return family;
    known.append(known.empty() ? "" : ", ").append(candidate);
  }
  return absl::UnimplementedError(StrCat("tokenizer.ggml.pre: got \"", name, "\", expected one of ", known));
}

absl::StatusOr<std::optional<TokenId>> ReadTokenId(const Checkpoint& checkpoint, std::string_view key,
                                                   size_t vocab_size) {
  if (!checkpoint.HasKey(key)) return std::nullopt;
  QUIRE_ASSIGN_OR_RETURN(const int64_t id, checkpoint.GetInt(key));
  if (id < 0 || id >= static_cast<int64_t>(vocab_size)) {
    return InvalidArgument(key, id, StrCat("a token id in [0, ", vocab_size, ")"));
  }
  return static_cast<TokenId>(id);
}

absl::StatusOr<bool> ReadFlag(const Checkpoint& checkpoint, std::string_view key, bool if_missing) {
  return checkpoint.HasKey(key) ? checkpoint.GetBool(key) : absl::StatusOr<bool>(if_missing);
}

absl::Status CheckLength(std::string_view key, size_t length, size_t expected) {
  if (length == expected) return absl::OkStatus();
  return InvalidArgument(key, StrCat(length, " elements"), StrCat(expected, ", one for each token"));
}

absl::Status ReadKinds(const Checkpoint& checkpoint, GgufVocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  vocabulary.kinds.assign(vocabulary.tokens.size(), TokenKind::kNormal);
  if (!checkpoint.HasKey(kKey)) return absl::OkStatus();
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int64_t> kinds, checkpoint.GetIntArray(kKey));
  QUIRE_RETURN_IF_ERROR(CheckLength(kKey, kinds.size(), vocabulary.tokens.size()));
  for (size_t id = 0; id < kinds.size(); ++id) {
    // 0 is GGUF's "undefined", found in files of old converters.
    if (kinds[id] < 0 || kinds[id] > 6) return InvalidArgument(kKey, kinds[id], "a token type in [0, 6]");
    vocabulary.kinds[id] = kinds[id] == 0 ? TokenKind::kNormal : static_cast<TokenKind>(kinds[id]);
  }
  return absl::OkStatus();
}

absl::Status ReadEnds(const Checkpoint& checkpoint, GgufVocabulary& vocabulary) {
  std::set<TokenId> ends;
  for (const std::string_view key : kEndKeys) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<TokenId> id, ReadTokenId(checkpoint, key, vocabulary.tokens.size()));
    if (id.has_value()) ends.insert(*id);
  }
  for (const TokenId id : vocabulary.IdsOf(TokenKind::kControl)) {
    if (std::ranges::find(kEndNames, vocabulary.tokens[id]) != kEndNames.end()) ends.insert(id);
  }
  vocabulary.end_of_generation_ids.assign(ends.begin(), ends.end());
  return absl::OkStatus();
}

// The byte that a byte-level vocabulary writes as this code point, if any: printable Latin-1 stands for itself, the
// other 68 bytes follow from U+0100 on, in order.
std::optional<char> ByteOfCodePoint(uint32_t code) {
  const auto is_printable = [](uint32_t c) {
    return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xFF && c != 0xAD);
  };
  if (code < 0x100) return is_printable(code) ? std::optional(static_cast<char>(code)) : std::nullopt;
  const uint32_t rank = code - 0x100;
  if (rank <= 0x20) return static_cast<char>(rank);
  if (rank <= 0x42) return static_cast<char>(0x7F + rank - 0x21);
  return rank == 0x43 ? std::optional(static_cast<char>(0xAD)) : std::nullopt;
}

std::string BytesOfByteLevelToken(std::string_view token) {
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    const Utf8Unit unit = NextUtf8Unit(token.substr(i));
    const auto byte_at = [&](size_t offset) { return static_cast<uint32_t>(static_cast<uint8_t>(token[i + offset])); };
    std::optional<char> byte;
    if (unit.kind == Utf8Kind::kCharacter && unit.num_bytes == 1) byte = ByteOfCodePoint(byte_at(0));
    if (unit.kind == Utf8Kind::kCharacter && unit.num_bytes == 2) {
      byte = ByteOfCodePoint(((byte_at(0) & 0x1F) << 6) | (byte_at(1) & 0x3F));
    }
    if (!byte.has_value()) return std::string(token);  // not written in this alphabet: stands for itself
    bytes.push_back(*byte);
    i += unit.num_bytes;
  }
  return bytes;
}

std::string BytesOfPiece(std::string_view piece) {
  std::string bytes;
  while (!piece.empty()) {
    if (piece.starts_with(kSentencePieceSpace)) {
      bytes.push_back(' ');
      piece.remove_prefix(kSentencePieceSpace.size());
    } else {
      bytes.push_back(piece.front());
      piece.remove_prefix(1);
    }
  }
  return bytes;
}

// The byte of a fallback piece "<0x0A>".
std::optional<char> FallbackByte(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  if (error != std::errc() || end != piece.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

}  // namespace

std::vector<TokenId> GgufVocabulary::IdsOf(TokenKind kind) const {
  std::vector<TokenId> ids;
  for (size_t id = 0; id < kinds.size(); ++id) {
    if (kinds[id] == kind) ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

absl::StatusOr<GgufVocabulary> ReadGgufVocabulary(const Checkpoint& checkpoint) {
  GgufVocabulary vocabulary;
  QUIRE_ASSIGN_OR_RETURN(vocabulary.pre_tokenizer, ReadPreTokenizer(checkpoint));
  QUIRE_ASSIGN_OR_RETURN(vocabulary.tokens, checkpoint.GetStringArray("tokenizer.ggml.tokens"));
  const size_t vocab_size = vocabulary.tokens.size();
  if (vocab_size == 0) return InvalidArgument("tokenizer.ggml.tokens", "0 tokens", "at least 1");
  QUIRE_RETURN_IF_ERROR(ReadKinds(checkpoint, vocabulary));
  if (vocabulary.is_sentence_piece()) {
    QUIRE_ASSIGN_OR_RETURN(vocabulary.scores, checkpoint.GetFloatArray("tokenizer.ggml.scores"));
    QUIRE_RETURN_IF_ERROR(CheckLength("tokenizer.ggml.scores", vocabulary.scores.size(), vocab_size));
    QUIRE_ASSIGN_OR_RETURN(vocabulary.add_space_prefix, ReadFlag(checkpoint, "tokenizer.ggml.add_space_prefix", true));
  } else {
    QUIRE_ASSIGN_OR_RETURN(vocabulary.merges, checkpoint.GetStringArray("tokenizer.ggml.merges"));
  }
  QUIRE_ASSIGN_OR_RETURN(vocabulary.bos_id, ReadTokenId(checkpoint, "tokenizer.ggml.bos_token_id", vocab_size));
  QUIRE_ASSIGN_OR_RETURN(vocabulary.eos_id, ReadTokenId(checkpoint, "tokenizer.ggml.eos_token_id", vocab_size));
  // Families whose files need not say it: sentence pieces and Llama 3 begin with BOS.
  const bool usually_bos = vocabulary.is_sentence_piece() || vocabulary.pre_tokenizer == QUIRE_PRE_TOKENIZER_LLAMA3;
  QUIRE_ASSIGN_OR_RETURN(vocabulary.add_bos, ReadFlag(checkpoint, "tokenizer.ggml.add_bos_token", usually_bos));
  QUIRE_RETURN_IF_ERROR(ReadEnds(checkpoint, vocabulary));
  return vocabulary;
}

std::string BytesOfToken(const GgufVocabulary& vocabulary, TokenId id) {
  const std::string& token = vocabulary.tokens[id];
  switch (vocabulary.kinds[id]) {
    case TokenKind::kControl:
    case TokenKind::kUserDefined: return token;
    case TokenKind::kByte:
      if (const std::optional<char> byte = FallbackByte(token)) return std::string(1, *byte);
      break;
    default: break;
  }
  return vocabulary.is_sentence_piece() ? BytesOfPiece(token) : BytesOfByteLevelToken(token);
}

}  // namespace quire
