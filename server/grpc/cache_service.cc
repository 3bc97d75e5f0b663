#include "server/grpc/cache_service.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/base/status.h"
#include "server/grpc/grpc_call.h"
#include "server/grpc/status_translation.h"
#include "server/messages/cache_translation.h"

namespace quire {
namespace {

constexpr double kMinIntervalSeconds = 0.05;
constexpr double kMaxIntervalSeconds = 3600;
constexpr double kDefaultIntervalSeconds = 1;
constexpr size_t kMaxQueuedReads = 1024;
// Longer than any step of an engine that works.
constexpr std::chrono::seconds kReadTimeout(30);

absl::Status TooManyReads() { return Overloaded("too many statistics are asked for at once", std::chrono::seconds(1)); }

absl::Status Stopping() { return Unavailable("the server is shutting down", std::chrono::seconds(5)); }

}  // namespace

// One WatchCacheStats call: reads, writes and sleeps in turn. Whichever of the three is under way when the watch is
// stopped finishes the call at its end, so Finish is called once and nothing is in flight then.
class CacheWatch : public grpc::ServerWriteReactor<v1::CacheStats>, public std::enable_shared_from_this<CacheWatch> {
 public:
  CacheWatch(CacheService* service, Caller caller, double interval_seconds, bool with_requests)
      : service_(service),
        caller_(std::move(caller)),
        interval_(std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::chrono::duration<double>(interval_seconds))),
        with_requests_(with_requests) {}

  void Read() {
    service_->reader_.Post([self = shared_from_this()] {
      absl::StatusOr<v1::CacheStats> stats = self->service_->ReadStatsFor(self->caller_, self->with_requests_);
      if (!stats.ok()) self->Stop(stats.status());
      if (self->FinishIfStopped()) return;
      self->stats_ = *std::move(stats);
      self->StartWrite(&self->stats_);
    });
  }

  void Stop(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!stop_status_) stop_status_ = status;
    alarm_.Cancel();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) Stop(absl::CancelledError("the caller is gone"));
    if (FinishIfStopped()) return;
    const std::lock_guard lock(mutex_);
    // A stop since the check above cancels this alarm, or has been seen here.
    const auto wait = stop_status_ ? std::chrono::system_clock::duration::zero() : interval_;
    // The alarm keeps its function after the call, so a shared pointer in it would keep the watch for ever.
    alarm_.Set(std::chrono::system_clock::now() + wait, [this](bool) {
      if (!FinishIfStopped()) Read();
    });
  }

  void OnCancel() override { Stop(absl::CancelledError("the caller cancelled the call")); }
  void OnDone() override { service_->Remove(this); }

 private:
  bool FinishIfStopped() {
    std::optional<absl::Status> status;
    {
      const std::lock_guard lock(mutex_);
      status = stop_status_;
    }
    if (status) Finish(ToGrpcStatus(*status));
    return status.has_value();
  }

  CacheService* const service_;
  const Caller caller_;
  const std::chrono::system_clock::duration interval_;
  const bool with_requests_;
  v1::CacheStats stats_;  // of the write in flight
  std::mutex mutex_;
  std::optional<absl::Status> stop_status_;  // guarded by mutex_
  grpc::Alarm alarm_;                        // set and cancelled under mutex_
};

namespace {

class RefusedWatch : public grpc::ServerWriteReactor<v1::CacheStats> {
 public:
  explicit RefusedWatch(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

CacheService::CacheService(EngineLoop* engine, Authenticator* authenticator, const MemoryPlan& memory,
                           const EngineInfo& info, const EngineConfig& config)
    : engine_(engine),
      authenticator_(authenticator),
      memory_(memory),
      info_(info),
      config_(config),
      reader_(1, kMaxQueuedReads) {}

CacheService::~CacheService() = default;

grpc::ServerUnaryReactor* CacheService::GetCacheStats(grpc::CallbackServerContext* context,
                                                      const v1::GetCacheStatsRequest* request,
                                                      v1::CacheStats* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::StatusOr<Caller> caller = authenticator_->Authenticate(OriginOf(*context));
  if (!caller.ok()) {
    reactor->Finish(ToGrpcStatus(caller.status()));
    return reactor;
  }
  const bool queued =
      reader_.TryPost([this, reactor, response, caller = *caller, with_requests = request->include_requests()] {
        absl::StatusOr<v1::CacheStats> stats = ReadStatsFor(caller, with_requests);
        if (stats.ok()) *response = *std::move(stats);
        reactor->Finish(ToGrpcStatus(stats.status()));
      });
  if (!queued) reactor->Finish(ToGrpcStatus(TooManyReads()));
  return reactor;
}

grpc::ServerWriteReactor<v1::CacheStats>* CacheService::WatchCacheStats(grpc::CallbackServerContext* context,
                                                                        const v1::WatchCacheStatsRequest* request) {
  absl::StatusOr<Caller> caller = authenticator_->Authenticate(OriginOf(*context));
  if (!caller.ok()) return new RefusedWatch(caller.status());
  const double interval_seconds =
      request->has_interval_seconds() ? request->interval_seconds() : kDefaultIntervalSeconds;
  // Written so that NaN fails it.
  if (!(interval_seconds >= kMinIntervalSeconds && interval_seconds <= kMaxIntervalSeconds)) {
    return new RefusedWatch(InvalidArgument("interval_seconds", interval_seconds, "[0.05, 3600]"));
  }
  auto watch = std::make_shared<CacheWatch>(this, *std::move(caller), interval_seconds, request->include_requests());
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return new RefusedWatch(Stopping());
    watches_.insert(watch);
  }
  watch->Read();
  return watch.get();
}

grpc::ServerUnaryReactor* CacheService::GetCacheConfig(grpc::CallbackServerContext* context,
                                                       const v1::GetCacheConfigRequest*, v1::CacheConfig* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::Status status = authenticator_->Authenticate(OriginOf(*context)).status();
  if (status.ok()) *response = ReadConfig();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

void CacheService::StopWatches() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const std::shared_ptr<CacheWatch>& watch : watches_) watch->Stop(Stopping());
}

absl::StatusOr<v1::CacheStats> CacheService::ReadStats(bool with_requests) const {
  QUIRE_ASSIGN_OR_RETURN(const EngineStats stats, engine_->GetStats(with_requests, kReadTimeout));
  return ToProto(stats, memory_, info_);
}

absl::StatusOr<v1::CacheStats> CacheService::ReadStatsFor(const Caller& caller, bool with_requests) const {
  QUIRE_ASSIGN_OR_RETURN(v1::CacheStats stats, ReadStats(with_requests));
  if (caller.is_admin) return stats;
  const auto is_of_another = [&caller](const auto& row) { return row.tenant() != caller.tenant; };
  auto& requests = *stats.mutable_requests();
  requests.erase(std::remove_if(requests.begin(), requests.end(), is_of_another), requests.end());
  auto& tenants = *stats.mutable_tenants();
  tenants.erase(std::remove_if(tenants.begin(), tenants.end(), is_of_another), tenants.end());
  return stats;
}

v1::CacheConfig CacheService::ReadConfig() const { return ToProto(config_, memory_, info_); }

void CacheService::Remove(CacheWatch* watch) {
  // Destroyed past the lock, unless its last job still holds it.
  std::shared_ptr<CacheWatch> removed = watch->shared_from_this();
  const std::lock_guard lock(mutex_);
  watches_.erase(removed);
}

}  // namespace quire
