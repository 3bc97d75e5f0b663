#pragma once

#include <httplib.h>

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// What the bodies of HTTP requests may take that are being read or parsed, all together. Thread-safe.
class BodyMemory {
 public:
  explicit BodyMemory(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // False, and nothing is taken, if there is not so much left.
  bool TryTake(int64_t num_bytes);
  void Give(int64_t num_bytes) { used_bytes_ -= num_bytes; }

 private:
  const int64_t max_bytes_;
  std::atomic<int64_t> used_bytes_ = 0;
};

// Reads a request's body to its end, and parses it as ParseJsonObject does. `memory` must outlive the call.
// INVALID_ARGUMENT for what is no JSON object; UNAVAILABLE, with a retry delay, if other bodies take all the memory;
// CANCELLED if the body did not come: then httplib may have set the response's status.
absl::StatusOr<nlohmann::json> ReadJsonBody(const httplib::Request& request, const httplib::ContentReader& reader,
                                            int64_t max_values, BodyMemory* memory);

}  // namespace quire
