#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/ops/activation.h"
#include "engine/ops/linear_kernels.h"
#include "engine/ops/parallel.h"
#include "engine/ops/weight_panel.h"
#include "engine/tensor/arena.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// y = x W^T for a weight matrix W [out_features, in_features], packed once in panels (weight_panel.h), in one layout
// that serves every number of rows and every kernel.
class PackedLinear {
 public:
  // Takes zeroed panels, BytesFor, from `arena`, which must outlive the layer. Layers of one shape share their kernels.
  PackedLinear(std::shared_ptr<const LinearKernels> kernels, Arena* arena);

  static int64_t BytesFor(const LinearShape& shape) { return shape.num_panels() * shape.panel().bytes(); }
  // Each worker's scratch that Forward needs.
  static int64_t ScratchBytesFor(int64_t in_features);

  const LinearShape& shape() const { return kernels_->shape(); }
  const LinearKernels& kernels() const { return *kernels_; }
  // Of the packed weights, all of which Forward reads.
  int64_t size_bytes() const { return static_cast<int64_t>(panels_.size()); }

  // Packs the output features shape().FeaturesOf(panel). Different panels may be packed at the same time. The second
  // form is for grouped types, the first for the others.
  void PackPanel(int64_t panel, MatrixView<const float> rows) { PackRows(shape().panel(), rows, PanelData(panel)); }
  void PackPanel(int64_t panel, const QuantRows& rows) { PackQuants(shape().panel(), rows, PanelData(panel)); }

  // Row `row` of W, as it is stored. // [in_features]
  void UnpackRow(int64_t row, std::span<float> out) const;

  // out [rows, out_stride] = or += x [rows, in_features] W^T, for the first `rows` rows of x, which are in the form
  // that kernels().InputFor(rows) names. out's row stride is shape().out_stride(); columns past out_features become
  // zero, or stay as they are when accumulating.
  void Forward(Worker& worker, const Activation& x, MatrixView<float> out) const;

  // out [rows, out_features / 2] = silu(x G^T) * (x U^T), of a layer whose output is kSiluMul. The product of a panel
  // of G and one of U goes no further than the thread's own cache before it is written to `out`.
  void ForwardSiluMul(Worker& worker, const Activation& x, int64_t rows, const Activation& out) const;

 private:
  std::byte* PanelData(int64_t panel) const { return panels_.data() + panel * shape().panel().bytes(); }
  // Rows [first_row, first_row + num_rows) by panels [first_panel, end_panel).
  struct Part {
    int64_t first_panel;
    int64_t end_panel;
    int64_t first_row;
    int64_t num_rows;
  };
  // Calls body(part) for all parts, on all threads; a part has whole multiples of `panel_step` panels. Rows are cut
  // too where panels alone can't be shared out evenly.
  template <typename Body>
  void ForParts(Worker& worker, int64_t rows, int64_t panel_step, Body body) const;
  // c [num_rows, panels of the part], with row stride out_stride(), from x in the form `input`; `rows` are all rows of
  // x.
  void Compute(const Part& part, const Activation& x, int64_t rows, DType input, float* c,
               std::span<std::byte> scratch) const;
  void ComputeInt8(const Part& part, const Activation& x, float* c) const;
  void ComputeVectorCode(const Part& part, const Activation& x, int64_t rows, float* c) const;
  void ComputeMicroKernels(const Part& part, const Activation& x, int64_t rows, DType input, float* c,
                           std::span<std::byte> scratch) const;

  std::shared_ptr<const LinearKernels> kernels_;
  std::span<std::byte> panels_;  // [num_panels, panel]
};

}  // namespace quire
