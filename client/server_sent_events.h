#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quire {

// Splits a body of type text/event-stream, which arrives in pieces of any size, into its events. Only the fields `data`
// and `error` (a name that llama.cpp's server uses) count.
class ServerSentEvents {
 public:
  // The data of the events that `piece` completes, their lines joined by newlines.
  std::vector<std::string> Take(std::string_view piece);

 private:
  void TakeLine(std::string_view line, std::vector<std::string>* events);

  std::string line_;  // begun, not ended
  std::string data_;  // of the event begun
  bool has_data_ = false;
};

}  // namespace quire
