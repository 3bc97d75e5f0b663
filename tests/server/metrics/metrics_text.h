#pragma once

#include <map>
#include <set>
#include <string>

namespace quire::testing {

// Values of a text in Prometheus's format by name and labels, as they stand there: `a_total{b="c"}`.
std::map<std::string, double> ParseMetrics(const std::string& text);

// Families of such a text as "NAME TYPE LABELS", the labels with commas between, in alphabetical order and without a
// histogram's le; "-" for none.
std::set<std::string> ParseFamilies(const std::string& text);

}  // namespace quire::testing
