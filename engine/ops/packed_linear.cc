#include "engine/ops/packed_linear.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/ops/convert.h"

namespace quire {
namespace {

// Up to here, reading bf16 panels directly beats both expanding them and the matrix units (measured at 1 to 16 rows).
constexpr int64_t kMaxVectorCodeRows = 4;

int64_t NumPanels(int64_t out_features) { return CeilDiv(out_features, kPanelWidth); }

}  // namespace

PackedLinear::PackedLinear(int64_t out_features, int64_t in_features, DType weight_type, DType compute_type,
                           LinearOutput output, Arena* arena)
    : out_features_(out_features),
      in_features_(in_features),
      num_panels_(NumPanels(out_features)),
      weight_type_(weight_type),
      compute_type_(compute_type),
      accumulate_(output == LinearOutput::kAccumulate),
      panels_(arena->Take(BytesFor(out_features, in_features, weight_type))),
      brgemm_(Brgemm::Create({.n = kPanelWidth,
                              .k = in_features,
                              .lda = in_features,
                              .ldc = out_stride(),
                              .input_type = compute_type,
                              .accumulate = accumulate_})) {
  QUIRE_CHECK_EQ(in_features % 2, 0);
}

int64_t PackedLinear::BytesFor(int64_t out_features, int64_t in_features, DType weight_type) {
  return NumPanels(out_features) * kPanelWidth * in_features * SizeOf(weight_type);
}

int64_t PackedLinear::ScratchBytesFor(int64_t in_features) {
  const int64_t expanded_panel = AlignUp<int64_t>(in_features * kPanelWidth * SizeOf(DType::kF32), 64);
  return expanded_panel + Brgemm::kScratchBytes;
}

bool PackedLinear::Supports(DType weight_type, DType compute_type) {
  if (compute_type == DType::kF32) return true;
  return weight_type == DType::kBF16 &&
         Brgemm::Create({.n = kPanelWidth, .k = 64, .lda = 64, .ldc = kPanelWidth, .input_type = DType::kBF16});
}

int64_t PackedLinear::PanelBytes() const { return in_features_ * kPanelWidth * SizeOf(weight_type_); }

void PackedLinear::PackPanel(int64_t panel, MatrixView<const float> rows) {
  QUIRE_CHECK_LE(rows.rows, kPanelWidth);
  QUIRE_CHECK_EQ(rows.cols, in_features_);
  std::byte* data = panels_.data() + panel * PanelBytes();
  for (int64_t column = 0; column < rows.rows; ++column) {
    const float* row = rows.row_data(column);
    if (weight_type_ == DType::kF32) {
      auto* out = reinterpret_cast<float*>(data) + column;
      for (int64_t k = 0; k < in_features_; ++k) out[k * kPanelWidth] = row[k];
    } else {
      auto* out = reinterpret_cast<BFloat16*>(data) + 2 * column;
      for (int64_t k = 0; k < in_features_; ++k) out[(k / 2) * 2 * kPanelWidth + k % 2] = ToBFloat16(row[k]);
    }
  }
}

void PackedLinear::UnpackRow(int64_t row, std::span<float> out) const {
  QUIRE_DCHECK(row >= 0 && row < out_features_ && static_cast<int64_t>(out.size()) == in_features_);
  const std::byte* data = PanelData(row / kPanelWidth);
  const int64_t column = row % kPanelWidth;
  if (weight_type_ == DType::kF32) {
    const auto* values = reinterpret_cast<const float*>(data) + column;
    for (int64_t k = 0; k < in_features_; ++k) out[k] = values[k * kPanelWidth];
  } else {
    const auto* values = reinterpret_cast<const BFloat16*>(data) + 2 * column;
    for (int64_t k = 0; k < in_features_; ++k) out[k] = ToFloat(values[(k / 2) * 2 * kPanelWidth + k % 2]);
  }
}

void PackedLinear::Forward(Worker& worker, const Activation& x, MatrixView<float> out) const {
  QUIRE_DCHECK(x.width() == in_features_ && x.compute_type() == compute_type_);
  QUIRE_DCHECK(out.row_stride == out_stride());
  if (UsesVectorCode(out.rows)) {
    ForwardVectorCode(worker, x, out);
  } else {
    ForwardMicroKernels(worker, x, out);
  }
}

bool PackedLinear::UsesVectorCode(int64_t rows) const {
  return !brgemm_ || (weight_type_ == DType::kBF16 && rows <= kMaxVectorCodeRows);
}

void PackedLinear::ForwardVectorCode(Worker& worker, const Activation& x, MatrixView<float> out) const {
  const MatrixView<float> a = x.f32(out.rows);
  worker.For(num_panels_, [&](int64_t begin, int64_t end) {
    MultiplyPanels({.panels = PanelData(begin),
                    .panel_type = weight_type_,
                    .num_panels = end - begin,
                    .k = in_features_,
                    .a = a.data,
                    .lda = in_features_,
                    .rows = out.rows,
                    .c = out.data + begin * kPanelWidth,
                    .ldc = out.row_stride,
                    .accumulate = accumulate_});
  });
}

void PackedLinear::ForwardMicroKernels(Worker& worker, const Activation& x, MatrixView<float> out) const {
  // Rows are split too where there are too few panels to share out evenly.
  constexpr int64_t kItemsPerThread = 8;
  constexpr int64_t kMinRowsPerItem = 64;
  const int64_t max_parts = CeilDiv(out.rows, kMinRowsPerItem);
  const int64_t num_parts =
      std::clamp<int64_t>(CeilDiv(kItemsPerThread * worker.num_threads(), num_panels_), 1, max_parts);
  const int64_t rows_per_part = CeilDiv(out.rows, num_parts);
  worker.ForChunks(num_panels_ * num_parts, 1, [&](int64_t item, int64_t) {
    const int64_t first_row = item % num_parts * rows_per_part;
    const int64_t num_rows = std::min(rows_per_part, out.rows - first_row);
    if (num_rows > 0) MultiplyPanelRows(item / num_parts, x, first_row, num_rows, out, worker.scratch());
  });
}

void PackedLinear::MultiplyPanelRows(int64_t panel, const Activation& x, int64_t first_row, int64_t num_rows,
                                     MatrixView<float> out, std::span<std::byte> scratch) const {
  const void* weights = PanelData(panel);
  std::byte* kernel_scratch = scratch.data();
  if (weight_type_ == DType::kBF16 && compute_type_ == DType::kF32) {
    auto* expanded = reinterpret_cast<float*>(scratch.data() + Brgemm::kScratchBytes);
    ExpandBFloat16Pairs(static_cast<const BFloat16*>(weights), in_features_, kPanelWidth, expanded, kPanelWidth);
    weights = expanded;
  }
  const void* inputs = compute_type_ == DType::kF32 ? static_cast<const void*>(x.f32(out.rows).row_data(first_row))
                                                    : static_cast<const void*>(x.bf16_row(first_row));
  float* c = out.row_data(first_row) + panel * kPanelWidth;
  brgemm_->Execute(inputs, weights, c, num_rows, kernel_scratch);
}

}  // namespace quire
