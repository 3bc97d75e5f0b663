#include "engine/runtime/engine.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/base/strings.h"
#include "engine/sampling/rng.h"
#include "engine/scheduler/scheduler_invariants.h"

namespace quire {
namespace {

constexpr int64_t kAllTokens = std::numeric_limits<int64_t>::max();

bool Contains(const std::vector<TokenId>& tokens, TokenId token) {
  return std::ranges::find(tokens, token) != tokens.end();
}

// Tells tenants and salts apart, however they are written.
std::shared_ptr<const std::string> CacheNamespace(const GenerationRequest& request) {
  return std::make_shared<const std::string>(StrCat(request.tenant.size(), ":", request.tenant, request.cache_salt));
}

std::unique_ptr<Request> MakeRequest(RequestId id, GenerationRequest&& request, const EngineLimits& limits) {
  auto made = std::make_unique<Request>();
  made->id = id;
  made->max_tokens = ResolveMaxTokens(request, limits);
  made->cache_namespace = CacheNamespace(request);
  made->reads_prefix_cache = !request.skip_reading_prefix_cache;
  made->priority = request.priority;
  made->label = std::move(request.label);
  made->tenant = std::move(request.tenant);
  made->token_ids = std::move(request.prompt_token_ids);
  made->num_prompt_tokens = made->num_tokens();
  made->sampling = std::move(request.sampling);
  made->deadline = request.deadline;
  made->arrival_time = request.arrival_time;
  made->sink = std::move(request.sink);
  return made;
}

GenerationResult MakeResult(const Request& request, const absl::Status& status, FinishReason reason, TimePoint now) {
  const auto since_arrival = [&](const std::optional<TimePoint>& time) {
    return time ? ToSeconds(*time - request.arrival_time) : 0.0;
  };
  GenerationResult result;
  result.status = status;
  result.finish_reason = reason;
  result.num_prompt_tokens = request.num_prompt_tokens;
  result.num_output_tokens = request.num_output_tokens();
  result.num_cached_prompt_tokens = std::min(request.num_first_cached_tokens, request.num_prompt_tokens);
  result.num_preemptions = request.num_preemptions;
  // One that was never scheduled has been in the queue until now.
  result.timings.queue_seconds = since_arrival(request.first_scheduled_time.value_or(now));
  result.timings.time_to_first_token_seconds = since_arrival(request.first_token_time);
  result.timings.total_seconds = since_arrival(now);
  return result;
}

}  // namespace

Engine::Engine(EngineDependencies dependencies)
    : clock_(dependencies.clock),
      kv_cache_(std::move(dependencies.kv_cache)),
      scheduler_(std::move(dependencies.scheduler)),
      model_runner_(std::move(dependencies.model_runner)),
      limits_{.vocab_size = model_runner_->vocab_size(),
              .fit = scheduler_->fit_limits(),
              .tenants = scheduler_->config().tenants},
      end_of_generation_ids_(std::move(dependencies.end_of_generation_ids)),
      seed_(dependencies.seed),
      sampler_(model_runner_.get()) {}

Engine::~Engine() { CancelAll(absl::UnavailableError("the engine is stopping")); }

void Engine::SetTenantLimits(TenantLimitsByName tenants) {
  limits_.tenants = tenants;
  scheduler_->SetTenantLimits(std::move(tenants));
}

void Engine::AddRequest(RequestId id, GenerationRequest request) {
  const uint64_t seed = request.sampling.seed.value_or(RandomBits(seed_, static_cast<uint64_t>(id)));
  sampler_.Add(id, request.sampling, seed, std::move(request.constraint));
  std::unique_ptr<Request> made = MakeRequest(id, std::move(request), limits_);
  const std::shared_ptr<TokenSink> sink = made->sink;
  const std::string tenant = made->tenant;
  const absl::Status added = scheduler_->AddRequest(std::move(made));
  if (added.ok()) return;
  // Validation and scheduler disagree about what fits: still an answer, not a lost request.
  log::Error("a validated request was refused: {}", std::string(added.message()));
  sampler_.Remove(id);
  ++num_finished_requests_;
  if (observer_ != nullptr) observer_->OnEnd(tenant);
  GenerationResult result;
  result.status = added;
  sink->OnFinish(result);
}

void Engine::Cancel(RequestId id, const absl::Status& status) {
  QUIRE_CHECK(!status.ok());
  End(id, status, FinishReason::kUnspecified, kAllTokens);
}

void Engine::CancelAll(const absl::Status& status) {
  std::vector<RequestId> ids;
  for (const Request* request : scheduler_->Requests()) ids.push_back(request->id);
  for (const RequestId id : ids) Cancel(id, status);
}

void Engine::Finish(RequestId id, FinishReason reason, int64_t num_output_tokens) {
  QUIRE_CHECK(reason != FinishReason::kUnspecified);
  End(id, absl::OkStatus(), reason, num_output_tokens);
}

StepOutcome Engine::Step() {
  EnterStage(StepStage::kSchedule);
  ExpireDeadlines();
  scheduler_->Schedule(&plan_);
  if (plan_.empty()) {
    // Nothing would ever change that: an answer, not a thread that spins.
    if (HasWork()) CancelAll(absl::InternalError("the scheduler finds nothing to compute"));
    return StepOutcome::kIdle;
  }
  ++num_steps_;
  EnterStage(StepStage::kExecute);
  const TimePoint begin = clock_->Now();
  const absl::StatusOr<MatrixView<float>> logits = model_runner_->Execute(plan_);
  if (logits.ok()) {
    EnterStage(StepStage::kSample);
    SampleAll(*logits);
    scheduler_->ObserveStep(plan_, ToSeconds(clock_->Now() - begin));
    scheduler_->Update(plan_, sampled_);
    EnterStage(StepStage::kEmit);
    EmitAll();
  } else {
    FailStep(logits.status());
  }
#ifndef NDEBUG
  QUIRE_CHECK(CheckInvariants().empty());
#endif
  return logits.ok() ? StepOutcome::kRan : StepOutcome::kFailed;
}

void Engine::ExpireDeadlines() {
  expired_.clear();
  scheduler_->CollectExpired(clock_->Now(), &expired_);
  for (const RequestId id : expired_) {
    const TimePoint deadline = *scheduler_->Find(id)->deadline;
    Cancel(id, absl::DeadlineExceededError("the request's deadline passed before it was complete"));
    if (observer_ != nullptr) observer_->OnDeadlineExpired(deadline);
  }
}

void Engine::FailStep(const absl::Status& status) {
  ++num_failed_steps_;
  log::Error("a step over {} requests and {} tokens failed: {}", plan_.requests.size(), plan_.num_tokens,
             status.ToString());
  const absl::Status internal = absl::InternalError(StrCat("the step failed: ", std::string(status.message())));
  for (const ScheduledRequest& scheduled : plan_.requests) Cancel(scheduled.request_id, internal);
}

void Engine::SampleAll(MatrixView<float> logits) {
  results_ = sampler_.Sample(plan_, logits, *scheduler_);
  sampled_.clear();
  for (size_t i = 0; i < results_.size(); ++i) {
    CountTokens(plan_.requests[i], results_[i]);
    // The scheduler passes over the tokens of a request that has been removed.
    if (plan_.requests[i].samples_token) sampled_.push_back(results_[i].token.token_id);
    if (!results_[i].status.ok()) Cancel(results_[i].request_id, results_[i].status);
  }
}

void Engine::CountTokens(const ScheduledRequest& scheduled, const StepResult& result) {
  const Request& request = *scheduler_->Find(scheduled.request_id);
  num_prompt_tokens_ += std::max<int64_t>(
      0, std::min(request.num_prompt_tokens - scheduled.first_position, scheduled.num_scheduled_tokens()));
  if (result.has_token) ++num_output_tokens_;
}

void Engine::EmitAll() {
  for (StepResult& result : results_) {
    if (!result.status.ok()) continue;
    const Request& request = *scheduler_->Find(result.request_id);
    if (!result.prompt_logprobs.empty()) request.sink->OnPromptLogprobs(std::move(result.prompt_logprobs));
    if (!result.has_token) continue;
    const TokenId token = result.token.token_id;
    std::vector<OutputToken> tokens;
    tokens.push_back(std::move(result.token));
    request.sink->OnTokens(std::move(tokens));
    const FinishReason reason = ReasonToFinish(request, token);
    if (reason != FinishReason::kUnspecified) End(request.id, absl::OkStatus(), reason, kAllTokens);
  }
}

// kUnspecified: it goes on.
FinishReason Engine::ReasonToFinish(const Request& request, TokenId token) const {
  const bool is_end = !request.sampling.ignore_eos && Contains(end_of_generation_ids_, token);
  if (is_end || Contains(request.sampling.stop_token_ids, token)) return FinishReason::kStopToken;
  if (request.num_output_tokens() >= request.max_tokens) return FinishReason::kLength;
  return FinishReason::kUnspecified;
}

void Engine::End(RequestId id, const absl::Status& status, FinishReason reason, int64_t max_counted_tokens) {
  const std::unique_ptr<Request> request = scheduler_->Remove(id);
  if (request == nullptr) return;
  sampler_.Remove(id);
  ++num_finished_requests_;
  if (observer_ != nullptr) observer_->OnEnd(request->tenant);
  GenerationResult result = MakeResult(*request, status, reason, clock_->Now());
  result.num_output_tokens = std::min(result.num_output_tokens, max_counted_tokens);
  request->sink->OnFinish(result);
}

EngineStats Engine::Stats(bool with_requests) const {
  EngineStats stats;
  stats.cache = kv_cache_->Usage();
  stats.num_running = scheduler_->num_running();
  stats.num_waiting = scheduler_->num_waiting();
  stats.num_preemptions = scheduler_->num_preemptions();
  stats.num_recomputed_tokens = scheduler_->num_recomputed_tokens();
  stats.num_deferred_admissions = scheduler_->num_deferred_admissions();
  stats.num_queued_tokens = scheduler_->num_waiting_tokens();
  stats.num_steps = num_steps_;
  stats.num_failed_steps = num_failed_steps_;
  stats.num_prompt_tokens = num_prompt_tokens_;
  stats.num_output_tokens = num_output_tokens_;
  stats.num_finished_requests = num_finished_requests_;
  stats.num_invariant_violations = num_invariant_violations_;
  stats.max_num_step_tokens = scheduler_->step_length().num_prefill_tokens();
  if (with_requests) AddHoldings(&stats);
  return stats;
}

void Engine::AddHoldings(EngineStats* stats) const {
  std::map<std::string, TenantStats> tenants;
  for (const auto& [tenant, account] : scheduler_->tenants().accounts()) {
    if (account.num_requests == 0) continue;
    tenants[tenant] = {.tenant = tenant,
                       .weight = account.limits.weight,
                       .num_running = account.num_running,
                       .num_waiting = account.num_requests - account.num_running,
                       .num_blocks = 0,
                       .virtual_tokens = account.virtual_tokens};
  }
  for (const Request* request : scheduler_->Requests()) {
    const int64_t num_blocks = static_cast<int64_t>(kv_cache_->BlockTable(request->id).size());
    tenants[request->tenant].num_blocks += num_blocks;
    stats->requests.push_back({.label = request->label,
                               .tenant = request->tenant,
                               .state = std::string(ToString(request->status)),
                               .num_blocks = num_blocks,
                               .num_tokens = request->num_tokens(),
                               .num_computed_tokens = request->num_computed_tokens,
                               .num_cached_tokens = request->num_cached_tokens,
                               .priority = request->priority});
  }
  for (auto& [name, tenant] : tenants) stats->tenants.push_back(std::move(tenant));
}

std::vector<std::string> Engine::CheckInvariants() {
  std::vector<std::string> violations = FindSchedulerViolations(scheduler_->Snapshot());
  for (const std::string& violation : violations) log::Error("invariant violated: {}", violation);
  num_invariant_violations_ += static_cast<int64_t>(violations.size());
  return violations;
}

}  // namespace quire
