#include "engine/ops/activation.h"

#include "engine/ops/convert.h"

namespace quire {
namespace {

int64_t Bf16Bytes(int64_t max_rows, int64_t width, DType compute_type) {
  return compute_type == DType::kBF16 ? max_rows * width * SizeOf(DType::kBF16) : 0;
}

}  // namespace

Activation::Activation(int64_t max_rows, int64_t width, DType compute_type)
    : width_(width),
      compute_type_(compute_type),
      f32_(max_rows * width * SizeOf(DType::kF32)),
      bf16_(Bf16Bytes(max_rows, width, compute_type)) {}

int64_t Activation::BytesFor(int64_t max_rows, int64_t width, DType compute_type) {
  return max_rows * width * SizeOf(DType::kF32) + Bf16Bytes(max_rows, width, compute_type);
}

void Activation::Touch(Worker& worker) const {
  TouchPages(worker, f32_);
  TouchPages(worker, bf16_);
}

void Activation::FinishColumns(int64_t row, int64_t begin, int64_t end) const {
  if (compute_type_ == DType::kF32) return;
  const int64_t offset = row * width_ + begin;
  ConvertToBFloat16(f32_.as<float>() + offset, end - begin, bf16_.as<BFloat16>() + offset);
}

}  // namespace quire
