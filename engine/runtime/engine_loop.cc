#include "engine/runtime/engine_loop.h"

#include <chrono>
#include <type_traits>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/base/strings.h"
#include "engine/runtime/request_validation.h"

namespace quire {
namespace {

constexpr std::chrono::milliseconds kRetryDelay(1000);

}  // namespace

EngineLoop::EngineLoop(std::unique_ptr<Engine> engine, int64_t max_open_requests)
    : engine_(std::move(engine)), max_open_requests_(max_open_requests), thread_([this] { Run(); }) {}

EngineLoop::~EngineLoop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  inbox_changed_.notify_one();
  thread_.join();
}

absl::StatusOr<RequestId> EngineLoop::Submit(GenerationRequest request) {
  QUIRE_CHECK(request.sink != nullptr);
  QUIRE_RETURN_IF_ERROR(ValidateRequest(request, engine_->limits()));
  if (request.deadline && *request.deadline <= engine_->clock().Now()) {
    return absl::DeadlineExceededError("the request's deadline had passed when it arrived");
  }
  RequestId id{};
  {
    const std::lock_guard lock(mutex_);
    if (draining_ || stopping_) return Unavailable("the server is draining and takes no new requests", kRetryDelay);
    const int64_t num_open = static_cast<int64_t>(num_accepted_requests_) - num_finished_requests_;
    if (num_open >= max_open_requests_) {
      return Overloaded(
          StrCat("the queue is full: ", num_open, " requests wait or run, at most ", max_open_requests_, " may"),
          kRetryDelay);
    }
    // Under the lock, so that ids are in the order of arrival in the inbox.
    id = RequestId{++num_accepted_requests_};
    inbox_.push_back(AddCommand{id, std::move(request)});
  }
  inbox_changed_.notify_one();
  return id;
}

void EngineLoop::Cancel(RequestId id, absl::Status status) { Post(CancelCommand{id, std::move(status)}); }

void EngineLoop::Finish(RequestId id, FinishReason reason, int64_t num_output_tokens) {
  Post(FinishCommand{id, reason, num_output_tokens});
}

void EngineLoop::CancelAll(absl::Status status) { Post(CancelAllCommand{std::move(status)}); }

EngineStats EngineLoop::GetStats(bool with_requests) {
  StatsCommand command{with_requests, {}};
  std::future<EngineStats> answer = command.answer.get_future();
  Post(std::move(command));
  return answer.get();
}

void EngineLoop::StartDraining() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

bool EngineLoop::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

bool EngineLoop::WaitUntilIdle(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  return became_idle_.wait_until(
      lock, deadline, [this] { return static_cast<int64_t>(num_accepted_requests_) == num_finished_requests_; });
}

int64_t EngineLoop::num_open_requests() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(num_accepted_requests_) - num_finished_requests_;
}

void EngineLoop::Post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(command));
  }
  inbox_changed_.notify_one();
}

void EngineLoop::Run() {
  std::vector<Command> commands;
  bool was_busy = false;
  while (TakeCommands(&commands)) {
    for (Command& command : commands) Execute(command);
    commands.clear();
    if (engine_->Step() != StepOutcome::kIdle) {
      was_busy = true;
    } else if (std::exchange(was_busy, false)) {
      engine_->CheckInvariants();  // affordable now; violations are logged and counted
    }
    PublishProgress();
  }
  // What was posted before the stop is answered too.
  for (Command& command : commands) Execute(command);
  engine_->CancelAll(absl::UnavailableError("the server is stopping"));
  PublishProgress();
}

bool EngineLoop::TakeCommands(std::vector<Command>* commands) {
  std::unique_lock lock(mutex_);
  inbox_changed_.wait(lock, [this] { return stopping_ || !inbox_.empty() || engine_->HasWork(); });
  commands->swap(inbox_);
  return !stopping_;
}

void EngineLoop::Execute(Command& command) {
  std::visit(
      [this](auto& c) {
        using T = std::decay_t<decltype(c)>;
        if constexpr (std::is_same_v<T, AddCommand>) {
          engine_->AddRequest(c.id, std::move(c.request));
        } else if constexpr (std::is_same_v<T, CancelCommand>) {
          engine_->Cancel(c.id, c.status);
        } else if constexpr (std::is_same_v<T, FinishCommand>) {
          engine_->Finish(c.id, c.reason, c.num_output_tokens);
        } else if constexpr (std::is_same_v<T, CancelAllCommand>) {
          engine_->CancelAll(c.status);
        } else {
          c.answer.set_value(engine_->Stats(c.with_requests));
        }
      },
      command);
}

void EngineLoop::PublishProgress() {
  num_steps_.store(engine_->num_steps(), std::memory_order_relaxed);
  bool is_idle = false;
  {
    const std::lock_guard lock(mutex_);
    num_finished_requests_ = engine_->num_finished_requests();
    is_idle = static_cast<int64_t>(num_accepted_requests_) == num_finished_requests_;
  }
  if (is_idle) became_idle_.notify_all();
}

}  // namespace quire
