#include "engine/ops/peak_kernels.h"

// Unlike the folder's other sources: with the targets that have dot products of bf16.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/peak_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVec = hn::Vec<FloatTag>;
using IntTag = hn::RebindToSigned<FloatTag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
constexpr int kChains = kLanes >= 16 ? 24 : 12;  // hide the latency, and fit the registers beside two operands

// What the compiler can't know. Chains that began alike would be one chain.
static volatile float opaque_float = 0.5F;
static volatile int opaque_int = 3;

// As volatile objects are read: a loop whose result is not used would go.
template <class Vec>
HWY_INLINE void Consume(const Vec (&chains)[kChains]) {
  Vec sum = chains[0];
#pragma GCC unroll 24
  for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, chains[i]);
  if constexpr (hwy::IsFloat<hn::TFromV<Vec>>()) {
    opaque_float = hn::GetLane(sum) > 0 ? 0.5F : 0.25F;
  } else {
    opaque_int = hn::GetLane(sum) > 0 ? 3 : 5;
  }
}

int64_t LoopF32(int64_t iterations) {
  const FloatTag tag;
  const FloatVec a = hn::Set(tag, opaque_float);
  const FloatVec b = hn::Set(tag, opaque_float);
  FloatVec sums[kChains];
#pragma GCC unroll 24
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(tag, opaque_float * static_cast<float>(i));
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(a, b, sums[i]);
  }
  Consume(sums);
  return iterations * kChains * kLanes * 2;
}

int64_t LoopBf16(int64_t iterations) {
  const FloatTag tag;
  const hn::Repartition<hwy::bfloat16_t, FloatTag> narrow_tag;
  const auto a = hn::Set(narrow_tag, hwy::BF16FromF32(opaque_float));
  const auto b = hn::Set(narrow_tag, hwy::BF16FromF32(opaque_float));
  // Two halves of the chains: where there is no instruction, even and odd products are added to one each.
  FloatVec sums[kChains];
#pragma GCC unroll 24
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(tag, opaque_float * static_cast<float>(i));
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains / 2; ++i) {
      sums[i] = hn::ReorderWidenMulAccumulate(tag, a, b, sums[i], sums[kChains / 2 + i]);
    }
  }
  Consume(sums);
  return iterations * (kChains / 2) * kLanes * 4;
}

int64_t LoopInt8(int64_t iterations) {
  const IntTag tag;
  const hn::Repartition<uint8_t, IntTag> unsigned_tag;
  const hn::Repartition<int8_t, IntTag> signed_tag;
  const auto a = hn::Set(unsigned_tag, static_cast<uint8_t>(opaque_int));
  const auto b = hn::Set(signed_tag, static_cast<int8_t>(opaque_int));
  hn::Vec<IntTag> sums[kChains];
#pragma GCC unroll 24
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(tag, opaque_int * i);
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sums[i] = hn::SumOfMulQuadAccumulate(tag, a, b, sums[i]);
  }
  Consume(sums);
  return iterations * kChains * kLanes * 8;
}

int64_t RunLoop(PeakOp op, int64_t iterations) {
  switch (op) {
    case PeakOp::kF32MulAdd: return LoopF32(iterations);
    case PeakOp::kBf16Dot: return LoopBf16(iterations);
    case PeakOp::kInt8Dot: return LoopInt8(iterations);
  }
  return 0;
}

template <int kStreams>
uint64_t ReadStreams(const std::byte* data, int64_t num_bytes) {
  using WordTag = hn::CappedTag<uint64_t, 8>;
  constexpr int64_t kVecBytes = static_cast<int64_t>(hn::MaxLanes(WordTag())) * 8;
  const WordTag tag;
  const int64_t stream_bytes = num_bytes / kStreams;
  hn::Vec<WordTag> sums[kStreams];
#pragma GCC unroll 8
  for (int s = 0; s < kStreams; ++s) sums[s] = hn::Zero(tag);
  for (int64_t line = 0; line < stream_bytes; line += 64) {
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; ++s) {
      const std::byte* source = data + s * stream_bytes + line;
      for (int64_t offset = 0; offset < 64; offset += kVecBytes) {
        sums[s] = hn::Add(sums[s], hn::LoadU(tag, reinterpret_cast<const uint64_t*>(source + offset)));
      }
    }
  }
#pragma GCC unroll 8
  for (int s = 1; s < kStreams; ++s) sums[0] = hn::Add(sums[0], sums[s]);
  return hn::ReduceSum(tag, sums[0]);
}

uint64_t ReadBytes(const std::byte* data, int64_t num_bytes, int num_streams) {
  switch (num_streams) {
    case 8: return ReadStreams<8>(data, num_bytes);
    case 4: return ReadStreams<4>(data, num_bytes);
    case 2: return ReadStreams<2>(data, num_bytes);
    default: return ReadStreams<1>(data, num_bytes);
  }
}

const char* NameOfTarget() { return hwy::TargetName(HWY_TARGET); }

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(RunLoop);
HWY_EXPORT(ReadBytes);
HWY_EXPORT(NameOfTarget);

int64_t RunPeakLoop(PeakOp op, int64_t iterations) { return HWY_DYNAMIC_DISPATCH(RunLoop)(op, iterations); }

uint64_t ReadAll(const std::byte* data, int64_t num_bytes, int num_streams) {
  return HWY_DYNAMIC_DISPATCH(ReadBytes)(data, num_bytes, num_streams);
}

const char* PeakTargetName() { return HWY_DYNAMIC_DISPATCH(NameOfTarget)(); }

}  // namespace quire
#endif  // HWY_ONCE
