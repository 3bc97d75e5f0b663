#include "engine/ops/packed_linear.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/ops/expand_panel.h"
#include "engine/ops/panel_kernels.h"
#include "engine/ops/quantized_kernels.h"

namespace quire {
namespace {

// Up to here, reading bf16 panels directly beats expanding them (measured at 1 to 16 rows).
constexpr int64_t kMaxVectorCodeRows = 4;

bool UsesVectorCode(const LinearKernels& kernels, int64_t rows) {
  return kernels.micro_kernels(DType::kF32) == nullptr ||
         (kernels.shape().weight_type == WeightType::kBF16 && rows <= kMaxVectorCodeRows);
}

DType PanelType(WeightType type) { return type == WeightType::kF32 ? DType::kF32 : DType::kBF16; }

}  // namespace

PackedLinear::PackedLinear(std::shared_ptr<const LinearKernels> kernels, Arena* arena)
    : kernels_(std::move(kernels)), panels_(arena->Take(BytesFor(shape()))) {}

int64_t PackedLinear::ScratchBytesFor(int64_t in_features) {
  const int64_t expanded_panel = AlignUp<int64_t>(in_features * kPanelWidth * SizeOf(DType::kF32), 64);
  return expanded_panel + Brgemm::kScratchBytes;
}

void PackedLinear::UnpackRow(int64_t row, std::span<float> out) const {
  QUIRE_DCHECK(row >= 0 && row < shape().out_features);
  UnpackColumn(shape().panel(), PanelData(row / kPanelWidth), row % kPanelWidth, out);
}

template <typename Compute>
void PackedLinear::ForParts(Worker& worker, int64_t rows, Compute compute) const {
  constexpr int64_t kPartsPerThread = 8;
  constexpr int64_t kMinRowsPerPart = 64;
  const int64_t num_panels = shape().num_panels();
  const int64_t wanted_parts = kPartsPerThread * worker.num_threads();
  const int64_t panels_per_part = std::max<int64_t>(1, num_panels / wanted_parts);
  const int64_t panel_parts = CeilDiv(num_panels, panels_per_part);
  const int64_t row_parts = std::clamp<int64_t>(CeilDiv(wanted_parts, panel_parts), 1, CeilDiv(rows, kMinRowsPerPart));
  const int64_t rows_per_part = CeilDiv(rows, row_parts);
  worker.ForChunks(panel_parts * row_parts, 1, [&](int64_t index, int64_t) {
    const int64_t first_panel = index / row_parts * panels_per_part;
    const int64_t first_row = index % row_parts * rows_per_part;
    const Part part = {first_panel, std::min(first_panel + panels_per_part, num_panels), first_row,
                       std::min(rows_per_part, rows - first_row)};
    if (part.num_rows > 0) compute(part);
  });
}

void PackedLinear::Forward(Worker& worker, const Activation& x, MatrixView<float> out) const {
  QUIRE_DCHECK(x.width() == shape().in_features);
  QUIRE_DCHECK(out.row_stride == shape().out_stride());
  const DType input = kernels_->InputFor(out.rows);
  ForParts(worker, out.rows, [&](const Part& part) {
    if (input == DType::kInt8) {
      ComputeInt8(part, x, out);
    } else if (input == DType::kF32 && UsesVectorCode(*kernels_, out.rows)) {
      ComputeVectorCode(part, x, out);
    } else {
      ComputeMicroKernels(part, x, input, out, worker.scratch());
    }
  });
}

void PackedLinear::ComputeInt8(const Part& part, const Activation& x, MatrixView<float> out) const {
  MultiplyQuantizedPanels({.panel = shape().panel(),
                           .panels = PanelData(part.first_panel),
                           .num_panels = part.end_panel - part.first_panel,
                           .a = x.int8_rows(part.first_row),
                           .rows = part.num_rows,
                           .c = out.row_data(part.first_row) + part.first_panel * kPanelWidth,
                           .ldc = out.row_stride,
                           .accumulate = shape().output == LinearOutput::kAccumulate});
}

void PackedLinear::ComputeVectorCode(const Part& part, const Activation& x, MatrixView<float> out) const {
  MultiplyPanels({.panels = PanelData(part.first_panel),
                  .panel_type = PanelType(shape().weight_type),
                  .num_panels = part.end_panel - part.first_panel,
                  .k = shape().in_features,
                  .a = x.f32(out.rows).row_data(part.first_row),
                  .lda = shape().in_features,
                  .rows = part.num_rows,
                  .c = out.row_data(part.first_row) + part.first_panel * kPanelWidth,
                  .ldc = out.row_stride,
                  .accumulate = shape().output == LinearOutput::kAccumulate});
}

void PackedLinear::ComputeMicroKernels(const Part& part, const Activation& x, DType input, MatrixView<float> out,
                                       std::span<std::byte> scratch) const {
  const WeightPanel panel_shape = shape().panel();
  std::byte* kernel_scratch = scratch.data();
  std::byte* expanded = scratch.data() + Brgemm::kScratchBytes;
  const void* inputs = input == DType::kF32 ? static_cast<const void*>(x.f32(out.rows).row_data(part.first_row))
                                            : static_cast<const void*>(x.bf16_row(part.first_row));
  for (int64_t panel = part.first_panel; panel < part.end_panel; ++panel) {
    const void* weights = PanelData(panel);
    if (input == DType::kF32 && panel_shape.type != WeightType::kF32) {
      ExpandPanelToF32(panel_shape, PanelData(panel), reinterpret_cast<float*>(expanded));
      weights = expanded;
    } else if (input == DType::kBF16 && panel_shape.type != WeightType::kBF16) {
      ExpandPanelToBf16(panel_shape, PanelData(panel), reinterpret_cast<BFloat16*>(expanded));
      weights = expanded;
    }
    float* c = out.row_data(part.first_row) + panel * kPanelWidth;
    kernels_->micro_kernels(input)->Execute(inputs, weights, c, part.num_rows, kernel_scratch);
  }
}

}  // namespace quire
