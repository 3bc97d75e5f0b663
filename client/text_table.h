#pragma once

#include <string>
#include <vector>

namespace quire {

// Rows of cells in columns two spaces apart: the first column flush left, the others flush right unless
// `all_left`. Each line begins with two spaces. A row may be shorter than others.
std::string RenderTable(const std::vector<std::vector<std::string>>& rows, bool all_left = false);

}  // namespace quire
