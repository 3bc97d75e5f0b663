#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/ops/activation.h"
#include "engine/ops/brgemm.h"
#include "engine/ops/panel_kernels.h"
#include "engine/ops/parallel.h"
#include "engine/tensor/arena.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

enum class LinearOutput { kOverwrite, kAccumulate };

// y = x W^T for a weight matrix W [out_features, in_features], packed once in panels of kPanelWidth output features
// (panel_kernels.h) in one layout that serves every number of rows. How weights are stored (weight_type) fixes the
// memory; what is computed in (compute_type) only chooses among the kernels that read that storage:
//   f32 weights: oneDNN micro-kernels in f32.
//   bf16 weights, f32: vector code for a few rows; else a panel is expanded to f32 once for all rows, then as above.
//   bf16 weights, bf16: vector code with f32 inputs for a few rows; else oneDNN micro-kernels in bf16.
// Where oneDNN has no micro-kernel for the processor, vector code serves every number of rows.
class PackedLinear {
 public:
  // Takes zeroed panels, BytesFor, from `arena`, which must outlive the layer. `in_features` is even. `output` is what
  // Forward does with its result.
  PackedLinear(int64_t out_features, int64_t in_features, DType weight_type, DType compute_type, LinearOutput output,
               Arena* arena);

  static int64_t BytesFor(int64_t out_features, int64_t in_features, DType weight_type);
  // Each worker's scratch that Forward needs.
  static int64_t ScratchBytesFor(int64_t in_features);
  // Whether this processor has kernels for the pair.
  static bool Supports(DType weight_type, DType compute_type);

  int64_t out_features() const { return out_features_; }
  int64_t in_features() const { return in_features_; }
  // Forward writes rows of this many columns; those past out_features are zero (or unchanged when accumulating).
  int64_t out_stride() const { return num_panels_ * kPanelWidth; }
  int64_t num_panels() const { return num_panels_; }
  // Of the packed weights, all of which Forward reads.
  int64_t size_bytes() const { return static_cast<int64_t>(panels_.size()); }

  // Packs output features [panel * kPanelWidth, ...) from `rows`, [num_rows <= kPanelWidth, in_features]. Different
  // panels may be packed at the same time.
  void PackPanel(int64_t panel, MatrixView<const float> rows);

  // Row `row` of W, as it is stored. // [in_features]
  void UnpackRow(int64_t row, std::span<float> out) const;

  // out [rows, out_stride] = or += x [rows, in_features] W^T, for the first `rows` rows of x. x's compute type is this
  // layer's; out's row stride is out_stride().
  void Forward(Worker& worker, const Activation& x, MatrixView<float> out) const;

 private:
  int64_t PanelBytes() const;
  const std::byte* PanelData(int64_t panel) const { return panels_.data() + panel * PanelBytes(); }
  bool UsesVectorCode(int64_t rows) const;
  void ForwardVectorCode(Worker& worker, const Activation& x, MatrixView<float> out) const;
  void ForwardMicroKernels(Worker& worker, const Activation& x, MatrixView<float> out) const;
  void MultiplyPanelRows(int64_t panel, const Activation& x, int64_t first_row, int64_t num_rows, MatrixView<float> out,
                         std::span<std::byte> scratch) const;

  int64_t out_features_;
  int64_t in_features_;
  int64_t num_panels_;
  DType weight_type_;
  DType compute_type_;
  bool accumulate_;
  std::span<std::byte> panels_;   // [num_panels, in_features, kPanelWidth] in panel_kernels.h's order
  std::optional<Brgemm> brgemm_;  // for inputs of compute_type
};

}  // namespace quire
