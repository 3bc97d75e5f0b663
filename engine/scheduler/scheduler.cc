#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/base/strings.h"

namespace quire {
namespace {

// With prompt log-probabilities still to be sent there is no output yet: every row after those sent is wanted, and
// the prompt's last row samples. Otherwise only the last row is.
TokenDemand DemandOf(const Request& request) {
  const int64_t num_pending = request.num_pending_tokens();
  const int64_t num_rowless = request.awaits_prompt_logprobs()
                                  ? std::max<int64_t>(0, request.num_prompt_logprobs_sent - request.num_computed_tokens)
                                  : num_pending - 1;
  return {.num_tokens = num_pending, .num_rowless_tokens = num_rowless};
}

bool Decodes(const Request& request) { return request.num_pending_tokens() == 1; }

SchedulerSnapshot::QueuedRequest Describe(const Request& request) {
  return {.id = request.id,
          .tenant = request.tenant,
          .status = request.status,
          .rank = request.rank,
          .num_tokens = request.num_tokens(),
          .num_prompt_tokens = request.num_prompt_tokens,
          .num_computed_tokens = request.num_computed_tokens,
          .num_prompt_logprobs_sent = request.num_prompt_logprobs_sent,
          .max_tokens = request.max_tokens};
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, KvCacheManager* cache, const Clock* clock)
    : config_(config),
      cache_(cache),
      clock_(clock),
      tenants_(config.tenants),
      headroom_(cache->num_blocks()),
      step_length_(config.max_num_batched_tokens, config.target_step_seconds) {
  QUIRE_CHECK(config.Validate().ok());
  running_.reserve(static_cast<size_t>(config.max_num_seqs));
  prefills_.reserve(static_cast<size_t>(config.max_num_seqs));
}

Scheduler::~Scheduler() {
  for (const Request* request : running_) cache_->Free(request->id);
}

FitLimits Scheduler::fit_limits() const {
  return {.max_model_len = config_.max_model_len,
          .num_blocks = cache_->num_blocks(),
          .block_size = cache_->block_size(),
          .bytes_per_block = config_.bytes_per_block};
}

absl::Status Scheduler::AddRequest(std::unique_ptr<Request> request) {
  if (request->num_prompt_tokens < 1) return InvalidArgument("prompt", "0 tokens", "at least 1 token");
  if (request->max_tokens < 1) return InvalidArgument("sampling.max_tokens", request->max_tokens, "at least 1");
  QUIRE_RETURN_IF_ERROR(CheckRequestFits(request->num_prompt_tokens, request->max_tokens,
                                         FitLimitsFor(request->tenant, config_.tenants, fit_limits())));
  QUIRE_CHECK_EQ(request->num_tokens(), request->num_prompt_tokens);
  QUIRE_CHECK(Find(request->id) == nullptr);
  if (request->cache_namespace == nullptr) request->cache_namespace = std::make_shared<const std::string>();
  tenants_.Arrive(request->tenant);
  waiting_.Push(request.get());
  const RequestId id = request->id;
  if (request->deadline) deadlines_.emplace(*request->deadline, id);
  requests_.emplace(id, std::move(request));
  return absl::OkStatus();
}

void Scheduler::SetTenantLimits(TenantLimitsByName tenants) {
  tenants_.SetLimits(tenants);
  config_.tenants = std::move(tenants);
}

void Scheduler::Schedule(StepPlan* plan) {
  plan->Clear();
  TokenBudget budget{.num_tokens = config_.max_num_batched_tokens, .num_logits_rows = config_.max_num_logits_rows};
  const int64_t num_preemptions_before = num_preemptions_;
  Request* const guest = MakeRoomForUnderserved();
  ScheduleDecodes(yielded_ ? nullptr : guest, &budget, plan);
  if (!plan->empty()) budget.num_tokens = std::min(budget.num_tokens, step_length_.num_prefill_tokens());
  // After a preemption nobody is admitted in the same step, but the one that room was made for: of the blocks given
  // up, some are taken already.
  const bool preempted = num_preemptions_ > num_preemptions_before;
  SchedulePrefills(preempted ? guest : NextWaiting(), !preempted, &budget, plan);
  yielded_ = guest != nullptr && !yielded_;
  // The guest may not have fitted after all.
  if (plan->empty()) ScheduleDecodes(nullptr, &budget, plan);
}

Request* Scheduler::MakeRoomForUnderserved() {
  Request* next = NextWaiting();
  if (next == nullptr || DisplacedBy(*next) == nullptr) return nullptr;
  const int64_t num_blocks = cache_->BlocksFor(next->num_tokens());
  while (num_running() == config_.max_num_seqs || num_blocks > cache_->num_available_blocks()) {
    Request* displaced = DisplacedBy(*next);
    if (displaced == nullptr) return nullptr;
    Preempt(displaced);
  }
  return next;
}

Request* Scheduler::DisplacedBy(const Request& waiting) const {
  for (auto running = running_.rbegin(); running != running_.rend(); ++running) {
    if (tenants_.MayDisplace(waiting.tenant, (*running)->tenant)) return *running;
  }
  return nullptr;
}

void Scheduler::ScheduleDecodes(const Request* guest, TokenBudget* budget, StepPlan* plan) {
  // By index: a preemption takes requests after this one from the end.
  for (size_t i = 0; i < running_.size() && budget->num_tokens > 0; ++i) {
    const Request& request = *running_[i];
    if (!Decodes(request)) continue;
    if (guest != nullptr && tenants_.MayDisplace(guest->tenant, request.tenant)) continue;
    QUIRE_CHECK_LT(request.num_output_tokens(), request.max_tokens);
    if (!EnsureSlots(request)) continue;
    const TokenDemand demand = DemandOf(request);
    AppendToPlan(request, demand, TakeTokens(demand, budget), plan);
  }
}

void Scheduler::SchedulePrefills(Request* waiting, bool more_may_follow, TokenBudget* budget, StepPlan* plan) {
  prefills_.clear();
  for (Request* request : running_) {
    if (!Decodes(*request)) prefills_.emplace_back(PrecedenceOf(*request), request);
  }
  std::ranges::sort(prefills_);
  size_t next_running = 0;
  double most_served = std::numeric_limits<double>::infinity();  // of the tenants whose prefills the step has
  while (budget->num_tokens > 0 && budget->num_logits_rows > 0) {
    const bool has_running = next_running < prefills_.size();
    const bool has_waiting = waiting != nullptr && num_running() < config_.max_num_seqs;
    if (!has_running && !has_waiting) return;
    const bool takes_running = has_running && (!has_waiting || prefills_[next_running].first < PrecedenceOf(*waiting));
    Request* request = takes_running ? prefills_[next_running].second : waiting;
    // The step gets no longer for a tenant that has been served more than those in it.
    if (tenants_.virtual_tokens(request->tenant) > most_served) return;
    if (takes_running) {
      // It has had slots for all its tokens since it was admitted.
      ++next_running;
    } else {
      const bool admitted = Admit(waiting);
      // Nobody overtakes the first that does not fit.
      waiting = admitted && more_may_follow ? NextWaiting() : nullptr;
      if (!admitted) continue;
    }
    const TokenDemand demand = DemandOf(*request);
    const int64_t num_tokens = TakeTokens(demand, budget);
    AppendToPlan(*request, demand, num_tokens, plan);
    ChargePrompt(*request, num_tokens);
    const double served = tenants_.virtual_tokens(request->tenant);
    most_served = plan->num_prefill_tokens == 0 ? served : std::max(most_served, served);
    plan->num_prefill_tokens += num_tokens;
  }
}

void Scheduler::ChargePrompt(const Request& request, int64_t num_tokens) {
  // What a preemption makes the server compute again is not the tenant's to pay.
  const int64_t first = std::max(request.num_computed_tokens, request.peak_computed_tokens);
  const int64_t end = std::min(request.num_computed_tokens + num_tokens, request.num_prompt_tokens);
  const double cost = static_cast<double>(std::max<int64_t>(0, end - first)) * TenantLedger::kPromptTokenCost;
  tenants_.Serve(request.tenant, cost);
}

bool Scheduler::EnsureSlots(const Request& request) {
  while (!cache_->AllocateSlots(request.id, request.num_tokens())) {
    if (running_.back() == &request) {
      // Alone it has all blocks, and AddRequest saw that they suffice.
      QUIRE_CHECK_LT(1, num_running());
      return false;
    }
    headroom_.OnPreemption();
    Preempt(running_.back());
  }
  return true;
}

void Scheduler::Preempt(Request* request) {
  StopRunning(request);
  request->num_computed_tokens = 0;
  request->num_cached_tokens = 0;
  request->status = RequestStatus::kPreempted;
  ++request->num_preemptions;
  ++num_preemptions_;
  waiting_.Push(request);
}

void Scheduler::StopRunning(Request* request) {
  std::erase(running_, request);
  cache_->Free(request->id);
  tenants_.Stop(request->tenant, BlocksAtEnd(*request));
}

int64_t Scheduler::BlocksAtEnd(const Request& request) const {
  return BlocksForRequest(request.num_prompt_tokens, request.max_tokens, cache_->block_size());
}

Request* Scheduler::NextWaiting() {
  return waiting_.Next(clock_->Now(), config_.priority_aging_seconds, tenants_, [this](const Request& request) {
    return tenants_.MayStart(request.tenant, BlocksAtEnd(request));
  });
}

Precedence Scheduler::PrecedenceOf(const Request& request) const {
  const Duration waited = clock_->Now() - request.arrival_time;
  const int64_t priority = request.status == RequestStatus::kRunning
                               ? request.rank.priority
                               : AgedPriority(request.priority, waited, config_.priority_aging_seconds);
  return {.virtual_tokens = tenants_.virtual_tokens(request.tenant), .priority = priority, .id = request.id};
}

RunningRank Scheduler::RankOf(const Request& waiting) const {
  const int64_t priority = PrecedenceOf(waiting).priority;
  const int64_t num_before = std::ranges::count_if(running_, [&](const Request* request) {
    return request->rank.priority <= priority && request->tenant == waiting.tenant;
  });
  return {.num_before = static_cast<double>(num_before) / LimitsOf(waiting.tenant, config_.tenants).weight,
          .priority = priority,
          .id = waiting.id};
}

bool Scheduler::Admit(Request* request) {
  // Rows that still owe a log-probability must be computed, whatever the cache holds.
  const int64_t num_readable =
      request->awaits_prompt_logprobs() ? request->num_prompt_logprobs_sent : request->num_tokens();
  // Room for the growth of those that run already, unless theirs is the place to take.
  const bool needs_headroom = !running_.empty() && DisplacedBy(*request) == nullptr;
  const std::optional<int64_t> num_cached =
      cache_->Admit({.request = request->id,
                     .token_ids = request->token_ids,
                     .max_num_tokens = request->max_stored_tokens(),
                     .cache_namespace = request->cache_namespace,
                     .max_cached_tokens = request->reads_prefix_cache ? num_readable : 0,
                     .num_headroom_blocks = needs_headroom ? headroom_.num_blocks() : 0});
  if (!num_cached) {
    if (!std::exchange(request->was_deferred, true)) ++num_deferred_admissions_;
    return false;
  }
  waiting_.Remove(request);
  request->rank = RankOf(*request);
  request->status = RequestStatus::kRunning;
  request->num_computed_tokens = *num_cached;
  request->num_cached_tokens = *num_cached;
  request->token_ids.reserve(static_cast<size_t>(request->num_prompt_tokens + request->max_tokens));
  if (!request->first_scheduled_time) {
    request->first_scheduled_time = clock_->Now();
    request->num_first_cached_tokens = *num_cached;
  }
  const auto rank = [](const Request* running) { return running->rank; };
  running_.insert(std::ranges::upper_bound(running_, request->rank, {}, rank), request);
  tenants_.Start(request->tenant, BlocksAtEnd(*request));
  return true;
}

void Scheduler::AppendToPlan(const Request& request, const TokenDemand& demand, int64_t num_tokens,
                             StepPlan* plan) const {
  const int64_t num_logits_rows = NumLogitsRows(demand, num_tokens);
  ScheduledRequest scheduled;
  scheduled.request_id = request.id;
  scheduled.token_ids = std::span<const TokenId>(request.token_ids)
                            .subspan(static_cast<size_t>(request.num_computed_tokens), static_cast<size_t>(num_tokens));
  scheduled.first_position = request.num_computed_tokens;
  scheduled.first_logits_row = num_tokens - num_logits_rows;
  scheduled.end_logits_row = num_tokens;
  scheduled.samples_token = num_tokens == demand.num_tokens;
  scheduled.block_table = cache_->BlockTable(request.id);
  plan->requests.push_back(scheduled);
  plan->num_tokens += num_tokens;
  plan->num_logits_rows += num_logits_rows;
}

void Scheduler::Update(const StepPlan& plan, std::span<const TokenId> sampled) {
  size_t num_taken = 0;
  for (const ScheduledRequest& scheduled : plan.requests) {
    const auto found = requests_.find(scheduled.request_id);
    Request* const request = found != requests_.end() ? found->second.get() : nullptr;
    if (request != nullptr) CommitTokens(scheduled, request);
    if (!scheduled.samples_token) continue;
    QUIRE_CHECK_LT(num_taken, sampled.size());
    if (request != nullptr) AppendSampled(sampled[num_taken], request);
    ++num_taken;
  }
  QUIRE_CHECK_EQ(num_taken, sampled.size());
}

void Scheduler::CommitTokens(const ScheduledRequest& scheduled, Request* request) {
  QUIRE_CHECK_EQ(scheduled.first_position, request->num_computed_tokens);
  request->num_computed_tokens += scheduled.num_scheduled_tokens();
  num_recomputed_tokens_ += std::max<int64_t>(
      0, std::min(request->num_computed_tokens, request->peak_computed_tokens) - scheduled.first_position);
  request->peak_computed_tokens = std::max(request->peak_computed_tokens, request->num_computed_tokens);
  cache_->CacheComputed(request->id, request->token_ids, request->num_computed_tokens);
  if (request->awaits_prompt_logprobs()) {
    request->num_prompt_logprobs_sent += scheduled.num_logits_rows() - (scheduled.samples_token ? 1 : 0);
  }
}

void Scheduler::AppendSampled(TokenId token, Request* request) {
  QUIRE_CHECK_LT(request->num_output_tokens(), request->max_tokens);
  if (!request->first_token_time) request->first_token_time = clock_->Now();
  request->token_ids.push_back(token);
  tenants_.Serve(request->tenant, TenantLedger::kOutputTokenCost);
}

std::unique_ptr<Request> Scheduler::Remove(RequestId id) {
  auto node = requests_.extract(id);
  if (node.empty()) return nullptr;
  std::unique_ptr<Request> request = std::move(node.mapped());
  if (request->status == RequestStatus::kRunning) {
    StopRunning(request.get());
    headroom_.OnFinish();
  } else {
    waiting_.Remove(request.get());
  }
  tenants_.Leave(request->tenant);
  if (request->deadline) deadlines_.erase({*request->deadline, id});
  return request;
}

const Request* Scheduler::Find(RequestId id) const {
  const auto found = requests_.find(id);
  return found != requests_.end() ? found->second.get() : nullptr;
}

std::vector<const Request*> Scheduler::Requests() const {
  std::vector<const Request*> requests(running_.begin(), running_.end());
  waiting_.AppendTo(&requests);
  return requests;
}

void Scheduler::CollectExpired(TimePoint now, std::vector<RequestId>* expired) const {
  for (const auto& [deadline, id] : deadlines_) {
    if (deadline > now) return;
    expired->push_back(id);
  }
}

SchedulerSnapshot Scheduler::Snapshot() const {
  SchedulerSnapshot snapshot;
  snapshot.config = config_;
  for (const auto& [id, request] : requests_) snapshot.owned.push_back(id);
  for (const Request* request : running_) snapshot.running.push_back(Describe(*request));
  std::vector<const Request*> waiting;
  waiting_.AppendTo(&waiting);
  for (const Request* request : waiting) snapshot.waiting.push_back(Describe(*request));
  for (const auto& [tenant, account] : tenants_.accounts()) {
    snapshot.tenants.push_back({.tenant = tenant,
                                .num_requests = account.num_requests,
                                .num_running = account.num_running,
                                .num_reserved_blocks = account.num_reserved_blocks});
  }
  snapshot.num_waiting_tokens = waiting_.num_tokens();
  snapshot.cache = cache_->Snapshot();
  return snapshot;
}

}  // namespace quire
