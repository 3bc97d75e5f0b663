// Connections: how many, and where from.
#include "server/grpc/grpc_listener.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "tests/server/test_server.h"

namespace quire::testing {
namespace {

// A new connection's channel, or null if it is closed before it is ready.
std::shared_ptr<grpc::Channel> TryConnect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_TRANSIENT_FAILURE) {
    channel->WaitForStateChange(state, std::chrono::system_clock::now() + std::chrono::seconds(10));
    state = channel->GetState(true);
  }
  return state == GRPC_CHANNEL_READY ? channel : nullptr;
}

TEST_CASE("connections past the limit are closed at once, those that are open go on, and one that ends makes room") {
  TestServerOptions options = EndlessAnswers();
  options.grpc_max_connections = 3;
  TestServer server(options);  // has one
  grpc::ClientContext context;
  const auto stream = server.generation().GenerateStream(&context, TextRequest("abc"));
  v1::GenerateStreamResponse message;
  REQUIRE(stream->Read(&message));
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 2; ++i) {
    channels.push_back(TryConnect(server.address()));
    REQUIRE(channels.back() != nullptr);
  }
  for (int i = 0; i < 20; ++i) CHECK(TryConnect(server.address()) == nullptr);
  CHECK(stream->Read(&message));
  channels.pop_back();
  // The server hears of the end in its own time.
  std::shared_ptr<grpc::Channel> next;
  for (int i = 0; i < 1000 && next == nullptr; ++i) next = TryConnect(server.address());
  CHECK(next != nullptr);
  CHECK(HealthOf(next, "") == grpc::health::v1::HealthCheckResponse::SERVING);
  context.TryCancel();
}

TEST_CASE("a host's name is listened on, and addresses that are not this machine's are refused by name") {
  const auto listener = GrpcListener::Bind("localhost:0");
  REQUIRE(listener.ok());
  CHECK((*listener)->address().starts_with("localhost:"));
  CHECK((*listener)->address() != "localhost:0");
  for (const char* address : {"192.0.2.1:0", "no-such-host.invalid:0", "localhost:port"}) {
    const absl::Status status = GrpcListener::Bind(address).status();
    CHECK(FieldOf(status) == "grpc_listen");
    CHECK(status.message().find(address) != std::string::npos);
  }
}

}  // namespace
}  // namespace quire::testing
