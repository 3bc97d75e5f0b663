#include "tests/server/storm/storm_call.h"

#include <utility>

namespace quire::testing {

void StormCall::Start(v1::Generation::Stub* stub, Timer* timer, CallPlan plan,
                      std::function<void(const CallEnd&)> on_end) {
  auto* call = new StormCall(timer, std::move(plan), std::move(on_end));
  timer->After(std::chrono::duration<double>(call->plan_.cancel_after_seconds), [life = call->life_] {
    const std::lock_guard lock(life->mutex);
    if (life->context != nullptr) life->context->TryCancel();
  });
  stub->async()->GenerateStream(&call->context_, &call->plan_.request, call);
  // Reads that a timer starts come from outside the reactor's callbacks: it must not end between them.
  call->AddHold();
  call->ReadNext();
  call->StartCall();
}

StormCall::StormCall(Timer* timer, CallPlan plan, std::function<void(const CallEnd&)> on_end)
    : timer_(timer), plan_(std::move(plan)), on_end_(std::move(on_end)) {
  life_->context = &context_;
}

void StormCall::ReadNext() {
  if (plan_.read_delay_seconds == 0) {
    StartRead(&message_);
  } else {
    timer_->After(std::chrono::duration<double>(plan_.read_delay_seconds), [this] { StartRead(&message_); });
  }
}

void StormCall::OnReadDone(bool ok) {
  if (!ok) {
    RemoveHold();
    return;
  }
  TakeMessage();
  ReadNext();
}

void StormCall::TakeMessage() {
  if (num_finished_ > 0) SetFault("a message after `finished`");
  if (message_.has_started()) {
    ++num_started_;
  } else if (num_started_ != 1) {
    SetFault("a message before `started`");
  }
  if (message_.has_chunk()) end_.num_tokens += message_.chunk().token_ids_size();
  if (!message_.has_finished()) return;
  ++num_finished_;
  const v1::StreamFinished& finished = message_.finished();
  if (finished.finish_reason() == v1::FINISH_REASON_UNSPECIFIED) SetFault("no finish reason");
  if (finished.usage().completion_tokens() != end_.num_tokens) SetFault("other usage than tokens were sent");
}

void StormCall::OnDone(const grpc::Status& status) {
  {
    const std::lock_guard lock(life_->mutex);
    life_->context = nullptr;
  }
  end_.status = status;
  if (status.ok() && num_finished_ != 1) SetFault("OK without `finished`");
  if (!status.ok() && num_finished_ != 0 && status.error_code() != grpc::StatusCode::CANCELLED) {
    SetFault("`finished`, and then " + status.error_message());
  }
  on_end_(end_);
  delete this;
}

void StormCall::SetFault(const std::string& fault) {
  if (end_.fault.empty()) end_.fault = fault;
}

}  // namespace quire::testing
