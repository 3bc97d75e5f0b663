#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace quire::testing {

// A channel of its own to the server at `address`, a connection that no other client shares, once it is connected: a
// single connect can fail on a loaded machine, and a call on a channel that is not ready fails with it. Throws after
// ten seconds without a connection.
std::shared_ptr<grpc::Channel> ConnectedChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials = grpc::InsecureChannelCredentials());

}  // namespace quire::testing
