#pragma once

#include <grpcpp/support/server_callback.h>

#include "quire/v1/admin.grpc.pb.h"

namespace quire {

// quire.v1.Admin: its methods are part of the API and answer UNIMPLEMENTED with what to do instead.
class AdminService final : public v1::Admin::CallbackService {
 public:
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context, const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;
  grpc::ServerUnaryReactor* ClearPrefixCache(grpc::CallbackServerContext* context,
                                             const v1::ClearPrefixCacheRequest* request,
                                             v1::ClearPrefixCacheResponse* response) override;
};

}  // namespace quire
