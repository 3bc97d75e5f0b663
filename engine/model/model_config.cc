#include "engine/model/model_config.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "engine/base/status.h"

namespace quire {
namespace {

// Metadata of one architecture, with the path in every error.
class MetadataReader {
 public:
  MetadataReader(const Checkpoint& checkpoint, std::string architecture)
      : checkpoint_(checkpoint), architecture_(std::move(architecture)) {}

  std::string Key(std::string_view name) const { return StrCat(architecture_, ".", name); }

  absl::StatusOr<int64_t> Int(std::string_view name, int64_t min, int64_t max) const {
    QUIRE_ASSIGN_OR_RETURN(const int64_t value, checkpoint_.GetInt(Key(name)));
    if (value < min || value > max) {
      return InvalidArgument(StrCat(checkpoint_.path(), ": ", Key(name)), value,
                             StrCat("an integer in [", min, ", ", max, "]"));
    }
    return value;
  }

  absl::StatusOr<int64_t> IntOr(std::string_view name, int64_t fallback, int64_t min, int64_t max) const {
    if (!checkpoint_.HasKey(Key(name))) return fallback;
    return Int(name, min, max);
  }

  absl::StatusOr<double> PositiveFloatOr(std::string_view name, double fallback) const {
    if (!checkpoint_.HasKey(Key(name))) return fallback;
    QUIRE_ASSIGN_OR_RETURN(const double value, checkpoint_.GetFloat(Key(name)));
    if (!std::isfinite(value) || value <= 0) {
      return InvalidArgument(StrCat(checkpoint_.path(), ": ", Key(name)), value, "a positive number");
    }
    return value;
  }

 private:
  const Checkpoint& checkpoint_;
  std::string architecture_;
};

absl::Status ReadSizes(const MetadataReader& metadata, ModelConfig* config) {
  QUIRE_ASSIGN_OR_RETURN(config->num_layers, metadata.Int("block_count", 1, 1024));
  QUIRE_ASSIGN_OR_RETURN(config->hidden_size, metadata.Int("embedding_length", 2, 1 << 17));
  QUIRE_ASSIGN_OR_RETURN(config->intermediate_size, metadata.Int("feed_forward_length", 2, 1 << 20));
  QUIRE_ASSIGN_OR_RETURN(config->num_heads, metadata.Int("attention.head_count", 1, 1024));
  QUIRE_ASSIGN_OR_RETURN(config->num_kv_heads, metadata.IntOr("attention.head_count_kv", config->num_heads, 1, 1024));
  const int64_t default_head_dim = std::max<int64_t>(config->hidden_size / config->num_heads, 2);
  QUIRE_ASSIGN_OR_RETURN(config->head_dim, metadata.IntOr("attention.key_length", default_head_dim, 2, 512));
  QUIRE_ASSIGN_OR_RETURN(const int64_t value_dim, metadata.IntOr("attention.value_length", config->head_dim, 2, 512));
  QUIRE_ASSIGN_OR_RETURN(config->context_length, metadata.Int("context_length", 1, 1 << 24));
  if (value_dim != config->head_dim) {
    return InvalidArgument(metadata.Key("attention.value_length"), value_dim,
                           StrCat("the same as attention.key_length, ", config->head_dim));
  }
  if (config->num_heads % config->num_kv_heads != 0) {
    return InvalidArgument(metadata.Key("attention.head_count_kv"), config->num_kv_heads,
                           StrCat("a divisor of attention.head_count, ", config->num_heads));
  }
  constexpr int64_t kMaxGroup = 128;
  if (config->num_heads / config->num_kv_heads > kMaxGroup) {
    return InvalidArgument(metadata.Key("attention.head_count"), config->num_heads,
                           StrCat("at most ", kMaxGroup, " heads for each kv head"));
  }
  for (const auto& [name, value] :
       {std::pair{"embedding_length", config->hidden_size}, std::pair{"feed_forward_length", config->intermediate_size},
        std::pair{"attention.key_length", config->head_dim}}) {
    if (value % 2 != 0) return InvalidArgument(metadata.Key(name), value, "an even number");
  }
  return absl::OkStatus();
}

absl::Status ReadRope(const Checkpoint& checkpoint, const MetadataReader& metadata, ModelConfig* config) {
  // GGUF's llama converters permute q and k so that adjacent elements rotate together.
  config->rope.style = RopeStyle::kAdjacentPairs;
  QUIRE_ASSIGN_OR_RETURN(config->rope.theta, metadata.PositiveFloatOr("rope.freq_base", 10000.0));
  QUIRE_ASSIGN_OR_RETURN(config->rope.rotary_dim,
                         metadata.IntOr("rope.dimension_count", config->head_dim, 2, config->head_dim));
  if (config->rope.rotary_dim % 2 != 0) {
    return InvalidArgument(metadata.Key("rope.dimension_count"), config->rope.rotary_dim, "an even number");
  }
  if (checkpoint.HasKey(metadata.Key("rope.scaling.type"))) {
    QUIRE_ASSIGN_OR_RETURN(const std::string scaling, checkpoint.GetString(metadata.Key("rope.scaling.type")));
    if (scaling != "none") {
      return absl::UnimplementedError(StrCat(checkpoint.path(), ": RoPE scaling '", scaling,
                                             "' is not supported; expected none or a rope_freqs tensor"));
    }
  }
  const CheckpointTensor* factors = checkpoint.FindTensor("rope_freqs.weight");
  if (factors == nullptr) return absl::OkStatus();
  if (factors->type != StorageType::kF32 || factors->num_elements() != config->rope.rotary_dim / 2) {
    return InvalidArgument(StrCat(checkpoint.path(), ": rope_freqs.weight"),
                           StrCat(factors->num_elements(), " elements of ", ToString(factors->type)),
                           StrCat(config->rope.rotary_dim / 2, " elements of F32"));
  }
  config->rope.frequency_factors.resize(factors->num_elements());
  QUIRE_RETURN_IF_ERROR(
      checkpoint.ReadTensor(*factors, 0, std::as_writable_bytes(std::span(config->rope.frequency_factors))));
  for (const float factor : config->rope.frequency_factors) {
    if (!std::isfinite(factor) || factor <= 0) {
      return InvalidArgument(StrCat(checkpoint.path(), ": rope_freqs.weight"), factor, "positive numbers");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint) {
  ModelConfig config;
  QUIRE_ASSIGN_OR_RETURN(config.architecture, checkpoint.GetString("general.architecture"));
  if (config.architecture != "llama") {
    return absl::UnimplementedError(
        StrCat(checkpoint.path(), ": architecture '", config.architecture, "' is not supported; expected llama"));
  }
  const MetadataReader metadata(checkpoint, config.architecture);
  QUIRE_RETURN_IF_ERROR(ReadSizes(metadata, &config));
  QUIRE_ASSIGN_OR_RETURN(const double epsilon, metadata.PositiveFloatOr("attention.layer_norm_rms_epsilon", 1e-5));
  config.rms_norm_epsilon = static_cast<float>(epsilon);
  QUIRE_RETURN_IF_ERROR(ReadRope(checkpoint, metadata, &config));

  const CheckpointTensor* embedding = checkpoint.FindTensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return absl::InvalidArgumentError(StrCat(checkpoint.path(), ": expected a tensor token_embd.weight [vocab_size, ",
                                             config.hidden_size, "], found ",
                                             embedding == nullptr ? "none" : "one of another rank"));
  }
  config.vocab_size = embedding->shape[0];
  config.tied_embeddings = checkpoint.FindTensor("output.weight") == nullptr;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) config.num_parameters += tensor.num_elements();
  return config;
}

}  // namespace quire
