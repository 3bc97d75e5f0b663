#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quire {

// What a client saw of one request. Times are the client's own, from sending the request.
struct LoadMeasurement {
  std::string tenant;
  grpc::StatusCode status = grpc::StatusCode::OK;
  std::string message;  // of a failure
  bool cancelled_by_client = false;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
  std::optional<double> first_token_seconds;
  std::vector<double> gap_seconds;  // between messages with tokens
  double total_seconds = 0;

  // Mean gap per token after the first; nothing with fewer than two.
  std::optional<double> SecondsPerOutputToken() const;
};

}  // namespace quire
