#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace quire {

// Metadata, or the header, of a request's id, asked for by the caller and told with the answer.
inline constexpr const char* kRequestIdKey = "x-request-id";

// Makes ids for requests that come without one: no two alike, and those of one process unlike another's. Thread-safe.
class RequestIds {
 public:
  RequestIds();

  // "PREFIX-<process>-<number>".
  std::string Make(std::string_view prefix);

 private:
  const uint64_t process_id_;  // drawn at start
  std::atomic<uint64_t> num_made_ = 0;
};

}  // namespace quire
