#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>

#include "engine/runtime/engine_loop.h"
#include "quire/v1/admin.grpc.pb.h"
#include "server/generation/worker_pool.h"
#include "server/security/authenticator.h"

namespace quire {

// quire.v1.Admin, for admins. Clearing the cache waits for a step's end, so it has its own thread.
class AdminService final : public v1::Admin::CallbackService {
 public:
  // `engine` and `authenticator` must outlive the service. `start_draining` is called from gRPC's threads, any number
  // of times.
  AdminService(EngineLoop* engine, Authenticator* authenticator, std::function<void()> start_draining);

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context, const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;
  grpc::ServerUnaryReactor* ClearPrefixCache(grpc::CallbackServerContext* context,
                                             const v1::ClearPrefixCacheRequest* request,
                                             v1::ClearPrefixCacheResponse* response) override;

 private:
  // OK for an admin's call.
  absl::Status CheckAdmin(const grpc::CallbackServerContext& context) const;

  EngineLoop* const engine_;
  Authenticator* const authenticator_;
  const std::function<void()> start_draining_;
  WorkerPool worker_;  // last: its jobs use the rest
};

}  // namespace quire
