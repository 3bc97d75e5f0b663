#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "quire/v1/cache.pb.h"

namespace quire {

// `quire cache --watch` on a terminal: a frame for each reading, with bars and with the history of those before. Pure:
// told the readings and their times.
class CacheView {
 public:
  // Readings that the history shows.
  static constexpr size_t kHistoryLength = 60;
  // Rows of the tenants' and of the requests' table, so that a frame fits on a screen.
  static constexpr int kMaxRows = 12;

  // `seconds` since any fixed time, ascending.
  std::string Frame(const v1::CacheStats& stats, double seconds);

 private:
  void Remember(const v1::CacheStats& stats, double seconds);

  std::deque<double> used_ratios_;
  std::deque<double> output_rates_;  // tokens/s between two readings
  double last_seconds_ = 0;
  int64_t last_output_tokens_ = -1;  // -1: no reading yet
};

}  // namespace quire
