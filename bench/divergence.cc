#include "bench/divergence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/percentile.h"
#include "engine/base/check.h"

namespace quire {
namespace {

struct Distribution {
  size_t top1;
  double log_sum_exp;
};

// `exps` becomes exp(logit - max). // [vocab_size]
Distribution Normalize(std::span<const float> logits, std::vector<double>* exps) {
  const auto top1 = std::max_element(logits.begin(), logits.end());
  const double max = *top1;
  exps->resize(logits.size());
  std::transform(logits.begin(), logits.end(), exps->begin(), [max](float logit) { return std::exp(logit - max); });
  const double sum = std::accumulate(exps->begin(), exps->end(), 0.0);
  return {static_cast<size_t>(top1 - logits.begin()), max + std::log(sum)};
}

}  // namespace

void Divergence::AddRow(std::span<const float> reference_logits, std::span<const float> tested_logits, TokenId next) {
  QUIRE_CHECK_EQ(reference_logits.size(), tested_logits.size());
  const Distribution tested = Normalize(tested_logits, &exps_);
  const Distribution reference = Normalize(reference_logits, &exps_);
  // KL = sum of p (log p - log q), with p = exps / sum.
  const double shift = tested.log_sum_exp - reference.log_sum_exp;
  double weighted = 0;
  double sum = 0;
  for (size_t token = 0; token < exps_.size(); ++token) {
    sum += exps_[token];
    if (exps_[token] == 0) continue;  // and the logit may be -inf
    weighted += exps_[token] * (static_cast<double>(reference_logits[token]) - tested_logits[token] + shift);
  }
  kl_.push_back(weighted / sum);
  if (reference.top1 == tested.top1) ++num_same_top1_;
  reference_log_loss_ += reference.log_sum_exp - reference_logits[next];
  tested_log_loss_ += tested.log_sum_exp - tested_logits[next];
}

DivergenceFigures Divergence::Figures() const {
  QUIRE_CHECK(!kl_.empty());
  const auto num_rows = static_cast<double>(kl_.size());
  return {.num_rows = static_cast<int64_t>(kl_.size()),
          .mean_kl = std::accumulate(kl_.begin(), kl_.end(), 0.0) / num_rows,
          .p99_kl = Percentile(kl_, 0.99),
          .max_kl = *std::max_element(kl_.begin(), kl_.end()),
          .same_top1 = static_cast<double>(num_same_top1_) / num_rows,
          .reference_perplexity = std::exp(reference_log_loss_ / num_rows),
          .tested_perplexity = std::exp(tested_log_loss_ / num_rows)};
}

}  // namespace quire
