#pragma once

#include <map>
#include <string>

namespace quire::testing {

// Values of a text in Prometheus's format by name and labels, as they stand there: `a_total{b="c"}`.
std::map<std::string, double> ParseMetrics(const std::string& text);

}  // namespace quire::testing
