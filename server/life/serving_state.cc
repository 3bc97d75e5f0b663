#include "server/life/serving_state.h"

#include <grpcpp/health_check_service_interface.h>

#include "grpc/health/v1/health.grpc.pb.h"
#include "inference/open_inference.grpc.pb.h"
#include "quire/v1/admin.grpc.pb.h"
#include "quire/v1/cache.grpc.pb.h"
#include "quire/v1/generation.grpc.pb.h"

namespace quire {

void ServingState::Start(grpc::HealthCheckServiceInterface* health) {
  const std::lock_guard lock(mutex_);
  health_ = health;
  Publish();
}

void ServingState::SetDraining() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  Publish();
}

void ServingState::SetStalled(bool stalled) {
  const std::lock_guard lock(mutex_);
  stalled_ = stalled;
  Publish();
}

bool ServingState::serving() const {
  const std::lock_guard lock(mutex_);
  return !draining_ && !stalled_;
}

bool ServingState::stalled() const {
  const std::lock_guard lock(mutex_);
  return stalled_;
}

void ServingState::Publish() {
  if (health_ == nullptr) return;
  const bool serving = !draining_ && !stalled_;
  health_->SetServingStatus(serving);  // the whole server, whose name is empty
  for (const char* service :
       {v1::Generation::service_full_name(), v1::Cache::service_full_name(), v1::Admin::service_full_name(),
        inference::GRPCInferenceService::service_full_name(), grpc::health::v1::Health::service_full_name()}) {
    health_->SetServingStatus(service, serving);
  }
}

}  // namespace quire
