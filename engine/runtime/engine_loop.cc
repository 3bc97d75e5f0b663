#include "engine/runtime/engine_loop.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/runtime/engine_config.h"
#include "engine/runtime/request_validation.h"

namespace quire {
namespace {

constexpr std::chrono::milliseconds kDrainingRetryDelay(1000);
constexpr std::chrono::milliseconds kStatsRetryDelay(1000);

Histogram ReleaseStepsHistogram() { return Histogram({0, 1, 2, 4, 8}); }

Histogram ReleaseSecondsHistogram() {
  return Histogram({0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10});
}

}  // namespace

EngineLoop::EngineLoop(std::unique_ptr<Engine> engine, const QueueLimits& queue_limits)
    : engine_(std::move(engine)),
      queue_limits_(queue_limits),
      release_steps_(ReleaseStepsHistogram()),
      release_seconds_(ReleaseSecondsHistogram()),
      limits_(std::make_shared<const EngineLimits>(engine_->limits())),
      num_free_seats_(engine_->num_free_seats()),
      drain_rate_(engine_->clock().Now()),
      thread_([this] { Run(); }) {}

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
  const std::shared_ptr<const EngineLimits> seen_limits = limits();
  QUIRE_RETURN_IF_ERROR(ValidateRequest(request, *seen_limits));
  if (request.deadline && *request.deadline <= engine_->clock().Now()) {
    return absl::DeadlineExceededError("the request's deadline had passed when it arrived");
  }
  RequestId id{};
  {
    const std::lock_guard lock(mutex_);
    if (draining_ || stopping_) {
      return Unavailable("the server is draining and takes no new requests", kDrainingRetryDelay);
    }
    // Tenants' limits have changed since: the engine will know the new ones when it takes the request.
    if (limits_ != seen_limits) QUIRE_RETURN_IF_ERROR(ValidateRequest(request, *limits_));
    QUIRE_RETURN_IF_ERROR(CheckRoom(request));
    ++num_open_by_tenant_[request.tenant];
    ++unpublished_.num_requests;
    unpublished_.num_tokens += static_cast<int64_t>(request.prompt_token_ids.size());
    // Under the lock, so that ids are in the order of arrival in the inbox.
    id = RequestId{++num_accepted_requests_};
    inbox_.push_back(AddCommand{id, std::move(request)});
  }
  inbox_changed_.notify_one();
  return id;
}

absl::Status EngineLoop::CheckRoom(const GenerationRequest& request) const {
  const QueueState queue = CountWaiting(waiting_, unpublished_, num_free_seats_, drain_rate_.tokens_per_second());
  QueueCandidate candidate = {.num_tokens = static_cast<int64_t>(request.prompt_token_ids.size()),
                              .priority = request.priority,
                              .is_newcomer = !num_open_by_tenant_.contains(request.tenant),
                              .seconds_to_deadline = std::nullopt};
  if (request.deadline) candidate.seconds_to_deadline = ToSeconds(*request.deadline - engine_->clock().Now());
  return CheckQueue(queue_limits_, queue, candidate);
}

void EngineLoop::Cancel(RequestId id, absl::Status status) {
  PostEnd(CancelCommand{.id = id, .status = std::move(status)});
}

void EngineLoop::Finish(RequestId id, FinishReason reason, int64_t num_output_tokens) {
  PostEnd(FinishCommand{.id = id, .reason = reason, .num_output_tokens = num_output_tokens});
}

void EngineLoop::CancelAll(absl::Status status) { Post(CancelAllCommand{std::move(status)}); }

absl::Status EngineLoop::SetTenantLimits(TenantLimitsByName tenants) {
  QUIRE_RETURN_IF_ERROR(ValidateTenants(tenants));
  {
    const std::lock_guard lock(mutex_);
    auto limits = std::make_shared<EngineLimits>(*limits_);
    limits->tenants = tenants;
    limits_ = std::move(limits);
    // Under the same lock: requests stand in the inbox behind the limits that they were validated with.
    inbox_.push_back(TenantLimitsCommand{std::move(tenants)});
  }
  inbox_changed_.notify_one();
  return absl::OkStatus();
}

std::shared_ptr<const EngineLimits> EngineLoop::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

EngineStats EngineLoop::GetStats(bool with_requests) { return AskForStats(with_requests).get(); }

absl::StatusOr<EngineStats> EngineLoop::GetStats(bool with_requests, Duration timeout) {
  std::future<EngineStats> answer = AskForStats(with_requests);
  if (answer.wait_for(timeout) == std::future_status::ready) return answer.get();
  return Unavailable(StrCat("the engine has not ended a step for ", ToSeconds(timeout), " s"), kStatsRetryDelay);
}

std::future<EngineStats> EngineLoop::AskForStats(bool with_requests) {
  StatsCommand command{with_requests, {}};
  std::future<EngineStats> answer = command.answer.get_future();
  Post(std::move(command));
  return answer;
}

int64_t EngineLoop::ClearPrefixCache() {
  ClearPrefixCacheCommand command;
  std::future<int64_t> num_freed_blocks = command.num_freed_blocks.get_future();
  Post(std::move(command));
  return num_freed_blocks.get();
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

EngineProgress EngineLoop::progress() const {
  return {.num_steps = num_steps(),
          .num_open_requests = num_open_requests(),
          .stage = stage_.load(std::memory_order_relaxed),
          .predicted_step_seconds = predicted_step_seconds_.load(std::memory_order_relaxed)};
}

EngineLoad EngineLoop::load() const {
  const std::lock_guard lock(mutex_);
  return {.kv_cache_use = kv_cache_use_,
          .num_running_requests = engine_->max_num_seqs() - num_free_seats_,
          .num_waiting_requests = waiting_.num_requests + unpublished_.num_requests,
          .max_running_requests = engine_->max_num_seqs()};
}

void EngineLoop::Post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(command));
  }
  inbox_changed_.notify_one();
}

template <typename EndCommand>
void EngineLoop::PostEnd(EndCommand command) {
  {
    const std::lock_guard lock(mutex_);
    command.stamp = {engine_->clock().Now(), num_steps()};
    inbox_.push_back(std::move(command));
  }
  inbox_changed_.notify_one();
}

void EngineLoop::Run() {
  engine_->SetObserver(this);
  std::vector<Command> commands;
  bool was_busy = false;
  while (TakeCommands(&commands)) {
    for (Command& command : commands) Execute(command);
    commands.clear();
    if (engine_->Step() != StepOutcome::kIdle) {
      was_busy = true;
      step_times_.End(engine_->clock().Now(), engine_->num_step_tokens());
    } else if (std::exchange(was_busy, false)) {
      engine_->CheckInvariants();  // affordable now; violations are logged and counted
    }
    PublishProgress();
  }
  // What was posted before the stop is answered too.
  for (Command& command : commands) Execute(command);
  engine_->CancelAll(absl::UnavailableError("the server is stopping"));
  PublishProgress();
  engine_->SetObserver(nullptr);
}

bool EngineLoop::TakeCommands(std::vector<Command>* commands) {
  std::unique_lock lock(mutex_);
  inbox_changed_.wait(lock, [this] { return stopping_ || !inbox_.empty() || engine_->HasWork(); });
  commands->swap(inbox_);
  return !stopping_;
}

void EngineLoop::Execute(Command& command) {
  std::visit([this](auto& alternative) { Execute(alternative); }, command);
}

void EngineLoop::Execute(AddCommand& command) {
  ++taken_.num_requests;
  taken_.num_tokens += static_cast<int64_t>(command.request.prompt_token_ids.size());
  engine_->AddRequest(command.id, std::move(command.request));
}

void EngineLoop::Execute(CancelCommand& command) {
  const int64_t num_finished_before = engine_->num_finished_requests();
  engine_->Cancel(command.id, command.status);
  if (engine_->num_finished_requests() != num_finished_before) ObserveRelease(command.stamp);
}

void EngineLoop::Execute(FinishCommand& command) {
  const int64_t num_finished_before = engine_->num_finished_requests();
  engine_->Finish(command.id, command.reason, command.num_output_tokens);
  if (engine_->num_finished_requests() != num_finished_before) ObserveRelease(command.stamp);
}

void EngineLoop::Execute(CancelAllCommand& command) { engine_->CancelAll(command.status); }

void EngineLoop::Execute(TenantLimitsCommand& command) { engine_->SetTenantLimits(std::move(command.tenants)); }

void EngineLoop::Execute(StatsCommand& command) {
  EngineStats stats = engine_->Stats(command.with_requests);
  stats.release_steps = release_steps_;
  stats.release_seconds = release_seconds_;
  stats.steps = step_times_.summary();
  {
    const std::lock_guard lock(mutex_);
    stats.drained_tokens_per_second = drain_rate_.tokens_per_second();
  }
  command.answer.set_value(std::move(stats));
}

void EngineLoop::Execute(ClearPrefixCacheCommand& command) {
  command.num_freed_blocks.set_value(engine_->ClearPrefixCache());
}

// The blocks are free now: the engine has just executed the command.
void EngineLoop::ObserveRelease(const Stamp& stamp) {
  release_steps_.Add(static_cast<double>(engine_->num_steps() - stamp.num_steps));
  release_seconds_.Add(ToSeconds(engine_->clock().Now() - stamp.time));
}

void EngineLoop::OnEnd(const std::string& tenant) {
  const std::lock_guard lock(mutex_);
  const auto open = num_open_by_tenant_.find(tenant);
  if (--open->second == 0) num_open_by_tenant_.erase(open);
}

// Deadlines are looked at before every step, so that one which passed during the last step has cost that one.
void EngineLoop::OnDeadlineExpired(TimePoint deadline) {
  release_steps_.Add(deadline < step_ended_ ? 1 : 0);
  release_seconds_.Add(ToSeconds(engine_->clock().Now() - deadline));
}

void EngineLoop::OnStage(StepStage stage) {
  stage_.store(stage, std::memory_order_relaxed);
  step_times_.Enter(stage, engine_->clock().Now());
  // As soon as it is settled who waits, not only after the step.
  if (stage == StepStage::kExecute) PublishQueue();
}

void EngineLoop::PublishQueue() {
  const QueuedWork now_waiting = {engine_->num_waiting(), engine_->num_waiting_tokens()};
  const TimePoint now = engine_->clock().Now();
  const std::lock_guard lock(mutex_);
  // Preempted requests come back to the queue: then less has left it than was admitted.
  const int64_t num_left_tokens =
      std::max<int64_t>(0, waiting_.num_tokens + taken_.num_tokens - now_waiting.num_tokens);
  // Requests that are admitted as soon as they come say nothing about how fast a queue empties.
  drain_rate_.Observe(now, num_left_tokens, /*was_waiting=*/waiting_.num_requests > 0);
  waiting_ = now_waiting;
  num_free_seats_ = engine_->num_free_seats();
  kv_cache_use_ = engine_->kv_cache_use();
  unpublished_.num_requests -= taken_.num_requests;
  unpublished_.num_tokens -= taken_.num_tokens;
  taken_ = {};
}

void EngineLoop::PublishProgress() {
  PublishQueue();
  step_ended_ = engine_->clock().Now();
  stage_.store(StepStage::kBetweenSteps, std::memory_order_relaxed);
  predicted_step_seconds_.store(engine_->predicted_step_seconds(), std::memory_order_relaxed);
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
