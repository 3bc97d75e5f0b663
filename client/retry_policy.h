#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <optional>

namespace quire {

// The wait that the server asks for (RetryInfo), if it does.
std::optional<std::chrono::milliseconds> RetryInfoDelay(const grpc::Status& status);

// Whether and when a failed request is sent again.
struct RetryPolicy {
  int max_retries = 5;
  std::chrono::milliseconds first_delay{500};  // doubled for each further retry
  std::chrono::milliseconds max_delay{30000};  // above it, the server's own wish is cut too

  // The wait before retry number `retry`, counted from 0; nothing: give up. Only RESOURCE_EXHAUSTED and
  // UNAVAILABLE pass by themselves. `spread` in [0, 1) draws callers apart: the wait grows by at most a half.
  std::optional<std::chrono::milliseconds> DelayBefore(int retry, const grpc::Status& status, double spread) const;
};

}  // namespace quire
