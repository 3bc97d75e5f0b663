#include "tests/server/connected_channel.h"

#include <chrono>
#include <stdexcept>

namespace quire::testing {

std::shared_ptr<grpc::Channel> ConnectedChannel(const std::string& address,
                                                const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  const std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(address, credentials, arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10))) {
    throw std::runtime_error("no connection to " + address);
  }
  return channel;
}

}  // namespace quire::testing
