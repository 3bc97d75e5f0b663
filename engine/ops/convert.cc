#include "engine/ops/convert.h"

#include <limits>

#include "engine/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/convert.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void ConvertToBFloat16(const float* values, int64_t count, BFloat16* out) {
  const hn::ScalableTag<float> df;
  const hn::Repartition<uint32_t, decltype(df)> du32;
  const hn::Rebind<uint16_t, decltype(df)> du16;
  auto* bits_out = reinterpret_cast<uint16_t*>(out);
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(df, values + i);
    const auto bits = hn::BitCast(du32, value);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto is_odd = hn::And(upper, hn::Set(du32, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(hn::Set(du32, 0x7fff), is_odd)));
    const auto nan = hn::Or(upper, hn::Set(du32, 0x40));
    const auto result = hn::IfThenElse(hn::RebindMask(du32, hn::IsNaN(value)), nan, rounded);
    hn::StoreU(hn::TruncateTo(du16, result), du16, bits_out + i);
  }
  for (; i < count; ++i) out[i] = ToBFloat16(values[i]);
}

void SplitIntoBFloat16(const float* values, float factor, int64_t count, BFloat16* high, BFloat16* low) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToUnsigned<decltype(df)> du32;
  const hn::Rebind<uint16_t, decltype(df)> du16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto store = [&](auto bits, BFloat16* out, size_t n) HWY_ATTR {
    hn::StoreN(hn::TruncateTo(du16, hn::ShiftRight<16>(bits)), du16, reinterpret_cast<uint16_t*>(out), n);
  };
  for (int64_t i = 0; i < count; i += lanes) {
    const size_t n = count - i < lanes ? count - i : lanes;
    const auto value = hn::Mul(hn::LoadN(df, values + i, n), hn::Set(df, factor));
    const auto cut_off = hn::And(hn::BitCast(du32, value), hn::Set(du32, 0xffff0000U));
    const auto rest = hn::Sub(value, hn::BitCast(df, cut_off));
    store(cut_off, high + i, n);
    store(hn::Add(hn::BitCast(du32, rest), hn::Set(du32, 0x8000)), low + i, n);
  }
}

void ExpandBFloat16Pairs(const BFloat16* packed, int64_t rows, int64_t cols, float* out, int64_t out_stride) {
  const hn::ScalableTag<float> df;
  const hn::Repartition<uint32_t, decltype(df)> du32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto upper_half = hn::Set(du32, 0xffff0000U);
  for (int64_t pair = 0; pair < rows / 2; ++pair) {
    const auto* pairs = reinterpret_cast<const uint32_t*>(packed + pair * cols * 2);  // [cols], each (even, odd) row
    float* even = out + 2 * pair * out_stride;
    float* odd = even + out_stride;
    int64_t col = 0;
    for (; col + lanes <= cols; col += lanes) {
      const auto both = hn::LoadU(du32, pairs + col);
      hn::StoreU(hn::BitCast(df, hn::ShiftLeft<16>(both)), df, even + col);
      hn::StoreU(hn::BitCast(df, hn::And(both, upper_half)), df, odd + col);
    }
    for (; col < cols; ++col) {
      even[col] = ToFloat(packed[(pair * cols + col) * 2]);
      odd[col] = ToFloat(packed[(pair * cols + col) * 2 + 1]);
    }
  }
}

float Int8ScaleOf(const float* values, int64_t count) {
  const hn::ScalableTag<float> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  auto max = hn::Zero(df);
  auto not_finite = hn::Zero(df);  // zero times infinity or NaN is NaN
  for (int64_t i = 0; i < count; i += lanes) {
    const auto value = count - i < lanes ? hn::LoadN(df, values + i, count - i) : hn::LoadU(df, values + i);
    max = hn::Max(max, hn::Abs(value));
    not_finite = hn::MulAdd(value, hn::Zero(df), not_finite);
  }
  const float scale = hn::ReduceMax(df, max) / 127.0F;
  return (scale < std::numeric_limits<float>::min() ? 0.0F : scale) + hn::ReduceSum(df, not_finite);
}

void ConvertToInt8(const float* values, float scale, int64_t count, int8_t* out) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<int8_t, decltype(df)> di8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  const float factor = scale > 0.0F ? 1.0F / scale : 0.0F;  // of a NaN too
  const auto factors = hn::Set(df, factor);
  for (int64_t i = 0; i < count; i += lanes) {
    const size_t n = count - i < lanes ? count - i : lanes;
    const auto steps = hn::NearestInt(hn::Mul(hn::LoadN(df, values + i, n), factors));
    hn::StoreN(hn::DemoteTo(di8, steps), di8, out + i, n);
  }
}

void ExpandInt8(const int8_t* values, int64_t rows, int64_t cols, float* out, int64_t out_stride) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di32;
  const hn::Rebind<int8_t, decltype(df)> di8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  for (int64_t row = 0; row < rows; ++row) {
    const int8_t* from = values + row * cols;
    float* to = out + row * out_stride;
    int64_t col = 0;
    for (; col + lanes <= cols; col += lanes) {
      hn::StoreU(hn::ConvertTo(df, hn::PromoteTo(di32, hn::LoadU(di8, from + col))), df, to + col);
    }
    for (; col < cols; ++col) to[col] = from[col];
  }
}

void PackInt8Pairs(const int8_t* values, int64_t rows, int64_t cols, BFloat16* out, int64_t out_stride) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di32;
  const hn::RebindToUnsigned<decltype(df)> du32;
  const hn::Rebind<int8_t, decltype(df)> di8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto bits = [&](const int8_t* from, size_t n) HWY_ATTR {
    return hn::BitCast(du32, hn::ConvertTo(df, hn::PromoteTo(di32, hn::LoadN(di8, from, n))));
  };
  for (int64_t row = 0; row < rows; row += 2) {
    const int8_t* even = values + row * cols;
    auto* to = reinterpret_cast<uint32_t*>(out + row * out_stride);
    for (int64_t col = 0; col < cols; col += lanes) {
      const size_t n = cols - col < lanes ? cols - col : lanes;
      const auto pairs = hn::Or(hn::ShiftRight<16>(bits(even + col, n)), bits(even + cols + col, n));
      hn::StoreN(pairs, du32, to + col, n);
    }
  }
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(ConvertToBFloat16);
HWY_EXPORT(SplitIntoBFloat16);
HWY_EXPORT(PackInt8Pairs);
HWY_EXPORT(ExpandBFloat16Pairs);
HWY_EXPORT(ExpandInt8);
HWY_EXPORT(Int8ScaleOf);
HWY_EXPORT(ConvertToInt8);

void ConvertToBFloat16(const float* values, int64_t count, BFloat16* out) {
  HWY_DYNAMIC_DISPATCH(ConvertToBFloat16)(values, count, out);
}

void SplitIntoBFloat16(const float* values, float factor, int64_t count, BFloat16* high, BFloat16* low) {
  HWY_DYNAMIC_DISPATCH(SplitIntoBFloat16)(values, factor, count, high, low);
}

void PackInt8Pairs(const int8_t* values, int64_t rows, int64_t cols, BFloat16* out, int64_t out_stride) {
  QUIRE_DCHECK(rows % 2 == 0);
  HWY_DYNAMIC_DISPATCH(PackInt8Pairs)(values, rows, cols, out, out_stride);
}

void ExpandBFloat16Pairs(const BFloat16* packed, int64_t rows, int64_t cols, float* out, int64_t out_stride) {
  QUIRE_DCHECK(rows % 2 == 0);
  HWY_DYNAMIC_DISPATCH(ExpandBFloat16Pairs)(packed, rows, cols, out, out_stride);
}

float Int8ScaleOf(const float* values, int64_t count) { return HWY_DYNAMIC_DISPATCH(Int8ScaleOf)(values, count); }

void ConvertToInt8(const float* values, float scale, int64_t count, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(ConvertToInt8)(values, scale, count, out);
}

void ExpandInt8(const int8_t* values, int64_t rows, int64_t cols, float* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(ExpandInt8)(values, rows, cols, out, out_stride);
}

}  // namespace quire
#endif  // HWY_ONCE
