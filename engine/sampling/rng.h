#pragma once

#include <cstdint>

namespace quire {

// Random numbers without state: number `index` of the stream named `seed`. A request's draws are indexed by output
// position, so neither its neighbours in the batch nor a preemption changes them. The bits come from SplitMix64
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014) with Stafford's mix 13, which can
// jump to any index.
constexpr uint64_t Mix64(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

constexpr uint64_t RandomBits(uint64_t seed, uint64_t index) {
  constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ULL;
  // The seed is mixed first: neighbouring seeds would otherwise name overlapping streams.
  return Mix64(Mix64(seed + kGoldenGamma) + (index + 1) * kGoldenGamma);
}

// Uniform in [0, 1), a multiple of 2^-53.
constexpr double RandomUniform(uint64_t seed, uint64_t index) {
  return static_cast<double>(RandomBits(seed, index) >> 11) * 0x1p-53;
}

}  // namespace quire
