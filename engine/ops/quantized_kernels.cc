#include "engine/ops/quantized_kernels.h"

#include <algorithm>

#include "engine/base/math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/quantized_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using IntTag = hn::RebindToSigned<FloatTag>;
using ByteTag = hn::Repartition<uint8_t, FloatTag>;
using SignedByteTag = hn::Repartition<int8_t, FloatTag>;
using HalfTag = hn::Rebind<hwy::float16_t, FloatTag>;
using FloatVec = hn::Vec<FloatTag>;
using IntVec = hn::Vec<IntTag>;
using ByteVec = hn::Vec<ByteTag>;
using SignedByteVec = hn::Vec<SignedByteTag>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
constexpr int64_t kStepBytes = kPanelWidth * 4;  // of four inputs by all output features of a panel
constexpr int64_t kLineBytes = 64;
// Sums of a tile, in integers and in floats, fit the register file beside the weights.
constexpr int kPanelVecs = 2;
constexpr int kTileRows = kLanes >= 16 ? 6 : 2;
// Panels that are read side by side for a single row: more streams of memory than one keep more of it under way.
constexpr int kSingleRowPanels = kLanes >= 16 ? 2 : 1;

// Asks for a line, into the first-level cache. A compiler gathers fetches that it may move, and a burst of them waits
// for the processor's few line buffers, where one between two products waits for nothing.
HWY_INLINE void Fetch(const uint8_t* from) {
#if HWY_ARCH_X86
  asm volatile("prefetcht0 %0" : : "m"(*from));
#else
  hwy::Prefetch(from);
#endif
}

// The same into the second-level cache.
HWY_INLINE void FetchFar(const uint8_t* from) {
#if HWY_ARCH_X86
  asm volatile("prefetcht1 %0" : : "m"(*from));
#else
  hwy::Prefetch(from);
#endif
}

// sum + four products for each lane. Bytes reach 255 (kFullBytes) or 15.
template <bool kFullBytes>
HWY_INLINE IntVec DotBytes(IntVec sum, ByteVec weights, SignedByteVec inputs) {
#if HWY_TARGET <= HWY_AVX3_DL
  return hn::SumOfMulQuadAccumulate(IntTag(), weights, inputs, sum);
#else
  const hn::Repartition<int16_t, FloatTag> di16;
  const auto ones = hn::Set(di16, int16_t{1});
  if constexpr (kFullBytes) {
    // Pairs of products of full bytes do not fit 16 bits: so with the sign taken from the weights, each less 128.
    const auto centered = hn::BitCast(SignedByteTag(), hn::Xor(weights, hn::Set(ByteTag(), uint8_t{0x80})));
    const auto magnitudes = hn::BitCast(ByteTag(), hn::Abs(centered));
    const auto signed_inputs = hn::IfNegativeThenNegOrUndefIfZero(centered, inputs);  // times a magnitude of 0
    return hn::Add(
        sum, hn::WidenMulPairwiseAdd(IntTag(), hn::SatWidenMulPairwiseAdd(di16, magnitudes, signed_inputs), ones));
  } else {
    return hn::Add(sum, hn::WidenMulPairwiseAdd(IntTag(), hn::SatWidenMulPairwiseAdd(di16, weights, inputs), ones));
  }
#endif
}

// What DotBytes takes for 0 in a weight of each type.
constexpr int32_t DotZeroPoint(WeightType type) {
  return HasNibbles(type) || HWY_TARGET <= HWY_AVX3_DL ? ZeroPoint(type) : 0;
}

// A tile's share of the next panel's weights, which it asks memory for while it computes.
struct Share {
  int64_t offset = 0;     // bytes, from a group's quants to the share in the next panel
  int64_t num_lines = 0;  // of each group
};

// Where a tile's weights of a group begin, and those that it reads kFetchGroups later.
struct GroupPosition {
  const uint8_t* quants;
  const uint8_t* ahead;
  int64_t column;
  int64_t panel_bytes;  // from panel to panel
};

// Output features [column, column + kPanelVecs * kLanes) of kPanels neighbouring panels for kRows rows, summed in
// registers.
// Who asks memory for weights: a tile that is alone with its panel (not kShares), for what it will read itself,
// kFetchGroups later. Several tiles of one panel find it in the second-level cache, and each asks, group by group, for
// its share of the panel after it: so memory is read all the time, not by the first tile alone.
template <WeightType kType, int kRows, bool kShares, int kPanels>
struct Tile {
  static constexpr int kVecs = kPanels * kPanelVecs;
  static constexpr int64_t kFetchGroups = HasNibbles(kType) ? 3 : 2;  // about 2 KB ahead

  // Where vector v of a tile lies behind its first one, for `width` bytes a lane; `panel_bytes` from panel to panel.
  static HWY_INLINE int64_t Offset(int v, int64_t width, int64_t panel_bytes) {
    return v % kPanelVecs * kLanes * width + v / kPanelVecs * panel_bytes;
  }

  static HWY_INLINE void Multiply(const QuantizedMultiplyArgs& args, const uint8_t* panel, int64_t column, int64_t row,
                                  const Share& share, float* c) {
    const int64_t k = args.panel.k;
    const int64_t group_bytes = args.panel.BytesPerGroup();
    const int64_t quant_bytes = args.panel.QuantBytesPerGroup();
    const int64_t panel_bytes = args.panel.bytes();
    const int64_t num_groups = k / kGroupSize;
    const int8_t* inputs = args.a.quants + row * k;
    FloatVec sums[kRows][kVecs];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) sums[r][v] = hn::Zero(FloatTag());
    }
    for (int64_t group = 0; group < num_groups; ++group) {
      // Past the last group come the next panels' first ones.
      const int64_t ahead = group + kFetchGroups;
      const int64_t ahead_offset =
          ahead < num_groups ? ahead * group_bytes : kPanels * panel_bytes + (ahead - num_groups) * group_bytes;
      const GroupPosition at = {panel + group * group_bytes, panel + ahead_offset, column, panel_bytes};
      IntVec dots[kRows][kVecs];
      Start(args, row * num_groups + group, num_groups, dots);
      if constexpr (HasNibbles(kType)) {
        DotNibbles(at, inputs + group * kGroupSize, k, share, dots);
      } else {
        DotFullBytes(at, inputs + group * kGroupSize, k, share, dots);
      }
      const int64_t scales_offset = quant_bytes + column * 2;
      if constexpr (!kShares) FetchScales(at.ahead + scales_offset, panel_bytes);
      AddGroup(args, at.quants + scales_offset, panel_bytes, row * num_groups + group, num_groups, dots, sums);
    }
    if constexpr (kType == WeightType::kInt8)
      ScaleChannels(panel + num_groups * group_bytes + column * 4, panel_bytes, sums);
    Store(args, sums, c);
  }

 private:
  static HWY_INLINE void Start(const QuantizedMultiplyArgs& args, int64_t first, int64_t num_groups,
                               IntVec (&dots)[kRows][kVecs]) {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      constexpr int32_t kZero = DotZeroPoint(kType);
      const auto start =
          kZero == 0 ? hn::Zero(IntTag()) : hn::Set(IntTag(), -kZero * args.a.sums[first + r * num_groups]);
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) dots[r][v] = start;
    }
  }

  // In each of the kSteps that a group takes: one line, as a burst of them would wait. Two tiles have one more each.
  template <int64_t kSteps>
  static HWY_INLINE void FetchShare(const uint8_t* group, const Share& share, int64_t step) {
    const uint8_t* line = group + share.offset + step * kLineBytes;
    if (step < share.num_lines) FetchFar(line);
    if (step == 0 && share.num_lines > kSteps) FetchFar(line + kSteps * kLineBytes);
  }

  // Four inputs of a row, in every lane.
  static HWY_INLINE SignedByteVec Inputs(const int8_t* from) {
    int32_t four;
    __builtin_memcpy(&four, from, sizeof(four));
    return hn::BitCast(SignedByteTag(), hn::Set(IntTag(), four));
  }

  static HWY_INLINE void DotNibbles(const GroupPosition& at, const int8_t* inputs, int64_t stride, const Share& share,
                                    IntVec (&dots)[kRows][kVecs]) {
    constexpr int64_t kSteps = kGroupSize / 8;
    const ByteTag d8;
    const hn::Repartition<uint16_t, FloatTag> d16;
    const auto low_mask = hn::Set(d8, uint8_t{0x0f});
#pragma GCC unroll 8
    for (int64_t step = 0; step < kSteps; ++step) {
      if constexpr (kShares) FetchShare<kSteps>(at.quants, share, step);
      ByteVec low[kVecs];
      ByteVec high[kVecs];
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        const int64_t offset = step * kStepBytes + at.column * 4 + Offset(v, 4, at.panel_bytes);
        if constexpr (!kShares) Fetch(at.ahead + offset);
        const auto both = hn::LoadU(d8, at.quants + offset);
        low[v] = hn::And(both, low_mask);
        high[v] = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, both))), low_mask);
      }
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const auto first = Inputs(inputs + r * stride + step * 4);
        const auto second = Inputs(inputs + r * stride + kGroupSize / 2 + step * 4);
#pragma GCC unroll 8
        for (int v = 0; v < kVecs; ++v) {
          dots[r][v] = DotBytes<false>(DotBytes<false>(dots[r][v], low[v], first), high[v], second);
        }
      }
    }
  }

  static HWY_INLINE void DotFullBytes(const GroupPosition& at, const int8_t* inputs, int64_t stride, const Share& share,
                                      IntVec (&dots)[kRows][kVecs]) {
    constexpr int64_t kSteps = kGroupSize / 4;
#pragma GCC unroll 8
    for (int64_t step = 0; step < kSteps; ++step) {
      if constexpr (kShares) FetchShare<kSteps>(at.quants, share, step);
      ByteVec weights[kVecs];
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        const int64_t offset = step * kStepBytes + at.column * 4 + Offset(v, 4, at.panel_bytes);
        if constexpr (!kShares) Fetch(at.ahead + offset);
        weights[v] = hn::LoadU(ByteTag(), at.quants + offset);
      }
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const auto four = Inputs(inputs + r * stride + step * 4);
#pragma GCC unroll 8
        for (int v = 0; v < kVecs; ++v) dots[r][v] = DotBytes<true>(dots[r][v], weights[v], four);
      }
    }
  }

  // Without them every group would wait for a line that nobody has asked for.
  static HWY_INLINE void FetchScales(const uint8_t* scales, int64_t panel_bytes) {
    if constexpr (IsGrouped(kType)) {
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; v += kPanelVecs) {
        Fetch(scales + Offset(v, 2, panel_bytes));
        if constexpr (kType == WeightType::kQ4_1) {
          Fetch(scales + kPanelWidth * 2 + Offset(v, 2, panel_bytes));
        }
      }
    }
  }

  static HWY_INLINE FloatVec Halves(const uint8_t* from) {
    return hn::PromoteTo(FloatTag(), hn::LoadU(HalfTag(), reinterpret_cast<const hwy::float16_t*>(from)));
  }

  static HWY_INLINE void AddGroup(const QuantizedMultiplyArgs& args, const uint8_t* scales, int64_t panel_bytes,
                                  int64_t first, int64_t num_groups, const IntVec (&dots)[kRows][kVecs],
                                  FloatVec (&sums)[kRows][kVecs]) {
    const FloatTag d;
    FloatVec weight_scales[kVecs];
    FloatVec minima[kVecs];
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      if constexpr (IsGrouped(kType)) weight_scales[v] = Halves(scales + Offset(v, 2, panel_bytes));
      if constexpr (kType == WeightType::kQ4_1)
        minima[v] = Halves(scales + kPanelWidth * 2 + Offset(v, 2, panel_bytes));
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const auto scale = hn::Set(d, args.a.scales[first + r * num_groups]);
      const auto scaled_sum = hn::Set(d, args.a.scaled_sums[first + r * num_groups]);
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        const auto dot = hn::ConvertTo(d, dots[r][v]);
        if constexpr (IsGrouped(kType)) {
          sums[r][v] = hn::MulAdd(dot, hn::Mul(weight_scales[v], scale), sums[r][v]);
        } else {
          sums[r][v] = hn::MulAdd(dot, scale, sums[r][v]);
        }
        if constexpr (kType == WeightType::kQ4_1) sums[r][v] = hn::MulAdd(minima[v], scaled_sum, sums[r][v]);
      }
    }
  }

  static HWY_INLINE void ScaleChannels(const uint8_t* scales, int64_t panel_bytes, FloatVec (&sums)[kRows][kVecs]) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      const auto scale = hn::LoadU(FloatTag(), reinterpret_cast<const float*>(scales + Offset(v, 4, panel_bytes)));
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) sums[r][v] = hn::Mul(sums[r][v], scale);
    }
  }

  static HWY_INLINE void Store(const QuantizedMultiplyArgs& args, const FloatVec (&sums)[kRows][kVecs], float* c) {
    const FloatTag d;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        float* to = c + r * args.ldc + v / kPanelVecs * kPanelWidth + v % kPanelVecs * kLanes;
        hn::StoreU(args.accumulate ? hn::Add(hn::LoadU(d, to), sums[r][v]) : sums[r][v], d, to);
      }
    }
  }
};

template <WeightType kType, int kRows, bool kShares, int kPanels = 1>
void MultiplyRows(const QuantizedMultiplyArgs& args, const uint8_t* panel, int64_t row, Share share, float* c) {
  for (int64_t column = 0; column < kPanelWidth; column += kPanelVecs * kLanes) {
    Tile<kType, kRows, kShares, kPanels>::Multiply(args, panel, column, row, share, c + row * args.ldc + column);
    share.num_lines = 0;  // the first columns' pass has asked for them
  }
}

// The last rows, less than a whole tile.
template <WeightType kType, bool kShares>
void MultiplyRest(const QuantizedMultiplyArgs& args, const uint8_t* panel, int64_t row, const Share& share, float* c) {
  switch (args.rows - row) {
    case 5: MultiplyRows<kType, (kTileRows > 5 ? 5 : 1), kShares>(args, panel, row, share, c); break;
    case 4: MultiplyRows<kType, (kTileRows > 4 ? 4 : 1), kShares>(args, panel, row, share, c); break;
    case 3: MultiplyRows<kType, (kTileRows > 3 ? 3 : 1), kShares>(args, panel, row, share, c); break;
    case 2: MultiplyRows<kType, (kTileRows > 2 ? 2 : 1), kShares>(args, panel, row, share, c); break;
    case 1: MultiplyRows<kType, 1, kShares>(args, panel, row, share, c); break;
    default: break;
  }
}

template <WeightType kType>
void MultiplyPanel(const QuantizedMultiplyArgs& args, const uint8_t* panel, float* c) {
  if (args.rows == kTileRows) return MultiplyRows<kType, kTileRows, false>(args, panel, 0, {}, c);
  if (args.rows < kTileRows) return MultiplyRest<kType, false>(args, panel, 0, {}, c);
  const int64_t group_lines = args.panel.BytesPerGroup() / kLineBytes;
  const int64_t lines_per_tile = CeilDiv(group_lines, CeilDiv<int64_t>(args.rows, kTileRows));
  int64_t asked_lines = 0;
  const auto next_share = [&]() -> Share {
    const int64_t first_line = asked_lines;
    asked_lines = std::min(first_line + lines_per_tile, group_lines);
    return {.offset = args.panel.bytes() + first_line * kLineBytes, .num_lines = asked_lines - first_line};
  };
  int64_t row = 0;
  for (; row + kTileRows <= args.rows; row += kTileRows) {
    MultiplyRows<kType, kTileRows, true>(args, panel, row, next_share(), c);
  }
  MultiplyRest<kType, true>(args, panel, row, next_share(), c);
}

template <WeightType kType>
void MultiplyPanelsOf(const QuantizedMultiplyArgs& args) {
  int64_t i = 0;
  const auto panel_at = [&](int64_t index) {
    return reinterpret_cast<const uint8_t*>(args.panels) + index * args.panel.bytes();
  };
  if (args.rows == 1) {
    for (; i + kSingleRowPanels <= args.num_panels; i += kSingleRowPanels) {
      MultiplyRows<kType, 1, false, kSingleRowPanels>(args, panel_at(i), 0, {}, args.c + i * kPanelWidth);
    }
  }
  for (; i < args.num_panels; ++i) MultiplyPanel<kType>(args, panel_at(i), args.c + i * kPanelWidth);
}

void MultiplyQuantizedPanels(const QuantizedMultiplyArgs& args) {
  switch (args.panel.type) {
    case WeightType::kInt8: MultiplyPanelsOf<WeightType::kInt8>(args); break;
    case WeightType::kQ8_0: MultiplyPanelsOf<WeightType::kQ8_0>(args); break;
    case WeightType::kQ4_0: MultiplyPanelsOf<WeightType::kQ4_0>(args); break;
    case WeightType::kQ4_1: MultiplyPanelsOf<WeightType::kQ4_1>(args); break;
    default: break;
  }
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(MultiplyQuantizedPanels);

void MultiplyQuantizedPanels(const QuantizedMultiplyArgs& args) { HWY_DYNAMIC_DISPATCH(MultiplyQuantizedPanels)(args); }

}  // namespace quire
#endif  // HWY_ONCE
