#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/base/strings.h"

namespace quire {
namespace {

// Any number may be asked for; up to this one the arithmetic is safe, and no cache is so large.
constexpr int64_t kMostTokens = int64_t{1} << 48;

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
          .status = request.status,
          .num_tokens = request.num_tokens(),
          .num_prompt_tokens = request.num_prompt_tokens,
          .num_computed_tokens = request.num_computed_tokens,
          .num_prompt_logprobs_sent = request.num_prompt_logprobs_sent,
          .max_tokens = request.max_tokens};
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, KvCacheManager* cache, const Clock* clock)
    : config_(config), cache_(cache), clock_(clock) {
  QUIRE_CHECK(config.Validate().ok());
  running_.reserve(static_cast<size_t>(config.max_num_seqs));
}

Scheduler::~Scheduler() {
  for (const Request* request : running_) cache_->Free(request->id);
}

absl::Status Scheduler::AddRequest(std::unique_ptr<Request> request) {
  QUIRE_RETURN_IF_ERROR(CheckFits(*request));
  QUIRE_CHECK_EQ(request->num_tokens(), request->num_prompt_tokens);
  QUIRE_CHECK(Find(request->id) == nullptr);
  request->token_ids.reserve(static_cast<size_t>(request->num_prompt_tokens + request->max_tokens));
  waiting_.push_back(request.get());
  const RequestId id = request->id;
  requests_.emplace(id, std::move(request));
  return absl::OkStatus();
}

absl::Status Scheduler::CheckFits(const Request& request) const {
  const int64_t num_prompt_tokens = request.num_prompt_tokens;
  if (num_prompt_tokens < 1) return InvalidArgument("prompt", "0 tokens", "at least 1 token");
  if (request.max_tokens < 1) return InvalidArgument("max_tokens", request.max_tokens, "at least 1");

  const std::string available =
      StrCat(config_.max_model_len, " tokens and ", cache_->num_blocks(), " blocks are available");
  const int64_t num_prompt_blocks = cache_->BlocksFor(num_prompt_tokens);
  if (num_prompt_tokens >= config_.max_model_len || num_prompt_blocks > cache_->num_blocks()) {
    return NeverFits("prompt", StrCat(num_prompt_tokens, " tokens and 1 of output, in ", num_prompt_blocks,
                                      " blocks, are needed; ", available));
  }
  const int64_t max_tokens = std::min(request.max_tokens, kMostTokens);
  // The last token of output is never stored.
  const int64_t num_blocks = cache_->BlocksFor(num_prompt_tokens + max_tokens - 1);
  if (num_prompt_tokens + max_tokens <= config_.max_model_len && num_blocks <= cache_->num_blocks()) {
    return absl::OkStatus();
  }
  return NeverFits("max_tokens", StrCat(num_prompt_tokens, " tokens of prompt and ", request.max_tokens,
                                        " of output, in ", num_blocks, " blocks, are needed; ", available));
}

void Scheduler::Schedule(StepPlan* plan) {
  plan->Clear();
  TokenBudget budget{.num_tokens = config_.max_num_batched_tokens, .num_logits_rows = config_.max_num_logits_rows};
  ScheduleDecodes(&budget, plan);
  ScheduleRunningPrefills(&budget, plan);
  // A request preempted just now is not admitted again: of the blocks that it gave up, some are taken already.
  AdmitWaiting(&budget, plan);
}

void Scheduler::ScheduleDecodes(TokenBudget* budget, StepPlan* plan) {
  // By index: a preemption takes requests after this one from the end.
  for (size_t i = 0; i < running_.size() && budget->num_tokens > 0; ++i) {
    const Request& request = *running_[i];
    if (!Decodes(request)) continue;
    QUIRE_CHECK_LT(request.num_output_tokens(), request.max_tokens);
    if (!EnsureSlots(request)) continue;
    const TokenDemand demand = DemandOf(request);
    AppendToPlan(request, demand, TakeTokens(demand, budget), plan);
  }
}

void Scheduler::ScheduleRunningPrefills(TokenBudget* budget, StepPlan* plan) {
  for (const Request* request : running_) {
    if (Decodes(*request)) continue;
    // It has had slots for all its tokens since it was admitted.
    const TokenDemand demand = DemandOf(*request);
    const int64_t num_tokens = TakeTokens(demand, budget);
    if (num_tokens > 0) AppendToPlan(*request, demand, num_tokens, plan);
  }
}

void Scheduler::AdmitWaiting(TokenBudget* budget, StepPlan* plan) {
  while (!waiting_.empty() && num_running() < config_.max_num_seqs) {
    const Request& request = *waiting_.front();
    const TokenDemand demand = DemandOf(request);
    TokenBudget remaining = *budget;
    const int64_t num_tokens = TakeTokens(demand, &remaining);
    // No later request overtakes the first that does not fit.
    if (num_tokens == 0 || !AdmitFront()) return;
    *budget = remaining;
    AppendToPlan(request, demand, num_tokens, plan);
  }
}

bool Scheduler::EnsureSlots(const Request& request) {
  while (!cache_->AllocateSlots(request.id, request.num_tokens())) {
    if (running_.back() == &request) {
      // Alone it has all blocks, and AddRequest saw that they suffice.
      QUIRE_CHECK_LT(1, num_running());
      return false;
    }
    PreemptNewest();
  }
  return true;
}

void Scheduler::PreemptNewest() {
  Request* request = running_.back();
  running_.pop_back();
  cache_->Free(request->id);
  request->num_computed_tokens = 0;
  request->status = RequestStatus::kPreempted;
  ++request->num_preemptions;
  ++num_preemptions_;
  waiting_.push_front(request);
}

bool Scheduler::AdmitFront() {
  Request* request = waiting_.front();
  if (cache_->BlocksFor(request->num_tokens()) > cache_->num_free_blocks()) return false;
  cache_->ReserveTable(request->id, request->max_stored_tokens());
  QUIRE_CHECK(cache_->AllocateSlots(request->id, request->num_tokens()));
  request->status = RequestStatus::kRunning;
  if (!request->first_scheduled_time) request->first_scheduled_time = clock_->Now();
  waiting_.pop_front();
  running_.push_back(request);
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
    Request* request = Find(scheduled.request_id);
    if (request != nullptr) CommitTokens(scheduled, request);
    if (!scheduled.samples_token) continue;
    QUIRE_CHECK_LT(num_taken, sampled.size());
    if (request != nullptr) AppendSampled(sampled[num_taken], request);
    ++num_taken;
  }
  QUIRE_CHECK_EQ(num_taken, sampled.size());
}

void Scheduler::CommitTokens(const ScheduledRequest& scheduled, Request* request) const {
  QUIRE_CHECK_EQ(scheduled.first_position, request->num_computed_tokens);
  request->num_computed_tokens += scheduled.num_scheduled_tokens();
  if (request->awaits_prompt_logprobs()) {
    request->num_prompt_logprobs_sent += scheduled.num_logits_rows() - (scheduled.samples_token ? 1 : 0);
  }
}

void Scheduler::AppendSampled(TokenId token, Request* request) const {
  QUIRE_CHECK_LT(request->num_output_tokens(), request->max_tokens);
  if (!request->first_token_time) request->first_token_time = clock_->Now();
  request->token_ids.push_back(token);
}

std::unique_ptr<Request> Scheduler::Remove(RequestId id) {
  auto node = requests_.extract(id);
  if (node.empty()) return nullptr;
  std::unique_ptr<Request> request = std::move(node.mapped());
  if (request->status == RequestStatus::kRunning) {
    std::erase(running_, request.get());
    cache_->Free(id);
  } else {
    std::erase(waiting_, request.get());
  }
  return request;
}

Request* Scheduler::Find(RequestId id) {
  const auto found = requests_.find(id);
  return found != requests_.end() ? found->second.get() : nullptr;
}

std::vector<const Request*> Scheduler::Requests() const {
  std::vector<const Request*> requests(running_.begin(), running_.end());
  requests.insert(requests.end(), waiting_.begin(), waiting_.end());
  return requests;
}

void Scheduler::CollectExpired(TimePoint now, std::vector<RequestId>* expired) const {
  for (const auto& [id, request] : requests_) {
    if (request->deadline && *request->deadline <= now) expired->push_back(id);
  }
}

SchedulerSnapshot Scheduler::Snapshot() const {
  SchedulerSnapshot snapshot;
  snapshot.config = config_;
  for (const auto& [id, request] : requests_) snapshot.owned.push_back(id);
  for (const Request* request : running_) snapshot.running.push_back(Describe(*request));
  for (const Request* request : waiting_) snapshot.waiting.push_back(Describe(*request));
  snapshot.cache = cache_->Snapshot();
  return snapshot;
}

}  // namespace quire
