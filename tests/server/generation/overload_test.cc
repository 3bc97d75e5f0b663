// What the server refuses or ends because it is too much or too late, and that others do not notice.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/server/gate.h"
#include "tests/server/test_server.h"
#include "tests/support/fake_clock.h"

namespace quire::testing {
namespace {

// The wait that a refusal asks for; negative without any.
double RetrySeconds(const grpc::Status& status) {
  google::rpc::Status details;
  REQUIRE(details.ParseFromString(status.error_details()));
  for (const auto& detail : details.details()) {
    google::rpc::RetryInfo info;
    if (detail.UnpackTo(&info)) {
      return static_cast<double>(info.retry_delay().seconds()) + info.retry_delay().nanos() / 1e9;
    }
  }
  return -1;
}

TEST_CASE("a full queue refuses with RetryInfo, and those in it are served") {
  Gate gate;
  TestServerOptions options;
  options.max_num_seqs = 1;
  options.queue_limits.max_queued_requests = 1;
  options.execute_gate = &gate;
  TestServer server(options);
  grpc::ClientContext running_context;
  const auto running = server.generation().GenerateStream(&running_context, TextRequest("running"));
  gate.WaitUntilHeld();
  grpc::ClientContext waiting_context;
  const auto waiting = server.generation().GenerateStream(&waiting_context, TextRequest("waiting"));
  v1::GenerateStreamResponse response;
  REQUIRE(waiting->Read(&response));  // accepted
  grpc::ClientContext refused_context;
  v1::GenerateResponse unused;
  const grpc::Status refused = server.generation().Generate(&refused_context, TextRequest("refused"), &unused);
  CHECK(refused.error_code() == grpc::RESOURCE_EXHAUSTED);
  CHECK(refused.error_message().find("max_queued_requests") != std::string::npos);
  CHECK(RetrySeconds(refused) == 1.0);  // nothing has been measured yet
  gate.Open();
  while (running->Read(&response)) continue;
  CHECK(running->Finish().ok());
  while (waiting->Read(&response)) continue;
  CHECK(waiting->Finish().ok());
}

TEST_CASE("timeout_seconds ends a request in the queue and one that generates") {
  FakeClock clock;
  TestServerOptions options = EndlessAnswers();
  options.max_num_seqs = 1;
  options.clock = &clock;
  TestServer server(options);
  v1::GenerateRequest request = TextRequest("p");
  v1::GenerateStreamResponse response;
  request.set_timeout_seconds(5);
  grpc::ClientContext running_context;
  const auto running = server.generation().GenerateStream(&running_context, request);
  std::string text;
  while (text.empty() && running->Read(&response)) text += response.chunk().text();
  request.set_timeout_seconds(2);
  grpc::ClientContext waiting_context;
  const auto waiting = server.generation().GenerateStream(&waiting_context, request);
  REQUIRE(waiting->Read(&response));  // accepted

  clock.Advance(std::chrono::seconds(3));
  CHECK_FALSE(waiting->Read(&response));
  CHECK(waiting->Finish().error_code() == grpc::DEADLINE_EXCEEDED);
  CHECK(server.PollStats([](const auto& stats) { return stats.requests_running() == 1; }));

  clock.Advance(std::chrono::seconds(3));
  while (running->Read(&response)) text += response.chunk().text();
  CHECK(running->Finish().error_code() == grpc::DEADLINE_EXCEEDED);
  CHECK(text.starts_with("abcdefgh"));
  CHECK(server.PollUntilIdle());
}

TEST_CASE("requests with values out of range are refused by field, value and range") {
  TestServer server;
  const auto message = [&](auto set) {
    v1::GenerateRequest request = TextRequest("p");
    set(request);
    grpc::ClientContext context;
    v1::GenerateResponse response;
    const grpc::Status status = server.generation().Generate(&context, request, &response);
    CHECK(status.error_code() == grpc::INVALID_ARGUMENT);
    return status.error_message();
  };
  CHECK(message([](auto& request) { request.set_timeout_seconds(-1); }) ==
        "timeout_seconds: got -1, expected a number in (0, 31536000]");
  CHECK(message([](auto& request) { request.set_priority(101); }) ==
        "priority: got 101, expected an integer in [-100, 100]");
  CHECK(message([](auto& request) { request.set_cache_salt(std::string(257, 's')); }) ==
        "cache_salt: got 257 bytes, expected at most 256 bytes");
}

TEST_CASE("a reader that stops reading is ended, and its neighbour does not notice") {
  TestServerOptions options = EndlessAnswers();
  options.max_stream_buffer_bytes = 64 << 10;
  TestServer server(options);
  const auto slow_stub = v1::Generation::NewStub(server.NewChannel());
  grpc::ClientContext slow_context;
  v1::GenerateRequest slow_request = TextRequest("slow");
  // Much for each token, so that few fill the buffers between server and reader.
  slow_request.mutable_sampling()->set_logprobs(20);
  const auto slow = slow_stub->GenerateStream(&slow_context, slow_request);
  const auto ask_neighbour = [&] {
    v1::GenerateRequest request = TextRequest("neighbour");
    request.mutable_sampling()->set_max_tokens(12);
    grpc::ClientContext context;
    v1::GenerateResponse response;
    REQUIRE(server.generation().Generate(&context, request, &response).ok());
    CHECK(response.outputs(0).text() == "abcdefghabcd");
  };
  for (int i = 0; i < 10; ++i) ask_neighbour();
  CHECK(server.PollUntilIdle());  // the slow one's blocks too
  CHECK(server.runner().num_steps() < kEndless / 2);
  ask_neighbour();
  v1::GenerateStreamResponse response;
  while (slow->Read(&response)) continue;
  const grpc::Status status = slow->Finish();
  CHECK(status.error_code() == grpc::RESOURCE_EXHAUSTED);
  CHECK(status.error_message().find("max_stream_buffer_bytes") != std::string::npos);
}

}  // namespace
}  // namespace quire::testing
