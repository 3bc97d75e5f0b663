#pragma once

#include <string>

#include "client/cancel_signal.h"

namespace quire {

enum class ReadOutcome { kRead, kEnd, kCancelled };

// Reads a descriptor, and stops waiting when cancelled.
class LineReader {
 public:
  LineReader(int fd, const CancelSignal& cancel) : fd_(fd), cancel_(cancel) {}

  // The next line without its end. A last line without an end counts as one.
  ReadOutcome ReadLine(std::string& line);

  // All that is left; kEnd never comes.
  ReadOutcome ReadAll(std::string& text);

  // Forgets what was read of an unfinished line: a terminal forgets it too at Ctrl-C.
  void DropPartialLine() { buffer_.clear(); }

 private:
  // Appends to buffer_.
  ReadOutcome Fill();

  const int fd_;
  const CancelSignal& cancel_;
  std::string buffer_;
};

}  // namespace quire
