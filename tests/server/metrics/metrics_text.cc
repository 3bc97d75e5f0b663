#include "tests/server/metrics/metrics_text.h"

#include <sstream>

namespace quire::testing {

std::map<std::string, double> ParseMetrics(const std::string& text) {
  std::map<std::string, double> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    const size_t space = line.rfind(' ');
    values[line.substr(0, space)] = std::stod(line.substr(space + 1));
  }
  return values;
}

}  // namespace quire::testing
