#include "engine/ops/expand_panel.h"

#include "engine/ops/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/expand_panel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using UintTag = hn::RebindToUnsigned<FloatTag>;
using HalfTag = hn::Rebind<hwy::float16_t, FloatTag>;
using FloatVec = hn::Vec<FloatTag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

// Weights are quant * scale + offset, for kLanes output features.
struct Affine {
  FloatVec scale;
  FloatVec offset;
};

HWY_INLINE FloatVec Halves(const std::byte* from) {
  return hn::PromoteTo(FloatTag(), hn::LoadU(HalfTag(), reinterpret_cast<const hwy::float16_t*>(from)));
}

HWY_INLINE Affine AffineOf(const WeightPanel& shape, const std::byte* panel, int64_t group, int64_t column) {
  const FloatTag d;
  const auto zero = hn::Set(d, -static_cast<float>(ZeroPoint(shape.type)));
  if (shape.type == WeightType::kInt8) {
    const auto* scales = reinterpret_cast<const float*>(panel + shape.ChannelScalesOffset());
    const auto scale = hn::LoadU(d, scales + column);
    return {scale, hn::Mul(scale, zero)};
  }
  const std::byte* scales = panel + shape.GroupScalesOffset(group);
  const auto scale = Halves(scales + column * 2);
  if (shape.type == WeightType::kQ4_1) return {scale, Halves(scales + (kPanelWidth + column) * 2)};
  return {scale, hn::Mul(scale, zero)};
}

// Input i of four whose bytes lie side by side in each lane; their quants have kBits bits.
template <int kBits>
HWY_INLINE FloatVec Weight(hn::Vec<UintTag> four, int i, int half, const Affine& affine) {
  const auto quant = hn::And(hn::ShiftRightSame(four, i * 8 + half * 4), hn::Set(UintTag(), (1U << kBits) - 1));
  return hn::MulAdd(hn::ConvertTo(FloatTag(), hn::BitCast(hn::RebindToSigned<FloatTag>(), quant)), affine.scale,
                    affine.offset);
}

HWY_INLINE void Store(FloatVec (&w)[4], int64_t k, int64_t column, float* out) {
  for (int i = 0; i < 4; ++i) hn::StoreU(w[i], FloatTag(), out + (k + i) * kPanelWidth + column);
}

HWY_INLINE void Store(FloatVec (&w)[4], int64_t k, int64_t column, BFloat16* out) {
  const UintTag d;
  auto* pairs = reinterpret_cast<uint32_t*>(out) + column;
  const auto half = hn::Set(d, 0x8000U);  // ties away from zero: weights are finite
  for (int i = 0; i < 4; i += 2) {
    const auto even = hn::ShiftRight<16>(hn::Add(hn::BitCast(d, w[i]), half));
    const auto odd = hn::And(hn::Add(hn::BitCast(d, w[i + 1]), half), hn::Set(d, 0xffff0000U));
    hn::StoreU(hn::Or(even, odd), d, pairs + (k + i) / 2 * kPanelWidth);
  }
}

// What comes after it in memory, the next panel's groups among it: loads alone wait for a third of the memory's speed.
HWY_INLINE void FetchAhead(const std::byte* group, int64_t bytes) {
  constexpr int64_t kAheadBytes = 2048;
  for (int64_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(group + kAheadBytes + offset);
}

template <int kBits, typename Out>
void Expand(const WeightPanel& shape, const std::byte* panel, Out* out) {
  constexpr int kHalves = 8 / kBits;
  for (int64_t group = 0; group < shape.num_groups(); ++group) {
    const std::byte* quants = panel + group * shape.BytesPerGroup();
    FetchAhead(quants, shape.BytesPerGroup());
    for (int64_t column = 0; column < kPanelWidth; column += kLanes) {
      const Affine affine = AffineOf(shape, panel, group, column);
      for (int64_t step = 0; step < kGroupSize / 4 / kHalves; ++step) {
        const auto four = hn::LoadU(UintTag(), reinterpret_cast<const uint32_t*>(quants) + step * kPanelWidth + column);
        for (int half = 0; half < kHalves; ++half) {
          FloatVec w[4];
#pragma GCC unroll 4
          for (int i = 0; i < 4; ++i) w[i] = Weight<kBits>(four, i, half, affine);
          Store(w, group * kGroupSize + half * (kGroupSize / 2) + step * 4, column, out);
        }
      }
    }
  }
}

void ExpandPanelToF32(const WeightPanel& shape, const std::byte* panel, float* out) {
  HasNibbles(shape.type) ? Expand<4>(shape, panel, out) : Expand<8>(shape, panel, out);
}

void ExpandPanelToBf16(const WeightPanel& shape, const std::byte* panel, BFloat16* out) {
  HasNibbles(shape.type) ? Expand<4>(shape, panel, out) : Expand<8>(shape, panel, out);
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(ExpandPanelToF32);
HWY_EXPORT(ExpandPanelToBf16);

void ExpandPanelToF32(const WeightPanel& shape, const std::byte* panel, float* out) {
  if (shape.type == WeightType::kBF16) {
    ExpandBFloat16Pairs(reinterpret_cast<const BFloat16*>(panel), shape.k, kPanelWidth, out, kPanelWidth);
    return;
  }
  HWY_DYNAMIC_DISPATCH(ExpandPanelToF32)(shape, panel, out);
}

void ExpandPanelToBf16(const WeightPanel& shape, const std::byte* panel, BFloat16* out) {
  HWY_DYNAMIC_DISPATCH(ExpandPanelToBf16)(shape, panel, out);
}

}  // namespace quire
#endif  // HWY_ONCE
