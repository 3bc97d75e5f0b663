#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "quire/v1/generation.grpc.pb.h"
#include "tests/server/storm/timer.h"

namespace quire::testing {

// What one call of the storm does.
struct CallPlan {
  v1::GenerateRequest request;
  double cancel_after_seconds = 0;
  double read_delay_seconds = 0;  // before each message is read
};

// How one call ended. Empty `fault`: as it should.
struct CallEnd {
  grpc::Status status;
  std::string fault;
  int64_t num_tokens = 0;
};

// One GenerateStream call, driven by gRPC's callbacks; deletes itself after `on_end`, which is called once.
class StormCall : public grpc::ClientReadReactor<v1::GenerateStreamResponse> {
 public:
  static void Start(v1::Generation::Stub* stub, Timer* timer, CallPlan plan,
                    std::function<void(const CallEnd&)> on_end);

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  StormCall(Timer* timer, CallPlan plan, std::function<void(const CallEnd&)> on_end);
  void ReadNext();
  void TakeMessage();
  void SetFault(const std::string& fault);

  // A cancellation that comes late must find no dead call.
  struct Life {
    std::mutex mutex;
    grpc::ClientContext* context = nullptr;
  };

  Timer* timer_;
  const CallPlan plan_;
  const std::function<void(const CallEnd&)> on_end_;
  grpc::ClientContext context_;
  const std::shared_ptr<Life> life_ = std::make_shared<Life>();
  v1::GenerateStreamResponse message_;
  int64_t num_started_ = 0;
  int64_t num_finished_ = 0;
  CallEnd end_;
};

}  // namespace quire::testing
