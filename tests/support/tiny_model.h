#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/checkpoint.h"

namespace quire::testing {

// A model small enough to run in every test, with everything a real one has: llama architecture, grouped
// queries, its own byte-level BPE tokenizer and a ChatML template. What it says is noise, and always the same.
struct TinyModelOptions {
  int64_t num_layers = 2;
  int64_t hidden_size = 64;
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;
  int64_t head_dim = 16;  // may differ from hidden_size / num_heads
  int64_t intermediate_size = 96;
  int64_t vocab_size = 320;  // at least kTinyMinVocabSize; entries beyond the tokenizer's own are "[unused7]"
  int64_t context_length = 512;
  bool tied_embeddings = true;
  float rope_theta = 10000.0F;
  float rms_norm_epsilon = 1e-5F;
  uint64_t seed = 1;
  StorageType storage_type = StorageType::kF32;  // of the matrices; norms are F32
};

// Special tokens, of type control.
inline constexpr int64_t kTinyEndOfText = 0;  // <|endoftext|>, unknown token
inline constexpr int64_t kTinyImStart = 1;    // <|im_start|>, begin of sequence
inline constexpr int64_t kTinyImEnd = 2;      // <|im_end|>, end of sequence
// The token of byte character i, in GPT-2's order, is kTinyFirstByte + i; merged tokens follow.
inline constexpr int64_t kTinyFirstByte = 3;
inline constexpr int64_t kTinyMinVocabSize = 284;

// Writes the model and returns `path`. Throws if the options contradict each other or the file can't be written.
std::string WriteTinyModel(const TinyModelOptions& options, const std::string& path);

}  // namespace quire::testing
