#pragma once

#include <cstdint>

namespace quire {

// Vector code over one row, on the calling thread alone.

// The sum of x[i]^2 over [0, count), in an order that depends on count and the processor's vector width only.
float SumOfSquares(const float* x, int64_t count);

// out[i] = x[i] * scale * weight[i].
void ScaleByWeights(const float* x, float scale, const float* weight, int64_t count, float* out);

// gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i], for `rows` rows of `count`, all with one row stride.
void SiluMulRows(float* gate, const float* up, int64_t stride, int64_t rows, int64_t count);

// Turns pairs of elements by angles of which cosine and sine are given: (x[2i], x[2i + 1]), or (x[i], x[num_pairs +
// i]).
void RotateNeighbours(const float* cosines, const float* sines, int64_t num_pairs, float* x);
void RotateHalves(const float* cosines, const float* sines, int64_t num_pairs, float* x);

}  // namespace quire
