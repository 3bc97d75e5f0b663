#include "tests/server/metrics/metrics_text.h"

#include <sstream>
#include <vector>

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

namespace {

// Names of a sample's labels but a histogram's le. Values here hold no quote.
std::vector<std::string> LabelsIn(const std::string& line) {
  std::vector<std::string> names;
  for (size_t end = line.find("=\""); end != std::string::npos; end = line.find("=\"", end)) {
    const size_t begin = line.find_last_of("{,", end) + 1;
    if (line.substr(begin, end - begin) != "le") names.push_back(line.substr(begin, end - begin));
    end = line.find('"', end + 2);
  }
  return names;
}

}  // namespace

std::set<std::string> ParseFamilies(const std::string& text) {
  std::map<std::string, std::string> types;
  std::map<std::string, std::set<std::string>> labels;
  std::istringstream lines(text);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      std::istringstream(line.substr(7)) >> name >> types[name];
    } else if (line.front() != '#') {
      for (const std::string& label : LabelsIn(line)) labels[name].insert(label);
    }
  }
  std::set<std::string> families;
  for (const auto& [family, type] : types) {
    std::string joined;
    for (const std::string& label : labels[family]) joined += (joined.empty() ? "" : ",") + label;
    families.insert(family + " " + type + " " + (joined.empty() ? "-" : joined));
  }
  return families;
}

}  // namespace quire::testing
