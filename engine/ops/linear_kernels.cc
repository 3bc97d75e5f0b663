#include "engine/ops/linear_kernels.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/math.h"

namespace quire {
namespace {

std::optional<Brgemm> MicroKernels(const LinearShape& shape, DType input) {
  return Brgemm::Create({.n = kPanelWidth,
                         .k = shape.in_features,
                         .lda = shape.in_features,
                         .ldc = shape.out_stride(),
                         .input_type = input,
                         .accumulate = shape.output == LinearOutput::kAccumulate});
}

}  // namespace

int64_t LinearShape::num_panels() const {
  return output == LinearOutput::kSiluMul ? 2 * CeilDiv(out_features / 2, kPanelWidth)
                                          : CeilDiv(out_features, kPanelWidth);
}

LinearShape::Features LinearShape::FeaturesOf(int64_t panel) const {
  const bool alternate = output == LinearOutput::kSiluMul;
  const int64_t part_features = alternate ? out_features / 2 : out_features;
  const int64_t first = (alternate ? panel / 2 : panel) * kPanelWidth;
  const int64_t part = alternate ? panel % 2 : 0;
  return {part * part_features + first, std::min(kPanelWidth, part_features - first)};
}

LinearKernels::LinearKernels(const LinearShape& shape) : shape_(shape), f32_(MicroKernels(shape, DType::kF32)) {
  QUIRE_CHECK_EQ(shape.in_features % (IsQuantized(shape.weight_type) ? kGroupSize : 2), 0);
  if (shape.weight_type != WeightType::kF32) bf16_ = MicroKernels(shape, DType::kBF16);
  inputs_.fill(DefaultInput());
}

bool LinearKernels::Supports(DType input) const {
  switch (input) {
    case DType::kF32: return f32_.has_value() || !IsQuantized(shape_.weight_type);
    case DType::kBF16: return bf16_.has_value();
    case DType::kInt8: return IsQuantized(shape_.weight_type);
  }
  return false;
}

void LinearKernels::SetInputs(const InputTypes& inputs) {
  for (const DType input : inputs) QUIRE_CHECK(Supports(input));
  inputs_ = inputs;
}

const Brgemm* LinearKernels::micro_kernels(DType input) const {
  const std::optional<Brgemm>& kernels = input == DType::kF32 ? f32_ : bf16_;
  return kernels ? &*kernels : nullptr;
}

}  // namespace quire
