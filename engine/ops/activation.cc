#include "engine/ops/activation.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/ops/convert.h"
#include "engine/ops/weight_type.h"

namespace quire {
namespace {

int64_t Bf16Bytes(int64_t max_rows, int64_t width, InputForms forms) {
  return forms.bf16 ? max_rows * width * SizeOf(DType::kBF16) : 0;
}

int64_t QuantBytes(int64_t max_rows, int64_t width, InputForms forms) { return forms.int8 ? max_rows * width : 0; }

// Of one number for each group.
int64_t GroupBytes(int64_t max_rows, int64_t width, InputForms forms) {
  return forms.int8 ? max_rows * width / kGroupSize * static_cast<int64_t>(sizeof(float)) : 0;
}

}  // namespace

Activation::Activation(int64_t max_rows, int64_t width, InputForms available)
    : max_rows_(max_rows),
      width_(width),
      available_(available),
      f32_(max_rows * width * SizeOf(DType::kF32)),
      bf16_(Bf16Bytes(max_rows, width, available)),
      quants_(QuantBytes(max_rows, width, available)),
      scales_(GroupBytes(max_rows, width, available)),
      sums_(GroupBytes(max_rows, width, available)),
      scaled_sums_(GroupBytes(max_rows, width, available)) {
  QUIRE_CHECK(!available.int8 || width % kGroupSize == 0);
}

int64_t Activation::BytesFor(int64_t max_rows, int64_t width, InputForms available) {
  return max_rows * width * SizeOf(DType::kF32) + Bf16Bytes(max_rows, width, available) +
         QuantBytes(max_rows, width, available) + 3 * GroupBytes(max_rows, width, available);
}

void Activation::Touch(Worker& worker) const {
  for (const Buffer* buffer : {&f32_, &bf16_, &quants_, &scales_, &sums_, &scaled_sums_}) TouchPages(worker, *buffer);
}

void Activation::AddReader(const LinearKernels& kernels) {
  if (!has_readers_) forms_by_rows_.fill({.f32 = false});
  has_readers_ = true;
  for (size_t bucket = 0; bucket < forms_by_rows_.size(); ++bucket) {
    const InputForms wanted = InputForms::For(kernels.InputFor(kRowBuckets[bucket]));
    QUIRE_CHECK((!wanted.bf16 || available_.bf16) && (!wanted.int8 || available_.int8));
    forms_by_rows_[bucket] = forms_by_rows_[bucket] | wanted;
  }
}

QuantizedRows Activation::At(int64_t row, int64_t column) const {
  const int64_t element = row * width_ + column;
  const int64_t group = element / kGroupSize;
  return {.quants = quants_.as<int8_t>() + element,
          .scales = scales_.as<float>() + group,
          .sums = sums_.as<int32_t>() + group,
          .scaled_sums = scaled_sums_.as<float>() + group};
}

void Activation::Write(int64_t row, int64_t begin, std::span<const float> values) const {
  const int64_t offset = row * width_ + begin;
  const auto count = static_cast<int64_t>(values.size());
  if (forms_.f32) std::ranges::copy(values, f32_.as<float>() + offset);
  if (forms_.bf16) ConvertToBFloat16(values.data(), count, bf16_.as<BFloat16>() + offset);
  if (forms_.int8) {
    QUIRE_DCHECK(begin % kGroupSize == 0 && count % kGroupSize == 0);
    QuantizeGroups(values.data(), count, At(row, begin));
  }
}

}  // namespace quire
