#include "client/load_http.h"

#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "client/server_sent_events.h"

namespace quire {
namespace {

constexpr int kHttpOk = 200;
constexpr size_t kMaxErrorBytes = 4096;  // of a refusal's text, kept for the report
constexpr double kLongSeconds = 1e6;     // in place of no limit

// A thread runs the request; the call's measurement is that thread's until the end.
class HttpLoadCall : public LoadCall {
 public:
  HttpLoadCall(const PlannedRequest& planned, const HttpLoadOptions& options)
      : LoadCall(planned),
        timeout_(std::chrono::duration_cast<std::chrono::microseconds>(
            std::chrono::duration<double>(options.timeout_seconds.value_or(kLongSeconds)))),
        client_(options.endpoint.origin) {
    Json body = options.body;
    body["prompt"] = planned.token_ids;
    body["max_tokens"] = planned.max_tokens;
    body["temperature"] = 0;
    body["ignore_eos"] = true;
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    request_.method = "POST";
    request_.path = options.endpoint.path + "/v1/completions";
    request_.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
    if (!planned.tenant.empty()) {
      request_.headers.emplace("x-tenant-id", planned.tenant);
    }
    if (!options.api_key.empty()) {
      request_.headers.emplace("Authorization", "Bearer " + options.api_key);
    }
    request_.body = body.dump();
    client_.set_tcp_nodelay(true);
    client_.set_connection_timeout(timeout_);
    client_.set_read_timeout(timeout_);
  }

  ~HttpLoadCall() override {
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void Begin(std::function<void()> on_end) override {
    thread_ = std::thread([this, on_end = std::move(on_end)] {
      Run();
      on_end();
    });
  }

  void Cancel() override {
    is_cancelled_ = true;
    client_.stop();
  }

 private:
  void Run() {
    deadline_ = std::chrono::steady_clock::now() + timeout_;
    if (!OnSending() || is_cancelled_) {
      OnEnded(grpc::StatusCode::CANCELLED, "cancelled before it was sent");
      return;
    }
    request_.response_handler = [this](const httplib::Response& response) {
      http_status_ = response.status;
      return true;
    };
    request_.content_receiver = [this](const char* data, size_t size, uint64_t, uint64_t) {
      return TakePiece({data, size});
    };
    httplib::Response response;
    httplib::Error error = httplib::Error::Success;
    client_.send(request_, response, error);
    const grpc::Status status = Outcome(error);
    OnEnded(status.error_code(), status.error_message());
  }

  // False: enough.
  bool TakePiece(std::string_view piece) {
    if (is_cancelled_ || std::chrono::steady_clock::now() > deadline_) {
      return false;
    }
    if (http_status_ != kHttpOk) {
      refusal_ += piece.substr(0, kMaxErrorBytes - std::min(refusal_.size(), kMaxErrorBytes));
      return true;
    }
    for (const std::string& event : events_.Take(piece)) {
      TakeEvent(event);
    }
    return !measurement().cancelled_by_client;
  }

  void TakeEvent(const std::string& event) {
    if (event == "[DONE]") {
      is_done_ = true;
      return;
    }
    const Json json = Json::parse(event, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
      failure_ = grpc::Status(grpc::StatusCode::INTERNAL, "an event that is not a JSON object: " + event);
      return;
    }
    if (const Json error = json.value("error", json.contains("code") ? json : Json()); error.is_object()) {
      const Json code = error.value("code", Json());
      failure_ = grpc::Status(CodeOfHttpStatus(code.is_number_integer() ? code.get<int>() : 500), error.dump());
      return;
    }
    const Json choices = json.value("choices", Json());
    if (choices.is_array() && !choices.empty() && choices[0].value("text", Json("")) != "") {
      OnTokens(1);
    }
    TakeUsage(json.value("usage", Json()));
  }

  // An event is at least a token, but a server may hold back tokens that end within a character.
  void TakeUsage(const Json& usage) {
    if (!usage.is_object()) {
      return;
    }
    if (const Json count = usage.value("completion_tokens", Json()); count.is_number_integer()) {
      measurement().num_output_tokens = count.get<int64_t>();
    }
    const Json details = usage.value("prompt_tokens_details", Json());
    if (details.is_object() && details.value("cached_tokens", Json()).is_number_integer()) {
      measurement().num_cached_prompt_tokens = details["cached_tokens"].get<int64_t>();
    }
  }

  grpc::Status Outcome(httplib::Error error) {
    if (is_cancelled_ || measurement().cancelled_by_client) {
      return {grpc::StatusCode::CANCELLED, "cancelled"};
    }
    if (!failure_.ok()) {
      return failure_;
    }
    if (std::chrono::steady_clock::now() > deadline_) {
      return {grpc::StatusCode::DEADLINE_EXCEEDED, "the time limit passed"};
    }
    if (error != httplib::Error::Success) {
      return {grpc::StatusCode::UNAVAILABLE, "the connection failed: " + httplib::to_string(error)};
    }
    if (http_status_ != kHttpOk) {
      return {CodeOfHttpStatus(http_status_), "HTTP status " + std::to_string(http_status_) + ": " + refusal_};
    }
    return is_done_ ? grpc::Status::OK : grpc::Status(grpc::StatusCode::INTERNAL, "the stream ended without [DONE]");
  }

  const std::chrono::microseconds timeout_;
  httplib::Client client_;
  httplib::Request request_;
  std::thread thread_;
  std::atomic<bool> is_cancelled_ = false;
  std::chrono::steady_clock::time_point deadline_;
  int http_status_ = 0;
  std::string refusal_;  // the body of an answer that is not 200
  ServerSentEvents events_;
  bool is_done_ = false;
  grpc::Status failure_;  // told by an event
};

}  // namespace

std::optional<HttpEndpoint> ParseHttpEndpoint(const std::string& url) {
  const size_t scheme_end = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
  const size_t path_begin = std::min(url.find('/', scheme_end), url.size());
  if (scheme_end == 0 || path_begin == scheme_end || url.find_first_of(" ?#") != std::string::npos) {
    return std::nullopt;
  }
  HttpEndpoint endpoint = {.origin = url.substr(0, path_begin), .path = url.substr(path_begin)};
  while (endpoint.path.ends_with('/')) {
    endpoint.path.pop_back();
  }
  return endpoint;
}

grpc::Status DescribeHttpModel(const HttpEndpoint& endpoint, const std::string& api_key, HttpModel* model) {
  httplib::Client client(endpoint.origin);
  if (!api_key.empty()) {
    client.set_bearer_token_auth(api_key);
  }
  const std::string path = endpoint.path + "/v1/models";
  const httplib::Result result = client.Get(path);
  if (!result) {
    return {grpc::StatusCode::UNAVAILABLE,
            "no server answers at " + endpoint.origin + " (" + httplib::to_string(result.error()) + ")"};
  }
  if (result->status != kHttpOk) {
    return {CodeOfHttpStatus(result->status),
            endpoint.origin + path + " answers with HTTP status " + std::to_string(result->status)};
  }
  const Json json = Json::parse(result->body, nullptr, /*allow_exceptions=*/false);
  const Json models = json.is_object() ? json.value("data", Json()) : Json();
  if (!models.is_array() || models.empty() || !models[0].is_object() || !models[0].value("id", Json()).is_string()) {
    return {grpc::StatusCode::FAILED_PRECONDITION, endpoint.origin + path + " names no model"};
  }
  model->name = models[0]["id"];
  const Json meta = models[0].value("meta", Json());
  if (meta.is_object() && meta.value("n_vocab", Json()).is_number_integer() && meta["n_vocab"].get<int64_t>() > 0) {
    model->vocab_size = meta["n_vocab"].get<int64_t>();
  }
  return grpc::Status::OK;
}

grpc::StatusCode CodeOfHttpStatus(int http_status) {
  switch (http_status) {
    case 400:
    case 413:
    case 422: return grpc::StatusCode::INVALID_ARGUMENT;
    case 401: return grpc::StatusCode::UNAUTHENTICATED;
    case 403: return grpc::StatusCode::PERMISSION_DENIED;
    case 404: return grpc::StatusCode::NOT_FOUND;
    case 408:
    case 504: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case 429: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case 501: return grpc::StatusCode::UNIMPLEMENTED;
    case 502:
    case 503: return grpc::StatusCode::UNAVAILABLE;
    default: return http_status >= 500 ? grpc::StatusCode::INTERNAL : grpc::StatusCode::UNKNOWN;
  }
}

std::unique_ptr<LoadCall> HttpLoadTransport::NewCall(const PlannedRequest& planned) {
  return std::make_unique<HttpLoadCall>(planned, options_);
}

}  // namespace quire
