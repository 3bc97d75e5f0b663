#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/model/decoder.h"
#include "engine/model/forward_batch.h"
#include "engine/ops/parallel.h"

namespace quire::testing {

struct HarnessOptions {
  std::optional<WeightType> weight_type = WeightType::kF32;  // none: as the file has them
  std::string compute_type = "f32";
  DType kv_type = DType::kF32;
  int64_t block_size = 16;
  int64_t max_tokens = 512;
  int64_t max_logits_rows = 512;
  int64_t max_seq_len = 1024;
  int64_t max_num_seqs = 8;
  int64_t num_threads = 2;
};

// The next tokens of one sequence in a step.
struct SequenceChunk {
  int64_t seq = 0;  // in [0, max_num_seqs)
  std::vector<TokenId> tokens;
};

// A decoder without an engine around it: each sequence owns blocks for max_seq_len tokens, in shuffled order, and its
// length grows with each step.
class DecoderHarness {
 public:
  DecoderHarness(const std::string& model_path, const HarnessOptions& options);

  const ModelConfig& config() const { return config_; }
  Decoder& decoder() { return *decoder_; }

  // One forward pass over the chunks; logits of every row, [num_tokens, vocab_size].
  std::vector<std::vector<float>> Forward(const std::vector<SequenceChunk>& chunks);

  // Forgets a sequence's tokens; its blocks keep their bytes.
  void Reset(int64_t seq) { seq_lens_[seq] = 0; }

 private:
  ForwardBatch MakeBatch(const std::vector<SequenceChunk>& chunks);

  HarnessOptions options_;
  ModelConfig config_;
  std::unique_ptr<Decoder> decoder_;
  int64_t blocks_per_seq_;
  std::vector<std::vector<BlockId>> block_tables_;  // [max_num_seqs, blocks_per_seq]
  std::vector<int64_t> seq_lens_;                   // [max_num_seqs]
};

}  // namespace quire::testing
