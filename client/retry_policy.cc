#include "client/retry_policy.h"

#include <algorithm>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace quire {

using std::chrono::milliseconds;

std::optional<milliseconds> RetryInfoDelay(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) {
    return std::nullopt;
  }
  for (const auto& detail : details.details()) {
    google::rpc::RetryInfo info;
    if (detail.UnpackTo(&info) && info.retry_delay().seconds() >= 0 && info.retry_delay().nanos() >= 0) {
      // A wait of more than a day is as good as a day, and does not overflow.
      const int64_t seconds = std::min<int64_t>(info.retry_delay().seconds(), 24 * 3600);
      return milliseconds(seconds * 1000 + info.retry_delay().nanos() / 1'000'000);
    }
  }
  return std::nullopt;
}

std::optional<milliseconds> RetryPolicy::DelayBefore(int retry, const grpc::Status& status, double spread) const {
  const bool may_pass = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
                        status.error_code() == grpc::StatusCode::UNAVAILABLE;
  if (!may_pass || retry >= max_retries) {
    return std::nullopt;
  }
  const milliseconds doubled = first_delay * (int64_t{1} << std::min(retry, 20));
  const milliseconds delay = std::min(RetryInfoDelay(status).value_or(doubled), max_delay);
  return delay + milliseconds(static_cast<int64_t>(static_cast<double>(delay.count()) * spread / 2));
}

}  // namespace quire
