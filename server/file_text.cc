#include "server/file_text.h"

#include <fstream>
#include <sstream>

namespace quire {

std::optional<std::string> FileText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return std::nullopt;
  return text.str();
}

}  // namespace quire
