// How calls end before their time, at every stage, and that nothing of them stays.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "tests/server/connected_channel.h"
#include "tests/server/gate.h"
#include "tests/server/read_first_chunk.h"
#include "tests/server/tcp_relay.h"
#include "tests/server/test_server.h"

namespace quire::testing {
namespace {

// Short answers from the neighbour, as if nobody else was there.
void CheckNeighbour(TestServer& server) {
  v1::GenerateRequest request = TextRequest("neighbour");
  request.mutable_sampling()->set_max_tokens(12);
  grpc::ClientContext context;
  v1::GenerateResponse response;
  REQUIRE(server.generation().Generate(&context, request, &response).ok());
  CHECK(response.outputs(0).text() == "abcdefghabcd");
}

TEST_CASE("a cancelled stream gives its blocks back, and its neighbour goes on") {
  TestServer server(EndlessAnswers());
  grpc::ClientContext context;
  const auto reader = server.generation().GenerateStream(&context, TextRequest("p"));
  ReadFirstChunk(*reader);
  CHECK(server.PollStats([](const auto& stats) { return stats.blocks_used() > 0 && stats.requests_size() == 1; }));
  CheckNeighbour(server);
  context.TryCancel();
  CHECK(reader->Finish().error_code() == grpc::CANCELLED);
  CHECK(server.PollUntilIdle());
  CHECK(server.runner().num_steps() < kEndless / 2);
  CheckNeighbour(server);
}

TEST_CASE("a call's deadline ends its request") {
  TestServer server(EndlessAnswers());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  const auto reader = server.generation().GenerateStream(&context, TextRequest("p"));
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) continue;
  CHECK(reader->Finish().error_code() == grpc::DEADLINE_EXCEEDED);
  CHECK(server.PollUntilIdle());
  CHECK(server.runner().num_steps() < kEndless / 2);
}

TEST_CASE("a client whose connection breaks leaves nothing behind") {
  TestServer server(EndlessAnswers());
  TcpRelay relay(server.address());
  const auto channel = ConnectedChannel(relay.address());
  const auto stub = v1::Generation::NewStub(channel);
  grpc::ClientContext context;
  const auto reader = stub->GenerateStream(&context, TextRequest("p"));
  ReadFirstChunk(*reader);
  relay.Cut();
  CHECK(server.PollUntilIdle());
  CHECK(server.runner().num_steps() < kEndless / 2);
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) continue;
  CHECK_FALSE(reader->Finish().ok());
}

TEST_CASE("a reader that never reads holds nobody up, and can be cancelled") {
  TestServer server(EndlessAnswers());
  const auto slow_stub = v1::Generation::NewStub(server.NewChannel());
  grpc::ClientContext context;
  const auto slow = slow_stub->GenerateStream(&context, TextRequest("p"));
  CHECK(server.PollStats([](const auto& stats) { return stats.requests_running() == 1; }));
  for (int i = 0; i < 20; ++i) CheckNeighbour(server);
  context.TryCancel();
  CHECK(slow->Finish().error_code() == grpc::CANCELLED);
  CHECK(server.PollUntilIdle());
}

TEST_CASE("calls cancelled while their prompts are encoded or wait for it leave nothing behind") {
  Gate gate;
  TestServer server({.encode_gate = &gate});
  grpc::ClientContext first_context;
  const auto first = server.generation().GenerateStream(&first_context, TextRequest("being encoded"));
  gate.WaitUntilHeld();
  grpc::ClientContext second_context;
  const auto second = server.generation().GenerateStream(&second_context, TextRequest("in the queue"));
  second_context.TryCancel();
  first_context.TryCancel();
  CHECK(second->Finish().error_code() == grpc::CANCELLED);
  CHECK(first->Finish().error_code() == grpc::CANCELLED);
  gate.Open();
  CHECK(server.PollUntilIdle());
}

TEST_CASE("a call cancelled in the engine's queue ends") {
  Gate gate;
  TestServerOptions options = EndlessAnswers();
  options.max_num_seqs = 1;
  options.execute_gate = &gate;
  TestServer server(options);
  grpc::ClientContext running_context;
  const auto running = server.generation().GenerateStream(&running_context, TextRequest("running"));
  gate.WaitUntilHeld();
  grpc::ClientContext waiting_context;
  const auto waiting = server.generation().GenerateStream(&waiting_context, TextRequest("waiting"));
  v1::GenerateStreamResponse response;
  REQUIRE(waiting->Read(&response));  // accepted
  waiting_context.TryCancel();
  gate.Open();
  CHECK(waiting->Finish().error_code() == grpc::CANCELLED);
  running_context.TryCancel();
  CHECK(running->Finish().error_code() == grpc::CANCELLED);
  CHECK(server.PollUntilIdle());
}

TEST_CASE("unary calls can be cancelled too") {
  TestServer server(EndlessAnswers());
  grpc::ClientContext context;
  grpc::Status status;
  std::thread caller([&] {
    v1::GenerateResponse response;
    status = server.generation().Generate(&context, TextRequest("p"), &response);
  });
  CHECK(server.PollStats([](const auto& stats) { return stats.requests_running() == 1; }));
  context.TryCancel();
  caller.join();
  CHECK(status.error_code() == grpc::CANCELLED);
  CHECK(server.PollUntilIdle());
}

TEST_CASE("draining lets running requests finish and refuses new ones") {
  Gate gate;
  TestServer server({.execute_gate = &gate});
  grpc::ClientContext context;
  const auto reader = server.generation().GenerateStream(&context, TextRequest("p"));
  gate.WaitUntilHeld();
  std::thread shutdown([&server] { server.server().Shutdown(std::chrono::hours(1)); });
  grpc::Status refused;
  for (int i = 0; i < 20000 && refused.error_code() != grpc::UNAVAILABLE; ++i) {
    grpc::ClientContext late_context;
    late_context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
    v1::GenerateResponse response;
    refused = server.generation().Generate(&late_context, TextRequest("late"), &response);
  }
  CHECK(refused.error_code() == grpc::UNAVAILABLE);
  gate.Open();
  std::string text;
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) text += response.chunk().text();
  CHECK(reader->Finish().ok());
  CHECK(text == "hello");
  shutdown.join();
}

TEST_CASE("what has not finished when the drain's time is over ends with UNAVAILABLE") {
  TestServer server(EndlessAnswers());
  grpc::ClientContext context;
  const auto reader = server.generation().GenerateStream(&context, TextRequest("p"));
  ReadFirstChunk(*reader);
  std::thread shutdown([&server] { server.server().Shutdown(Duration::zero()); });
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) continue;
  CHECK(reader->Finish().error_code() == grpc::UNAVAILABLE);
  shutdown.join();
}

}  // namespace
}  // namespace quire::testing
