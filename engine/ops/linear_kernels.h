#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "engine/ops/brgemm.h"
#include "engine/ops/weight_panel.h"
#include "engine/tensor/dtype.h"

namespace quire {

// What a layer does with its result: y = x W^T, y += x W^T, or y = silu(x G^T) * (x U^T) where W's first half of rows
// is G and its second half is U.
enum class LinearOutput { kOverwrite, kAccumulate, kSiluMul };

struct LinearShape {
  int64_t out_features = 0;
  int64_t in_features = 0;  // even; whole groups if the weights are quantized
  WeightType weight_type = WeightType::kF32;
  LinearOutput output = LinearOutput::kOverwrite;

  int64_t num_panels() const;
  // Which of the out_features a panel holds: [first, first + count). With kSiluMul, panels of G and U alternate.
  struct Features {
    int64_t first;
    int64_t count;
  };
  Features FeaturesOf(int64_t panel) const;
  // Columns of its output rows, or of the tile from which kSiluMul makes them.
  int64_t out_stride() const { return (output == LinearOutput::kSiluMul ? 2 : num_panels()) * kPanelWidth; }
  WeightPanel panel() const { return {weight_type, in_features}; }
  bool operator==(const LinearShape&) const = default;
};

// Forms of a layer's input.
struct InputForms {
  bool f32 = true;
  bool bf16 = false;
  bool int8 = false;

  // All that kernels for weights of a type may read.
  static InputForms For(WeightType type) { return {true, type != WeightType::kF32, IsQuantized(type)}; }
  static InputForms For(DType input) { return {input == DType::kF32, input == DType::kBF16, input == DType::kInt8}; }
  InputForms operator|(InputForms other) const { return {f32 || other.f32, bf16 || other.bf16, int8 || other.int8}; }
};

// Numbers of rows for which a kernel is chosen together: 1, 2 to 4, 5 to 16 and so on.
inline constexpr std::array<int64_t, 7> kRowBuckets = {1, 4, 16, 32, 64, 256, std::numeric_limits<int64_t>::max()};

// What is computed in, for each bucket of rows.
using InputTypes = std::array<DType, kRowBuckets.size()>;

constexpr size_t RowBucketOf(int64_t rows) {
  size_t bucket = 0;
  while (rows > kRowBuckets[bucket]) ++bucket;
  return bucket;
}

// The kernels for all linear layers of one shape, and which of them are used. What weights are stored as fixes the
// memory; what is computed in only chooses among the kernels that read that storage:
//   f32   any weights: oneDNN's micro-kernels, from panels expanded to f32; for a few rows of bf16 weights, and where
//         oneDNN has no micro-kernel for the processor, vector code that reads the panels as they are.
//   bf16  any but f32 weights, where the processor has micro-kernels for it; from panels expanded to bf16.
//   int8  quantized weights: vector code (quantized_kernels.h).
class LinearKernels {
 public:
  // Uses DefaultInput for every number of rows.
  explicit LinearKernels(const LinearShape& shape);

  const LinearShape& shape() const { return shape_; }
  bool Supports(DType input) const;
  // The one closest to how the weights are stored: int8 for quantized ones, else f32.
  DType DefaultInput() const { return IsQuantized(shape_.weight_type) ? DType::kInt8 : DType::kF32; }

  // All of them supported.
  void SetInputs(const InputTypes& inputs);
  DType InputFor(int64_t rows) const { return inputs_[RowBucketOf(rows)]; }

  // For f32 or bf16; nothing if there are none.
  const Brgemm* micro_kernels(DType input) const;

 private:
  LinearShape shape_;
  InputTypes inputs_;
  std::optional<Brgemm> f32_;
  std::optional<Brgemm> bf16_;
};

}  // namespace quire
