#pragma once

// The C ABI of the Rust crate in ffi/: byte-pair encoding and chat templates. Every function may be called from any
// thread; handles are immutable. Pointers passed in are borrowed for the call only. A function that can fail returns
// a QuireTextStatus and, unless it is QUIRE_TEXT_OK, sets *error, which the caller frees with quire_string_free.
// Panics are caught at this border and come back as QUIRE_TEXT_INTERNAL.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t QuireTextStatus;
#define QUIRE_TEXT_OK 0
#define QUIRE_TEXT_INVALID 1   // the input is wrong: vocabulary, text, template, what a template raised
#define QUIRE_TEXT_INTERNAL 2  // a panic: a defect of the crate

// Limits, in bytes, checked before any work.
#define QUIRE_TEXT_MAX_INPUT_BYTES (64 * 1024 * 1024)
#define QUIRE_TEXT_MAX_TEMPLATE_BYTES (1024 * 1024)

typedef struct {
  const uint8_t* data;  // UTF-8; may be NULL if size is 0
  size_t size;
} QuireBytes;

// Owned by the caller.
typedef struct {
  uint8_t* data;
  size_t size;
} QuireString;

typedef struct {
  int32_t* data;
  size_t size;
} QuireTokenIds;

// How text is cut into words before merging.
typedef int32_t QuirePreTokenizer;
#define QUIRE_PRE_TOKENIZER_GPT2 0
#define QUIRE_PRE_TOKENIZER_SINGLE_DIGITS 1  // each digit alone, then as GPT-2: SmolLM, StarCoder
#define QUIRE_PRE_TOKENIZER_LLAMA3 2
#define QUIRE_PRE_TOKENIZER_QWEN2 3
#define QUIRE_PRE_TOKENIZER_SENTENCE_PIECE 4  // merges follow from scores; bytes that have no piece fall back to <0xNN>

typedef struct {
  QuirePreTokenizer pre_tokenizer;
  const QuireBytes* tokens;  // [num_tokens], as the vocabulary writes them
  const float* scores;       // [num_tokens] for sentence pieces, else NULL
  size_t num_tokens;
  const QuireBytes* merges;  // [num_merges], "left right", best first; none for sentence pieces
  size_t num_merges;
  const int32_t* special_ids;  // [num_special]: matched in text only if the caller asks for it
  size_t num_special;
  const int32_t* user_defined_ids;  // [num_user_defined]: always matched whole
  size_t num_user_defined;
  int32_t add_space_prefix;  // sentence pieces: a text begins as if after a space
} QuireVocabulary;

typedef struct QuireTokenizer QuireTokenizer;
typedef struct QuireTemplate QuireTemplate;

QuireTextStatus quire_tokenizer_create(const QuireVocabulary* vocabulary, QuireTokenizer** tokenizer,
                                       QuireString* error);
void quire_tokenizer_free(QuireTokenizer* tokenizer);
// U+FDD0 (a noncharacter) keeps a special token's text from being matched across it, and is then dropped, if
// `parse_special`; otherwise it is text like any other.
QuireTextStatus quire_tokenizer_encode(const QuireTokenizer* tokenizer, QuireBytes text, int32_t parse_special,
                                       QuireTokenIds* ids, QuireString* error);

QuireTextStatus quire_template_create(QuireBytes source, QuireTemplate** chat_template, QuireString* error);
void quire_template_free(QuireTemplate* chat_template);
// `context_json`: an object with the template's variables.
QuireTextStatus quire_template_render(const QuireTemplate* chat_template, QuireBytes context_json,
                                      int64_t now_unix_seconds, QuireString* text, QuireString* error);

void quire_string_free(QuireString string);
void quire_token_ids_free(QuireTokenIds ids);

#ifdef __cplusplus
}
#endif
