#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <thread>

#include "client/generation_client.h"
#include "client/load_call.h"

namespace quire {

// Calls over gRPC to a quire server. All share a completion queue, which one thread serves. (gRPC's callback API would
// do without a queue, but as of 1.51 it can abort when its last channel goes and another comes.)
class GrpcLoadTransport : public LoadTransport {
 public:
  // `client` outlives the transport.
  explicit GrpcLoadTransport(const GenerationClient& client);
  ~GrpcLoadTransport() override;

  std::unique_ptr<LoadCall> NewCall(const PlannedRequest& planned) override;

 private:
  const GenerationClient& client_;
  grpc::CompletionQueue queue_;
  std::thread server_;
};

}  // namespace quire
