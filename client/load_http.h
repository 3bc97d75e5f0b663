#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/load_call.h"
#include "client/message_json.h"

namespace quire {

// An OpenAI-compatible server: SCHEME://HOST:PORT, and a path before /v1.
struct HttpEndpoint {
  std::string origin;
  std::string path;
};

// Empty if `url` is none with the scheme http or https.
std::optional<HttpEndpoint> ParseHttpEndpoint(const std::string& url);

// What a server says of the model it serves first.
struct HttpModel {
  std::string name;
  std::optional<int64_t> vocab_size;  // llama.cpp's server names it
};

// UNAVAILABLE with one sentence that names the address: nobody answers there.
grpc::Status DescribeHttpModel(const HttpEndpoint& endpoint, const std::string& api_key, HttpModel* model);

// How a failed request counts among the others' statuses.
grpc::StatusCode CodeOfHttpStatus(int http_status);

struct HttpLoadOptions {
  HttpEndpoint endpoint;
  std::string api_key;                    // empty: none is sent
  std::optional<double> timeout_seconds;  // of a request, and at most as long again without any byte
  Json body = Json::object();             // of every request; its own fields come on top
};

// Calls of POST /v1/completions with token ids as the prompt, answered as a stream of events. Each has a thread and a
// connection of its own, so the load should not keep more than some hundreds open.
class HttpLoadTransport : public LoadTransport {
 public:
  explicit HttpLoadTransport(HttpLoadOptions options) : options_(std::move(options)) {}
  std::unique_ptr<LoadCall> NewCall(const PlannedRequest& planned) override;

 private:
  const HttpLoadOptions options_;
};

}  // namespace quire
