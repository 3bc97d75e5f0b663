#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

// Loops that do nothing but what limits a machine, for a benchmark to time. On the calling thread alone. They are
// compiled for more targets than the other vector code: what a processor can do is not what quire uses of it.
enum class PeakOp {
  kF32MulAdd,  // f32 += f32 * f32
  kBf16Dot,    // f32 += two bf16 * bf16; in f32 where the processor has no such instruction
  kInt8Dot,    // i32 += four u8 * i8; by multiplications of 16 bits where it has none
};

// Repeats the operation in independent chains that stay in registers. Returns the additions and multiplications done.
int64_t RunPeakLoop(PeakOp op, int64_t iterations);

// Reads `num_bytes`, a multiple of 4096 from an address aligned to 64, as `num_streams` (1, 2, 4 or 8) parts side by
// side. The result depends on all bytes, so that none is left out.
uint64_t ReadAll(const std::byte* data, int64_t num_bytes, int num_streams);

// The vector instructions that both were compiled for and this processor takes: "AVX3_SPR".
const char* PeakTargetName();

}  // namespace quire
