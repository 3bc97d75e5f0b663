// Included once for each instruction set, after <hwy/foreach_target.h>, hence the guard that turns itself off and on.
#if defined(QUIRE_ENGINE_OPS_LANE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_ENGINE_OPS_LANE_SUMS_INL_H_
#undef QUIRE_ENGINE_OPS_LANE_SUMS_INL_H_
#else
#define QUIRE_ENGINE_OPS_LANE_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {

// Sixteen running sums, of elements i, i + 16, i + 32 and so on, in as many vectors as that takes. A total so comes out
// the same in bits whether a vector holds 16, 8 or 4 elements.
struct LaneSums {
  using Tag = hwy::HWY_NAMESPACE::CappedTag<float, 16>;
  using Vec = hwy::HWY_NAMESPACE::Vec<Tag>;
  static constexpr int64_t kCount = 16;
  static constexpr int64_t kLanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::MaxLanes(Tag()));
  static constexpr int kVecs = static_cast<int>(kCount / kLanes);

  Vec vecs[kVecs];

  HWY_INLINE LaneSums() {
#pragma GCC unroll 4
    for (Vec& vec : vecs) vec = hwy::HWY_NAMESPACE::Zero(Tag());
  }

  // In the order in which Highway folds a vector of 16: fours within each half, then the halves, then four lanes.
  HWY_INLINE float Total() const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Tag d;
    if constexpr (kVecs == 1) {
      return hn::ReduceSum(d, vecs[0]);
    } else if constexpr (kVecs == 2) {
      const hn::Half<Tag> half;
      const auto folded = [&](Vec vec) HWY_ATTR { return hn::Add(hn::LowerHalf(half, vec), hn::UpperHalf(half, vec)); };
      return hn::ReduceSum(half, hn::Add(folded(vecs[0]), folded(vecs[1])));
    } else {
      return hn::ReduceSum(d, hn::Add(hn::Add(vecs[0], vecs[1]), hn::Add(vecs[2], vecs[3])));
    }
  }
};

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
