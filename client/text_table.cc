#include "client/text_table.h"

#include <algorithm>
#include <cstdint>

namespace quire {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no place.
size_t Width(const std::string& cell) {
  return static_cast<size_t>(
      std::count_if(cell.begin(), cell.end(), [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }));
}

}  // namespace

std::string RenderTable(const std::vector<std::vector<std::string>>& rows, bool all_left) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], Width(row[column]));
    }
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - Width(row[column]), ' ');
      const bool is_left = all_left || column == 0;
      line += "  " + (is_left ? row[column] + padding : padding + row[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  return table;
}

}  // namespace quire
