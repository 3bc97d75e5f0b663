#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <thread>

#include "client/load_call.h"
#include "quire/v1/generation.grpc.pb.h"

namespace quire {

// Calls over gRPC to a quire server. All share a completion queue, which one thread serves. (gRPC's callback API would
// do without a queue, but as of 1.51 it can abort when its last channel goes and another comes.)
class GrpcLoadTransport : public LoadTransport {
 public:
  // `stub` outlives the transport.
  GrpcLoadTransport(v1::Generation::Stub* stub, std::optional<double> timeout_seconds);
  ~GrpcLoadTransport() override;

  std::unique_ptr<LoadCall> NewCall(const PlannedRequest& planned) override;

 private:
  v1::Generation::Stub* const stub_;
  const std::optional<double> timeout_seconds_;
  grpc::CompletionQueue queue_;
  std::thread server_;
};

}  // namespace quire
