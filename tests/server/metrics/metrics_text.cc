#include "tests/server/metrics/metrics_text.h"

#include <regex>
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

std::set<std::string> ParseFamilies(const std::string& text) {
  std::map<std::string, std::string> types;
  std::map<std::string, std::set<std::string>> labels;
  std::istringstream lines(text);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      std::istringstream(line.substr(7)) >> name >> types[name];
    } else if (line.front() != '#') {
      static const std::regex label_name("[{,]([a-z_]+)=\"");
      for (std::sregex_iterator label(line.begin(), line.end(), label_name), end; label != end; ++label) {
        if ((*label)[1] != "le") labels[name].insert((*label)[1]);
      }
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
