#include "engine/ops/panel_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/panel_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVec = hn::Vec<FloatTag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
constexpr int kVecsPerPanel = static_cast<int>(kPanelWidth) / kLanes;
// Far enough ahead that memory's latency is hidden, near enough to stay in the first-level cache.
constexpr int64_t kPrefetchBytes = 4096;

// Accumulators that fit the register file with room for weights: 32 registers of 16 lanes, else 16.
constexpr int kMaxRows = kLanes >= 16 ? 4 : 2;

// The sums of kRows rows by kPanels neighbouring panels stay in registers over the whole of k.
template <int kRows, int kPanels>
struct Tile {
  static constexpr int kVecs = kPanels * kVecsPerPanel;

  static HWY_INLINE void MultiplyF32(const PanelMultiplyArgs& args, int64_t panel, int64_t row) {
    const FloatTag d;
    const int64_t panel_elements = args.k * kPanelWidth;
    const float* weights = static_cast<const float*>(args.panels) + panel * panel_elements;
    const float* a = args.a + row * args.lda;
    FloatVec sums[kRows][kVecs];
    Clear(sums);
    for (int64_t k = 0; k < args.k; ++k) {
      FloatVec w[kVecs];
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) {
        const float* source =
            weights + (v / kVecsPerPanel) * panel_elements + k * kPanelWidth + (v % kVecsPerPanel) * kLanes;
        hwy::Prefetch(reinterpret_cast<const char*>(source) + kPrefetchBytes);
        w[v] = hn::LoadU(d, source);
      }
      MultiplyAdd(sums, w, a + k, args.lda);
    }
    Store(sums, args, panel, row);
  }

  static HWY_INLINE void MultiplyBf16(const PanelMultiplyArgs& args, int64_t panel, int64_t row) {
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> du;
    const int64_t panel_pairs = args.k / 2 * kPanelWidth;
    const uint32_t* weights = static_cast<const uint32_t*>(args.panels) + panel * panel_pairs;  // each (even k, odd k)
    const float* a = args.a + row * args.lda;
    const auto upper_half = hn::Set(du, 0xffff0000U);
    FloatVec sums[kRows][kVecs];
    Clear(sums);
    for (int64_t pair = 0; pair < args.k / 2; ++pair) {
      FloatVec even[kVecs];
      FloatVec odd[kVecs];
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) {
        const uint32_t* source =
            weights + (v / kVecsPerPanel) * panel_pairs + pair * kPanelWidth + (v % kVecsPerPanel) * kLanes;
        hwy::Prefetch(reinterpret_cast<const char*>(source) + kPrefetchBytes);
        const auto both = hn::LoadU(du, source);
        even[v] = hn::BitCast(d, hn::ShiftLeft<16>(both));
        odd[v] = hn::BitCast(d, hn::And(both, upper_half));
      }
      MultiplyAdd(sums, even, a + 2 * pair, args.lda);
      MultiplyAdd(sums, odd, a + 2 * pair + 1, args.lda);
    }
    Store(sums, args, panel, row);
  }

 private:
  static HWY_INLINE void Clear(FloatVec (&sums)[kRows][kVecs]) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) sums[r][v] = hn::Zero(FloatTag());
    }
  }

  static HWY_INLINE void MultiplyAdd(FloatVec (&sums)[kRows][kVecs], const FloatVec (&w)[kVecs], const float* a,
                                     int64_t lda) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(FloatTag(), a[r * lda]);
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) sums[r][v] = hn::MulAdd(factor, w[v], sums[r][v]);
    }
  }

  static HWY_INLINE void Store(const FloatVec (&sums)[kRows][kVecs], const PanelMultiplyArgs& args, int64_t panel,
                               int64_t row) {
    const FloatTag d;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      float* c = args.c + (row + r) * args.ldc + panel * kPanelWidth;
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) {
        const auto sum = args.accumulate ? hn::Add(hn::LoadU(d, c + v * kLanes), sums[r][v]) : sums[r][v];
        hn::StoreU(sum, d, c + v * kLanes);
      }
    }
  }
};

template <int kRows, int kPanels>
HWY_INLINE void MultiplyTile(const PanelMultiplyArgs& args, int64_t panel, int64_t row) {
  if (args.panel_type == DType::kF32) {
    Tile<kRows, kPanels>::MultiplyF32(args, panel, row);
  } else {
    Tile<kRows, kPanels>::MultiplyBf16(args, panel, row);
  }
}

// All panels for kRows rows from `row` on, two panels at a time for more independent chains.
template <int kRows>
void MultiplyRows(const PanelMultiplyArgs& args, int64_t row) {
  int64_t panel = 0;
  for (; panel + 2 <= args.num_panels; panel += 2) MultiplyTile<kRows, 2>(args, panel, row);
  if (panel < args.num_panels) MultiplyTile<kRows, 1>(args, panel, row);
}

void MultiplyPanels(const PanelMultiplyArgs& args) {
  int64_t row = 0;
  for (; row + kMaxRows <= args.rows; row += kMaxRows) MultiplyRows<kMaxRows>(args, row);
  switch (args.rows - row) {
    case 3: MultiplyRows<3>(args, row); break;
    case 2: MultiplyRows<2>(args, row); break;
    case 1: MultiplyRows<1>(args, row); break;
    default: break;
  }
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(MultiplyPanels);

void MultiplyPanels(const PanelMultiplyArgs& args) { HWY_DYNAMIC_DISPATCH(MultiplyPanels)(args); }

}  // namespace quire
#endif  // HWY_ONCE
