#include "client/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace quire {

ReadOutcome LineReader::ReadLine(std::string& line) {
  size_t end = buffer_.find('\n');
  while (end == std::string::npos) {
    const ReadOutcome outcome = Fill();
    if (outcome == ReadOutcome::kEnd && !buffer_.empty()) {
      line = std::exchange(buffer_, {});
      return ReadOutcome::kRead;
    }
    if (outcome != ReadOutcome::kRead) {
      return outcome;
    }
    end = buffer_.find('\n');
  }
  line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return ReadOutcome::kRead;
}

ReadOutcome LineReader::ReadAll(std::string& text) {
  ReadOutcome outcome = ReadOutcome::kRead;
  while (outcome == ReadOutcome::kRead) {
    outcome = Fill();
  }
  text = std::exchange(buffer_, {});
  return outcome == ReadOutcome::kEnd ? ReadOutcome::kRead : outcome;
}

ReadOutcome LineReader::Fill() {
  while (true) {
    std::array<pollfd, 2> sources = {pollfd{fd_, POLLIN, 0}, pollfd{cancel_.fd(), POLLIN, 0}};
    if (poll(sources.data(), sources.size(), -1) < 0) {
      continue;
    }
    if (sources[1].revents != 0) {
      return ReadOutcome::kCancelled;
    }
    std::array<char, 1 << 16> piece;
    const ssize_t num_bytes = read(fd_, piece.data(), piece.size());
    if (num_bytes <= 0) {
      return ReadOutcome::kEnd;
    }
    buffer_.append(piece.data(), static_cast<size_t>(num_bytes));
    return ReadOutcome::kRead;
  }
}

}  // namespace quire
