#include "engine/model/weights.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/status.h"

namespace quire {
namespace {

// Where a panel's rows are unpacked to, in a worker's scratch.
struct PanelScratch {
  float* floats;                    // [kPanelWidth, in_features]; or, of a grouped type:
  uint8_t* quants;                  // [kPanelWidth, in_features]
  uint16_t* scales;                 // [kPanelWidth, in_features / kGroupSize]
  uint16_t* minima;                 // [kPanelWidth, in_features / kGroupSize]
  std::span<std::byte> file_bytes;  // as the file has them

  PanelScratch(std::span<std::byte> scratch, int64_t in_features) {
    const int64_t elements = kPanelWidth * in_features;
    floats = reinterpret_cast<float*>(scratch.data());
    quants = reinterpret_cast<uint8_t*>(scratch.data());
    scales = reinterpret_cast<uint16_t*>(quants + elements);
    minima = scales + elements / kGroupSize;
    file_bytes = scratch.subspan(elements * sizeof(float));
  }
};

// Reads and packs tensors; counts what is done. The first error of reading stands in status().
class WeightLoader {
 public:
  WeightLoader(const Checkpoint& checkpoint, Arena* arena, ThreadTeam& team,
               const std::function<void(int64_t, int64_t)>& progress)
      : checkpoint_(checkpoint), arena_(arena), team_(team), progress_(progress) {
    for (const CheckpointTensor& tensor : checkpoint.tensors()) {
      total_bytes_ += tensor.num_bytes;
    }
  }

  PackedLinear LoadLinear(const PlannedLinear& planned) {
    PackedLinear linear(KernelsFor(planned.shape), arena_);
    team_.Run([&](Worker& worker) {
      worker.For(planned.shape.num_panels(), [&](int64_t begin, int64_t end) {
        for (int64_t panel = begin; panel < end; ++panel) PackPanel(planned, panel, worker, &linear);
      });
    });
    for (const std::string& name : planned.source.names) Done(*checkpoint_.FindTensor(name));
    return linear;
  }

  std::vector<std::shared_ptr<LinearKernels>> TakeKernels() { return std::move(kernels_); }

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
  std::shared_ptr<LinearKernels> KernelsFor(const LinearShape& shape) {
    for (const auto& kernels : kernels_) {
      if (kernels->shape() == shape) return kernels;
    }
    return kernels_.emplace_back(std::make_shared<LinearKernels>(shape));
  }

  void PackPanel(const PlannedLinear& planned, int64_t panel, Worker& worker, PackedLinear* linear) {
    const LinearShape& shape = planned.shape;
    const auto [first_row, num_rows] = shape.FeaturesOf(panel);
    const PanelScratch scratch(worker.scratch(), shape.in_features);
    for (int64_t done = 0; done < num_rows;) {
      const int64_t count = LoadRows(planned, first_row + done, num_rows - done, done, scratch);
      if (count == 0) return;
      done += count;
    }
    if (IsGrouped(shape.weight_type)) {
      linear->PackPanel(panel, {.rows = num_rows,
                                .cols = shape.in_features,
                                .quants = scratch.quants,
                                .scales = scratch.scales,
                                .minima = scratch.minima});
    } else {
      linear->PackPanel(panel, MatrixView<const float>(scratch.floats, num_rows, shape.in_features));
    }
  }

  // Reads and unpacks the layer's rows from `row` on, at most `max_rows` of them and all of one tensor, to rows from
  // `out_row` on of the scratch. Returns how many; 0 after an error.
  int64_t LoadRows(const PlannedLinear& planned, int64_t row, int64_t max_rows, int64_t out_row,
                   const PanelScratch& scratch) {
    const LinearSource& source = planned.source;
    size_t part = 0;
    for (; row >= source.out_features[part]; ++part) row -= source.out_features[part];
    const CheckpointTensor& tensor = *checkpoint_.FindTensor(source.names[part]);
    const StorageBlock block = BlockOf(tensor.type);
    const int64_t row_bytes = source.in_features / block.num_elements * block.num_bytes;
    const int64_t num_rows = std::min(max_rows, source.out_features[part] - row);
    const std::span<std::byte> bytes = scratch.file_bytes.first(num_rows * row_bytes);
    if (!Read(tensor, row * row_bytes, bytes)) return 0;
    const int64_t first = out_row * source.in_features;
    if (IsGrouped(planned.shape.weight_type)) {
      UnpackQuants(tensor.type, bytes, scratch.quants + first, scratch.scales + first / kGroupSize,
                   scratch.minima + first / kGroupSize);
    } else {
      Dequantize(tensor.type, bytes, {scratch.floats + first, static_cast<size_t>(num_rows * source.in_features)});
    }
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
  Arena* const arena_;
  ThreadTeam& team_;
  const std::function<void(int64_t, int64_t)>& progress_;
  std::vector<std::shared_ptr<LinearKernels>> kernels_;
  int64_t total_bytes_ = 0;
  int64_t done_bytes_ = 0;
  mutable std::mutex mutex_;
  absl::Status status_;  // guarded by mutex_: the team's threads read
};

}  // namespace

int64_t LoadScratchBytesFor(const ModelConfig& config) {
  const int64_t longest_row = std::max({config.hidden_size, config.q_size(), config.intermediate_size});
  // A panel's rows as floats, and as the file has them: no storage type is wider.
  return 2 * kPanelWidth * longest_row * static_cast<int64_t>(sizeof(float));
}

absl::StatusOr<ModelWeights> LoadWeights(const Checkpoint& checkpoint, const ModelConfig& config,
                                         const WeightPlan& plan, ThreadTeam& team,
                                         const std::function<void(int64_t, int64_t)>& progress) {
  Arena arena(plan.panel_bytes);
  WeightLoader loader(checkpoint, &arena, team, progress);
  std::vector<LayerWeights> layers;
  layers.reserve(config.num_layers);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const PlannedLayer& planned = plan.layers[layer];
    layers.push_back({
        .attention_norm = loader.LoadVector(LayerTensorName(layer, "attn_norm")),
        .qkv_proj = loader.LoadLinear(planned.qkv_proj),
        .o_proj = loader.LoadLinear(planned.o_proj),
        .ffn_norm = loader.LoadVector(LayerTensorName(layer, "ffn_norm")),
        .gate_up_proj = loader.LoadLinear(planned.gate_up_proj),
        .down_proj = loader.LoadLinear(planned.down_proj),
    });
    QUIRE_RETURN_IF_ERROR(loader.status());
  }
  std::vector<float> final_norm = loader.LoadVector("output_norm.weight");
  PackedLinear lm_head = loader.LoadLinear(plan.lm_head);
  std::optional<PackedLinear> embedding;
  if (plan.embedding) embedding = loader.LoadLinear(*plan.embedding);
  QUIRE_RETURN_IF_ERROR(loader.status());
  return ModelWeights{.arena = std::move(arena),  // pieces stay where they are
                      .kernels = loader.TakeKernels(),
                      .layers = std::move(layers),
                      .final_norm = std::move(final_norm),
                      .lm_head = std::move(lm_head),
                      .embedding = std::move(embedding)};
}

}  // namespace quire
