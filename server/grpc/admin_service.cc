#include "server/grpc/admin_service.h"

#include <chrono>
#include <utility>

#include "engine/base/log.h"
#include "engine/base/status.h"
#include "server/grpc/grpc_call.h"
#include "server/grpc/status_translation.h"

namespace quire {
namespace {

constexpr size_t kMaxQueuedClears = 16;

}  // namespace

AdminService::AdminService(EngineLoop* engine, Authenticator* authenticator, std::function<void()> start_draining)
    : engine_(engine),
      authenticator_(authenticator),
      start_draining_(std::move(start_draining)),
      worker_(1, kMaxQueuedClears) {}

grpc::ServerUnaryReactor* AdminService::Drain(grpc::CallbackServerContext* context, const v1::DrainRequest*,
                                              v1::DrainResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (const absl::Status status = CheckAdmin(*context); !status.ok()) {
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }
  log::Info("asked to drain: no new requests from now on");
  start_draining_();
  response->set_open_requests(engine_->num_open_requests());
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::ClearPrefixCache(grpc::CallbackServerContext* context,
                                                         const v1::ClearPrefixCacheRequest*,
                                                         v1::ClearPrefixCacheResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (const absl::Status status = CheckAdmin(*context); !status.ok()) {
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }
  const bool queued = worker_.TryPost([this, reactor, response] {
    response->set_blocks_freed(engine_->ClearPrefixCache());
    log::Info("asked to forget cached prefixes: {} blocks are free now", response->blocks_freed());
    reactor->Finish(grpc::Status::OK);
  });
  if (!queued) {
    reactor->Finish(
        ToGrpcStatus(Overloaded("the prefix cache is being cleared several times at once", std::chrono::seconds(1))));
  }
  return reactor;
}

absl::Status AdminService::CheckAdmin(const grpc::CallbackServerContext& context) const {
  QUIRE_ASSIGN_OR_RETURN(const Caller caller, authenticator_->Authenticate(OriginOf(context)));
  return RequireAdmin(caller);
}

}  // namespace quire
