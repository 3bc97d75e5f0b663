#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"

namespace quire {

// How far a tested model's next-token distributions are from a reference's.
struct DivergenceFigures {
  int64_t num_rows = 0;
  double mean_kl = 0;  // of KL(reference || tested), in nats
  double p99_kl = 0;
  double max_kl = 0;
  double same_top1 = 0;  // share of rows with the same most probable token
  double reference_perplexity = 0;
  double tested_perplexity = 0;

  double perplexity_ratio() const { return tested_perplexity / reference_perplexity; }
};

// Collects rows of logits of the same positions by both models.
class Divergence {
 public:
  // `next` is the token that the text goes on with. // logits: [vocab_size]
  void AddRow(std::span<const float> reference_logits, std::span<const float> tested_logits, TokenId next);

  // At least one row must have been added.
  DivergenceFigures Figures() const;

 private:
  std::vector<double> exps_;  // [vocab_size], of the row that is added
  std::vector<double> kl_;    // [num_rows]
  int64_t num_same_top1_ = 0;
  double reference_log_loss_ = 0;
  double tested_log_loss_ = 0;
};

}  // namespace quire
