#pragma once

#include <mutex>

namespace grpc {
class HealthCheckServiceInterface;
}  // namespace grpc

namespace quire {

// What health says, of the whole server and of each service: SERVING unless there is a reason not to. Thread-safe.
class ServingState {
 public:
  // Health is told from here on. `health` must outlive the other calls.
  void Start(grpc::HealthCheckServiceInterface* health);
  // For good.
  void SetDraining();
  void SetStalled(bool stalled);

  bool serving() const;
  bool stalled() const;

 private:
  // With mutex_ held.
  void Publish();

  mutable std::mutex mutex_;  // guards what follows, and the order in which health is told
  grpc::HealthCheckServiceInterface* health_ = nullptr;
  bool draining_ = false;
  bool stalled_ = false;
};

}  // namespace quire
