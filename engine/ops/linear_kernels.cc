#include "engine/ops/linear_kernels.h"

#include "engine/base/check.h"

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
