#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/ops/rope.h"

namespace quire {

// A decoder's shape, in the field's names.
struct ModelConfig {
  std::string architecture;  // "llama"
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // divides num_heads
  int64_t head_dim = 0;      // even; independent of hidden_size / num_heads
  int64_t vocab_size = 0;
  int64_t context_length = 0;  // tokens that the model was trained for
  float rms_norm_epsilon = 0;
  RopeConfig rope;
  bool tied_embeddings = false;  // the output layer is the embedding
  int64_t num_parameters = 0;

  int64_t q_size() const { return num_heads * head_dim; }
  int64_t kv_size() const { return num_kv_heads * head_dim; }
  int64_t qkv_size() const { return q_size() + 2 * kv_size(); }
};

// Reads and checks the shape from a checkpoint's metadata. Unimplemented names an architecture, or a kind of RoPE
// scaling, that is not supported; InvalidArgument names the metadata key, its value and what is accepted.
absl::StatusOr<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint);

}  // namespace quire
