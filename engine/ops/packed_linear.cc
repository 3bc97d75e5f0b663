#include "engine/ops/packed_linear.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/ops/expand_panel.h"
#include "engine/ops/panel_kernels.h"
#include "engine/ops/quantized_kernels.h"
#include "engine/ops/row_kernels.h"

namespace quire {
namespace {

// Up to here, reading bf16 panels directly beats expanding them (measured at 1 to 16 rows).
constexpr int64_t kMaxVectorCodeRows = 4;

bool UsesVectorCode(const LinearKernels& kernels, int64_t rows) {
  return kernels.micro_kernels(DType::kF32) == nullptr ||
         (kernels.shape().weight_type == WeightType::kBF16 && rows <= kMaxVectorCodeRows);
}

// Rows of the tile from which kSiluMul makes its output: enough to pay for expanding its panels.
constexpr int64_t kMaxTileRows = 512;

DType PanelType(WeightType type) { return type == WeightType::kF32 ? DType::kF32 : DType::kBF16; }

}  // namespace

PackedLinear::PackedLinear(std::shared_ptr<const LinearKernels> kernels, Arena* arena)
    : kernels_(std::move(kernels)), panels_(arena->Take(BytesFor(shape()))) {}

int64_t PackedLinear::ScratchBytesFor(int64_t in_features) {
  const int64_t expanded_panel = AlignUp<int64_t>(in_features * kPanelWidth * SizeOf(DType::kF32), 64);
  constexpr int64_t kTileBytes = kMaxTileRows * 2 * kPanelWidth * SizeOf(DType::kF32);
  return Brgemm::kScratchBytes + kTileBytes + expanded_panel;
}

void PackedLinear::UnpackRow(int64_t row, std::span<float> out) const {
  QUIRE_DCHECK(row >= 0 && row < shape().out_features);
  UnpackColumn(shape().panel(), PanelData(row / kPanelWidth), row % kPanelWidth, out);
}

template <typename Body>
void PackedLinear::ForParts(Worker& worker, int64_t rows, int64_t panel_step, Body body) const {
  constexpr int64_t kPartsPerThread = 8;
  constexpr int64_t kMinRowsPerPart = 64;
  const int64_t num_steps = shape().num_panels() / panel_step;
  const int64_t wanted_parts = kPartsPerThread * worker.num_threads();
  const int64_t steps_per_part = std::max<int64_t>(1, num_steps / wanted_parts);
  const int64_t panel_parts = CeilDiv(num_steps, steps_per_part);
  const int64_t row_parts = std::clamp<int64_t>(CeilDiv(wanted_parts, panel_parts), 1, CeilDiv(rows, kMinRowsPerPart));
  const int64_t rows_per_part = CeilDiv(rows, row_parts);
  worker.ForChunks(panel_parts * row_parts, 1, [&](int64_t index, int64_t) {
    const int64_t first_step = index / row_parts * steps_per_part;
    const int64_t end_step = std::min(first_step + steps_per_part, num_steps);
    const int64_t first_row = index % row_parts * rows_per_part;
    const int64_t num_rows = std::min(rows_per_part, rows - first_row);
    if (num_rows > 0) body(Part{first_step * panel_step, end_step * panel_step, first_row, num_rows});
  });
}

void PackedLinear::Forward(Worker& worker, const Activation& x, MatrixView<float> out) const {
  QUIRE_DCHECK(x.width() == shape().in_features && shape().output != LinearOutput::kSiluMul);
  QUIRE_DCHECK(out.row_stride == shape().out_stride());
  const DType input = kernels_->InputFor(out.rows);
  ForParts(worker, out.rows, 1, [&](const Part& part) {
    float* c = out.row_data(part.first_row) + part.first_panel * kPanelWidth;
    Compute(part, x, out.rows, input, c, worker.scratch());
  });
}

void PackedLinear::ForwardSiluMul(Worker& worker, const Activation& x, int64_t rows, const Activation& out) const {
  QUIRE_DCHECK(x.width() == shape().in_features && shape().output == LinearOutput::kSiluMul);
  const DType input = kernels_->InputFor(rows);
  const std::span<std::byte> scratch = worker.scratch();
  auto* tile = reinterpret_cast<float*>(scratch.data() + Brgemm::kScratchBytes);  // [kMaxTileRows, gate and up]
  ForParts(worker, rows, 2, [&](const Part& part) {
    for (int64_t panel = part.first_panel; panel < part.end_panel; panel += 2) {
      const LinearShape::Features features = shape().FeaturesOf(panel);
      for (int64_t done = 0; done < part.num_rows; done += kMaxTileRows) {
        const int64_t first_row = part.first_row + done;
        const int64_t num_rows = std::min(kMaxTileRows, part.num_rows - done);
        Compute({panel, panel + 2, first_row, num_rows}, x, rows, input, tile, scratch);
        SiluMulRows(tile, tile + kPanelWidth, 2 * kPanelWidth, num_rows, features.count);
        for (int64_t row = 0; row < num_rows; ++row) {
          out.Write(first_row + row, features.first,
                    {tile + row * 2 * kPanelWidth, static_cast<size_t>(features.count)});
        }
      }
    }
  });
}

void PackedLinear::Compute(const Part& part, const Activation& x, int64_t rows, DType input, float* c,
                           std::span<std::byte> scratch) const {
  if (input == DType::kInt8) {
    ComputeInt8(part, x, c);
  } else if (input == DType::kF32 && UsesVectorCode(*kernels_, rows)) {
    ComputeVectorCode(part, x, rows, c);
  } else {
    ComputeMicroKernels(part, x, rows, input, c, scratch);
  }
}

void PackedLinear::ComputeInt8(const Part& part, const Activation& x, float* c) const {
  MultiplyQuantizedPanels({.panel = shape().panel(),
                           .panels = PanelData(part.first_panel),
                           .num_panels = part.end_panel - part.first_panel,
                           .a = x.int8_rows(part.first_row),
                           .rows = part.num_rows,
                           .c = c,
                           .ldc = shape().out_stride(),
                           .accumulate = shape().output == LinearOutput::kAccumulate});
}

void PackedLinear::ComputeVectorCode(const Part& part, const Activation& x, int64_t rows, float* c) const {
  MultiplyPanels({.panels = PanelData(part.first_panel),
                  .panel_type = PanelType(shape().weight_type),
                  .num_panels = part.end_panel - part.first_panel,
                  .k = shape().in_features,
                  .a = x.f32(rows).row_data(part.first_row),
                  .lda = shape().in_features,
                  .rows = part.num_rows,
                  .c = c,
                  .ldc = shape().out_stride(),
                  .accumulate = shape().output == LinearOutput::kAccumulate});
}

void PackedLinear::ComputeMicroKernels(const Part& part, const Activation& x, int64_t rows, DType input, float* c,
                                       std::span<std::byte> scratch) const {
  const WeightPanel panel_shape = shape().panel();
  std::byte* expanded = scratch.data() + ScratchBytesFor(0);
  const void* inputs = input == DType::kF32 ? static_cast<const void*>(x.f32(rows).row_data(part.first_row))
                                            : static_cast<const void*>(x.bf16_row(part.first_row));
  for (int64_t panel = part.first_panel; panel < part.end_panel; ++panel, c += kPanelWidth) {
    const void* weights = PanelData(panel);
    if (input == DType::kF32 && panel_shape.type != WeightType::kF32) {
      ExpandPanelToF32(panel_shape, PanelData(panel), reinterpret_cast<float*>(expanded));
      weights = expanded;
    } else if (input == DType::kBF16 && panel_shape.type != WeightType::kBF16) {
      ExpandPanelToBf16(panel_shape, PanelData(panel), reinterpret_cast<BFloat16*>(expanded));
      weights = expanded;
    }
    kernels_->micro_kernels(input)->Execute(inputs, weights, c, part.num_rows, scratch.data());
  }
}

}  // namespace quire
