#include "engine/model/weights.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "engine/base/math.h"
#include "engine/base/status.h"

namespace quire {
namespace {

// A linear layer's place in the checkpoint: the rows of several tensors, one after the other.
struct LinearSource {
  std::vector<std::string> names;
  std::vector<int64_t> out_features;  // of each
  int64_t in_features;

  int64_t total_out_features() const {
    int64_t total = 0;
    for (const int64_t rows : out_features) total += rows;
    return total;
  }
};

std::string LayerTensor(int64_t layer, std::string_view name) { return StrCat("blk.", layer, ".", name, ".weight"); }

LinearSource QkvSource(const ModelConfig& config, int64_t layer) {
  return {{LayerTensor(layer, "attn_q"), LayerTensor(layer, "attn_k"), LayerTensor(layer, "attn_v")},
          {config.q_size(), config.kv_size(), config.kv_size()},
          config.hidden_size};
}
LinearSource OutputSource(const ModelConfig& config, int64_t layer) {
  return {{LayerTensor(layer, "attn_output")}, {config.hidden_size}, config.q_size()};
}
LinearSource GateUpSource(const ModelConfig& config, int64_t layer) {
  return {{LayerTensor(layer, "ffn_gate"), LayerTensor(layer, "ffn_up")},
          {config.intermediate_size, config.intermediate_size},
          config.hidden_size};
}
LinearSource DownSource(const ModelConfig& config, int64_t layer) {
  return {{LayerTensor(layer, "ffn_down")}, {config.hidden_size}, config.intermediate_size};
}
LinearSource EmbeddingSource(const ModelConfig& config) {
  return {{"token_embd.weight"}, {config.vocab_size}, config.hidden_size};
}
LinearSource HeadSource(const ModelConfig& config) {
  return config.tied_embeddings ? EmbeddingSource(config)
                                : LinearSource{{"output.weight"}, {config.vocab_size}, config.hidden_size};
}

// Finds, checks, reads and packs tensors; counts what is done. The first error of reading stands in status().
class WeightLoader {
 public:
  WeightLoader(const Checkpoint& checkpoint, DType weight_type, DType compute_type, Arena* arena, ThreadTeam& team,
               const std::function<void(int64_t, int64_t)>& progress)
      : checkpoint_(checkpoint),
        weight_type_(weight_type),
        compute_type_(compute_type),
        arena_(arena),
        team_(team),
        progress_(progress) {
    for (const CheckpointTensor& tensor : checkpoint.tensors()) {
      total_bytes_ += tensor.num_bytes;
    }
  }

  absl::Status CheckShape(const std::string& name, const std::vector<int64_t>& shape) const {
    const CheckpointTensor* tensor = checkpoint_.FindTensor(name);
    if (tensor == nullptr) {
      return absl::InvalidArgumentError(
          StrCat(checkpoint_.path(), ": expected a tensor ", name, " [", absl::StrJoin(shape, ", "), "], found none"));
    }
    if (tensor->shape != shape) {
      return absl::InvalidArgumentError(StrCat(checkpoint_.path(), ": expected tensor ", name, " to be [",
                                               absl::StrJoin(shape, ", "), "], found [",
                                               absl::StrJoin(tensor->shape, ", "), "]"));
    }
    return absl::OkStatus();
  }

  absl::Status Check(const LinearSource& source) const {
    for (size_t i = 0; i < source.names.size(); ++i) {
      QUIRE_RETURN_IF_ERROR(CheckShape(source.names[i], {source.out_features[i], source.in_features}));
    }
    return absl::OkStatus();
  }

  // The source was checked.
  PackedLinear LoadLinear(const LinearSource& source, LinearOutput output) {
    PackedLinear linear(source.total_out_features(), source.in_features, weight_type_, compute_type_, output, arena_);
    team_.Run([&](Worker& worker) {
      worker.For(linear.num_panels(), [&](int64_t begin, int64_t end) {
        for (int64_t panel = begin; panel < end; ++panel) PackPanel(source, panel, worker, &linear);
      });
    });
    for (const std::string& name : source.names) Done(*checkpoint_.FindTensor(name));
    return linear;
  }

  std::vector<float> LoadVector(const std::string& name) {
    const CheckpointTensor& tensor = *checkpoint_.FindTensor(name);
    std::vector<float> values(tensor.num_elements());
    std::vector<std::byte> bytes(tensor.num_bytes);
    if (Read(tensor, 0, bytes)) Dequantize(tensor.type, bytes, values);
    Done(tensor);
    return values;
  }

  absl::Status status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  void PackPanel(const LinearSource& source, int64_t panel, Worker& worker, PackedLinear* linear) {
    const int64_t first_row = panel * kPanelWidth;
    const int64_t num_rows = std::min(kPanelWidth, linear->out_features() - first_row);
    MatrixView<float> rows(reinterpret_cast<float*>(worker.scratch().data()), num_rows, source.in_features);
    const std::span<std::byte> file_bytes = worker.scratch().subspan(kPanelWidth * source.in_features * sizeof(float));
    for (int64_t done = 0; done < num_rows;) {
      const int64_t count = LoadRows(source, first_row + done, num_rows - done, rows.row(done).data(), file_bytes);
      if (count == 0) return;
      done += count;
    }
    linear->PackPanel(panel, rows);
  }

  // Reads and dequantizes the source's rows from `row` on, at most `max_rows` of them and all of one tensor, to `out`.
  // Returns how many; 0 after an error.
  int64_t LoadRows(const LinearSource& source, int64_t row, int64_t max_rows, float* out,
                   std::span<std::byte> file_bytes) {
    size_t part = 0;
    for (; row >= source.out_features[part]; ++part) row -= source.out_features[part];
    const CheckpointTensor& tensor = *checkpoint_.FindTensor(source.names[part]);
    const StorageBlock block = BlockOf(tensor.type);
    const int64_t row_bytes = source.in_features / block.num_elements * block.num_bytes;
    const int64_t num_rows = std::min(max_rows, source.out_features[part] - row);
    const std::span<std::byte> bytes = file_bytes.first(num_rows * row_bytes);
    if (!Read(tensor, row * row_bytes, bytes)) return 0;
    Dequantize(tensor.type, bytes, {out, static_cast<size_t>(num_rows * source.in_features)});
    return num_rows;
  }

  bool Read(const CheckpointTensor& tensor, int64_t offset_bytes, std::span<std::byte> out) {
    const absl::Status status = checkpoint_.ReadTensor(tensor, offset_bytes, out);
    if (status.ok()) return true;
    const std::lock_guard lock(mutex_);
    status_.Update(status);
    return false;
  }

  void Done(const CheckpointTensor& tensor) {
    done_bytes_ += tensor.num_bytes;
    progress_(done_bytes_, total_bytes_);
  }

  const Checkpoint& checkpoint_;
  const DType weight_type_;
  const DType compute_type_;
  Arena* const arena_;
  ThreadTeam& team_;
  const std::function<void(int64_t, int64_t)>& progress_;
  int64_t total_bytes_ = 0;
  int64_t done_bytes_ = 0;
  mutable std::mutex mutex_;
  absl::Status status_;  // guarded by mutex_: the team's threads read
};

absl::Status CheckAll(const WeightLoader& loader, const ModelConfig& config) {
  const std::vector<int64_t> norm_shape = {config.hidden_size};
  QUIRE_RETURN_IF_ERROR(loader.Check(EmbeddingSource(config)));
  QUIRE_RETURN_IF_ERROR(loader.Check(HeadSource(config)));
  QUIRE_RETURN_IF_ERROR(loader.CheckShape("output_norm.weight", norm_shape));
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    QUIRE_RETURN_IF_ERROR(loader.CheckShape(LayerTensor(layer, "attn_norm"), norm_shape));
    QUIRE_RETURN_IF_ERROR(loader.Check(QkvSource(config, layer)));
    QUIRE_RETURN_IF_ERROR(loader.Check(OutputSource(config, layer)));
    QUIRE_RETURN_IF_ERROR(loader.CheckShape(LayerTensor(layer, "ffn_norm"), norm_shape));
    QUIRE_RETURN_IF_ERROR(loader.Check(GateUpSource(config, layer)));
    QUIRE_RETURN_IF_ERROR(loader.Check(DownSource(config, layer)));
  }
  return absl::OkStatus();
}

int64_t PanelBytesFor(const ModelConfig& config, DType weight_type) {
  const auto linear = [&](const LinearSource& source) {
    return AlignUp(PackedLinear::BytesFor(source.total_out_features(), source.in_features, weight_type),
                   Arena::kAlignment);
  };
  const int64_t layer = linear(QkvSource(config, 0)) + linear(OutputSource(config, 0)) +
                        linear(GateUpSource(config, 0)) + linear(DownSource(config, 0));
  const int64_t embedding = config.tied_embeddings ? 0 : linear(EmbeddingSource(config));
  return config.num_layers * layer + linear(HeadSource(config)) + embedding;
}

}  // namespace

int64_t WeightsBytesFor(const ModelConfig& config, DType weight_type) {
  const int64_t norm_bytes = config.hidden_size * static_cast<int64_t>(sizeof(float));
  return PanelBytesFor(config, weight_type) + (2 * config.num_layers + 1) * norm_bytes;
}

int64_t LoadScratchBytesFor(const ModelConfig& config) {
  const int64_t longest_row = std::max({config.hidden_size, config.q_size(), config.intermediate_size});
  // A panel's rows as floats, and as the file has them: no storage type is wider.
  return 2 * kPanelWidth * longest_row * static_cast<int64_t>(sizeof(float));
}

absl::StatusOr<ModelWeights> LoadWeights(const Checkpoint& checkpoint, const ModelConfig& config, DType weight_type,
                                         DType compute_type, ThreadTeam& team,
                                         const std::function<void(int64_t, int64_t)>& progress) {
  Arena arena(PanelBytesFor(config, weight_type));
  WeightLoader loader(checkpoint, weight_type, compute_type, &arena, team, progress);
  QUIRE_RETURN_IF_ERROR(CheckAll(loader, config));
  std::vector<LayerWeights> layers;
  layers.reserve(config.num_layers);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    layers.push_back({
        .attention_norm = loader.LoadVector(LayerTensor(layer, "attn_norm")),
        .qkv_proj = loader.LoadLinear(QkvSource(config, layer), LinearOutput::kOverwrite),
        .o_proj = loader.LoadLinear(OutputSource(config, layer), LinearOutput::kAccumulate),
        .ffn_norm = loader.LoadVector(LayerTensor(layer, "ffn_norm")),
        .gate_up_proj = loader.LoadLinear(GateUpSource(config, layer), LinearOutput::kOverwrite),
        .down_proj = loader.LoadLinear(DownSource(config, layer), LinearOutput::kAccumulate),
    });
    QUIRE_RETURN_IF_ERROR(loader.status());
  }
  ModelWeights weights = {
      .arena = {},
      .layers = std::move(layers),
      .final_norm = loader.LoadVector("output_norm.weight"),
      .lm_head = loader.LoadLinear(HeadSource(config), LinearOutput::kOverwrite),
      .embedding = std::nullopt,
  };
  if (!config.tied_embeddings) {
    weights.embedding = loader.LoadLinear(EmbeddingSource(config), LinearOutput::kOverwrite);
  }
  QUIRE_RETURN_IF_ERROR(loader.status());
  weights.arena = std::move(arena);  // pieces stay where they are
  return weights;
}

}  // namespace quire
