#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <set>

#include "absl/status/statusor.h"
#include "engine/runtime/engine_builder.h"
#include "engine/runtime/engine_loop.h"
#include "quire/v1/cache.grpc.pb.h"
#include "server/generation/worker_pool.h"
#include "server/security/authenticator.h"

namespace quire {

class CacheWatch;

// quire.v1.Cache. Reading the counters may wait for a step's end, so it has its own thread.
class CacheService final : public v1::Cache::CallbackService {
 public:
  // `engine` and `authenticator` must outlive the service.
  CacheService(EngineLoop* engine, Authenticator* authenticator, const MemoryPlan& memory, const EngineInfo& info,
               const EngineConfig& config);
  ~CacheService() override;

  grpc::ServerUnaryReactor* GetCacheStats(grpc::CallbackServerContext* context, const v1::GetCacheStatsRequest* request,
                                          v1::CacheStats* response) override;
  grpc::ServerWriteReactor<v1::CacheStats>* WatchCacheStats(grpc::CallbackServerContext* context,
                                                            const v1::WatchCacheStatsRequest* request) override;

  grpc::ServerUnaryReactor* GetCacheConfig(grpc::CallbackServerContext* context,
                                           const v1::GetCacheConfigRequest* request,
                                           v1::CacheConfig* response) override;

  // What GetCacheStats answers. Waits for a step's end; UNAVAILABLE if none comes.
  absl::StatusOr<v1::CacheStats> ReadStats(bool with_requests) const;
  // The same as this caller may see it: of requests and tenants, an admin sees all, and others their own.
  absl::StatusOr<v1::CacheStats> ReadStatsFor(const Caller& caller, bool with_requests) const;
  // What GetCacheConfig answers.
  v1::CacheConfig ReadConfig() const;

  // Ends all watches, and those that come later, with UNAVAILABLE.
  void StopWatches();

 private:
  friend class CacheWatch;

  void Remove(CacheWatch* watch);

  EngineLoop* const engine_;
  Authenticator* const authenticator_;
  const MemoryPlan memory_;
  const EngineInfo info_;
  const EngineConfig config_;
  std::mutex mutex_;
  std::set<std::shared_ptr<CacheWatch>> watches_;  // guarded by mutex_
  bool stopped_ = false;                           // guarded by mutex_
  WorkerPool reader_;                              // last: its jobs use the rest
};

}  // namespace quire
