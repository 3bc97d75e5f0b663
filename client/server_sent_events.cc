#include "client/server_sent_events.h"

#include <utility>

namespace quire {

std::vector<std::string> ServerSentEvents::Take(std::string_view piece) {
  std::vector<std::string> events;
  for (size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    line_ += piece.substr(0, end);
    piece.remove_prefix(end + 1);
    if (line_.ends_with('\r')) {
      line_.pop_back();
    }
    TakeLine(line_, &events);
    line_.clear();
  }
  line_ += piece;
  return events;
}

void ServerSentEvents::TakeLine(std::string_view line, std::vector<std::string>* events) {
  if (line.empty()) {
    if (std::exchange(has_data_, false)) {
      events->push_back(std::exchange(data_, {}));
    }
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  if (colon == std::string_view::npos || (field != "data" && field != "error")) {
    return;
  }
  line.remove_prefix(colon + 1);
  if (line.starts_with(' ')) {
    line.remove_prefix(1);
  }
  if (std::exchange(has_data_, true)) {
    data_ += '\n';
  }
  data_ += line;
}

}  // namespace quire
