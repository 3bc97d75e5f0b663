#include "server/admin_service.h"

#include "server/status_translation.h"

namespace quire {
namespace {

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const char* message) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(absl::UnimplementedError(message)));
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::Drain(grpc::CallbackServerContext* context, const v1::DrainRequest*,
                                              v1::DrainResponse*) {
  return Refuse(context, "Drain is not available in this version: send SIGTERM to the server's process");
}

grpc::ServerUnaryReactor* AdminService::ClearPrefixCache(grpc::CallbackServerContext* context,
                                                         const v1::ClearPrefixCacheRequest*,
                                                         v1::ClearPrefixCacheResponse*) {
  return Refuse(context, "ClearPrefixCache is not available in this version: restart the server");
}

}  // namespace quire
