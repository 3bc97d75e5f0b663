#pragma once

#include <cstdint>

namespace quire {

// Vector code for attention's running softmax, on the calling thread alone. A row's results depend on its own valid
// scores alone, not on the tile's width or its neighbours.

// Scores of some rows by one key tile, of which row r sees keys
// [0, clamp(first_row_keys + (row_offset + r) / group, 0, num_keys)).
struct ScoreTile {
  float* scores = nullptr;  // [rows, width], row stride `stride`
  int64_t rows = 0;
  int64_t width = 0;
  int64_t stride = 0;
  int64_t num_keys = 0;        // at most `width`
  int64_t group = 1;           // neighbouring rows that see the same keys
  int64_t row_offset = 0;      // of row 0 in the count of groups
  int64_t first_row_keys = 0;  // may be negative
  // Of an int8 cache, else none: the keys' and values' scales, with any content past num_keys. // [width]
  const float* key_scales = nullptr;
  const float* value_scales = nullptr;
};

struct SoftmaxStats {
  float max = 0;  // of a row's scores
  float sum = 0;  // of exp(score - max); 0 if the row sees no key
};

// Turns scores into weights exp(score - max), zero for keys that a row does not see. Scores are multiplied by the keys'
// scales first, and weights, after they are summed, by the values' scales.
void ExpScores(const ScoreTile& tile, SoftmaxStats* stats);  // [rows]

// The running softmax of some rows: each row's greatest score so far, the sum of its weights, and the weighted sum of
// values, both relative to that greatest score. A row without a key so far has sum 0.
struct SoftmaxState {
  SoftmaxStats* stats = nullptr;  // [rows]
  float* values = nullptr;        // [rows, head_dim]
};

// Adds a tile's part to rows of the state.
void JoinTile(const SoftmaxState& state, const SoftmaxStats* tile_stats, const float* tile_values, int64_t rows,
              int64_t head_dim);

// out[i] = x[i] * factor.
void Scale(const float* x, float factor, int64_t count, float* out);

}  // namespace quire
