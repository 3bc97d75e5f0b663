#include "bench/simulator.h"

#include <algorithm>
#include <memory>
#include <string>

#include "engine/base/check.h"
#include "engine/base/strings.h"

namespace quire {
namespace {

int64_t IndexOf(RequestId id) { return static_cast<int64_t>(id); }
RequestId IdOf(int64_t index) { return RequestId{static_cast<uint64_t>(index)}; }

TimePoint TimeOf(double seconds) {
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

std::optional<double> SecondsOf(const std::optional<TimePoint>& time) {
  if (!time) return std::nullopt;
  return ToSeconds(*time - TimePoint());
}

}  // namespace

Simulator::Simulator(const SimulationConfig& config, const Trace& trace)
    : config_(config),
      trace_(trace),
      cache_(config.cache, &clock_),
      scheduler_(config.scheduler, &cache_, &clock_),
      block_tokens_(static_cast<size_t>(config.cache.num_blocks), 0),
      block_stamps_(static_cast<size_t>(config.cache.num_blocks), -1) {
  result_.requests.resize(trace.size());
}

absl::StatusOr<SimulationResult> Simulator::Run() {
  StepPlan plan;
  while (true) {
    DeliverEvents();
    scheduler_.Schedule(&plan);
    if (!plan.empty()) {
      RunStep(plan);
      continue;
    }
    const std::optional<double> next = NextEventSeconds();
    if (!next) break;
    AdvanceTo(*next);
  }
  if (scheduler_.HasWork()) {
    return absl::InternalError(StrCat("the scheduler finds nothing to compute at ", Now(), " s, with ",
                                      scheduler_.num_running(), " requests running and ", scheduler_.num_waiting(),
                                      " waiting"));
  }
  result_.seconds = Now();
  result_.num_preemptions = scheduler_.num_preemptions();
  result_.num_recomputed_tokens = scheduler_.num_recomputed_tokens();
  result_.final_usage = cache_.Usage();
  return std::move(result_);
}

void Simulator::AdvanceTo(double seconds) { clock_.Set(std::max(clock_.Now(), TimeOf(seconds))); }

void Simulator::DeliverEvents() {
  const auto may_arrive = [this] {
    if (next_arrival_ >= static_cast<int64_t>(trace_.size())) return false;
    if (config_.concurrency) return num_in_flight_ < *config_.concurrency;
    return TimeOf(TraceOf(next_arrival_).arrival_seconds) <= clock_.Now();
  };
  while (may_arrive()) Arrive(next_arrival_++);
  while (!cancellations_.empty() && TimeOf(cancellations_.top().first) <= clock_.Now()) {
    const int64_t index = cancellations_.top().second;
    cancellations_.pop();
    End(index, RequestEnd::kCancelled);
  }
}

void Simulator::Arrive(int64_t index) {
  const std::optional<int64_t>& conversation = TraceOf(index).conversation_id;
  if (conversation) {
    const auto [turns, is_first] = later_turns_.try_emplace(*conversation);
    if (!is_first) {
      turns->second.push_back(index);
      return;
    }
  }
  Submit(index);
}

void Simulator::Submit(int64_t index) {
  const TraceRequest& from = TraceOf(index);
  auto request = std::make_unique<Request>();
  request->id = IdOf(index);
  request->tenant = from.tenant;
  request->priority = from.priority;
  request->cache_namespace = std::make_shared<const std::string>(from.tenant);
  request->token_ids.reserve(static_cast<size_t>(from.prompt_tokens + from.output_tokens));
  for (int64_t i = 0; i < from.prompt_tokens; ++i) request->token_ids.push_back(TokenAt(from, index, i));
  request->num_prompt_tokens = from.prompt_tokens;
  request->max_tokens = from.output_tokens;
  request->arrival_time = clock_.Now();
  OutcomeOf(index).arrival_seconds = Now();
  ++num_in_flight_;
  if (!scheduler_.AddRequest(std::move(request)).ok()) {
    End(index, RequestEnd::kRefused);
    return;
  }
  if (from.cancel_after_seconds) cancellations_.emplace(Now() + *from.cancel_after_seconds, index);
}

void Simulator::End(int64_t index, RequestEnd end) {
  const std::unique_ptr<Request> request = scheduler_.Remove(IdOf(index));
  if (request == nullptr && end == RequestEnd::kCancelled) return;  // it had ended before
  RequestOutcome& outcome = OutcomeOf(index);
  outcome.end = end;
  outcome.end_seconds = Now();
  if (request != nullptr) {
    outcome.first_scheduled_seconds = SecondsOf(request->first_scheduled_time);
    outcome.first_token_seconds = SecondsOf(request->first_token_time);
    outcome.num_output_tokens = request->num_output_tokens();
    outcome.num_cached_tokens = request->num_first_cached_tokens;
    outcome.num_preemptions = request->num_preemptions;
  }
  --num_in_flight_;
  started_.erase(index);
  const std::optional<int64_t>& conversation = TraceOf(index).conversation_id;
  if (!conversation) return;
  const auto turns = later_turns_.find(*conversation);
  if (turns->second.empty()) {
    later_turns_.erase(turns);
  } else {
    const int64_t next = turns->second.front();
    turns->second.pop_front();
    Submit(next);
  }
}

std::optional<double> Simulator::NextEventSeconds() const {
  std::optional<double> next;
  if (!config_.concurrency && next_arrival_ < static_cast<int64_t>(trace_.size())) {
    next = TraceOf(next_arrival_).arrival_seconds;
  }
  if (!cancellations_.empty()) next = std::min(next.value_or(cancellations_.top().first), cancellations_.top().first);
  return next;
}

void Simulator::RunStep(const StepPlan& plan) {
  const double step_seconds = config_.cost.StepSeconds(plan);
  CountTokens(plan);
  sampled_.clear();
  for (const ScheduledRequest& scheduled : plan.requests) {
    if (!scheduled.samples_token) continue;
    const int64_t index = IndexOf(scheduled.request_id);
    const int64_t position = scheduled.first_position + scheduled.num_scheduled_tokens();
    sampled_.push_back(TokenAt(TraceOf(index), index, position));
  }
  AdvanceTo(Now() + step_seconds);
  scheduler_.ObserveStep(plan, step_seconds);
  scheduler_.Update(plan, sampled_);
  ++result_.num_steps;
  MeasurePool(step_seconds);
  RemoveComplete(plan);
}

void Simulator::CountTokens(const StepPlan& plan) {
  for (const ScheduledRequest& scheduled : plan.requests) {
    started_.insert(IndexOf(scheduled.request_id));
    result_.num_computed_tokens += scheduled.num_scheduled_tokens();
  }
}

void Simulator::MeasurePool(double step_seconds) {
  int64_t num_used_blocks = 0;
  int64_t num_tokens = 0;
  for (const int64_t index : started_) {
    const Request* request = scheduler_.Find(IdOf(index));
    if (request->status != RequestStatus::kRunning) continue;  // preempted: it owns nothing
    int64_t num_left = request->num_computed_tokens;
    for (const BlockId block : cache_.BlockTable(request->id)) {
      const auto i = static_cast<size_t>(block);
      if (block_stamps_[i] != result_.num_steps) {
        block_stamps_[i] = result_.num_steps;
        block_tokens_[i] = 0;
        ++num_used_blocks;
      }
      // A shared block's tokens count once.
      const int64_t filled = std::clamp<int64_t>(num_left, 0, cache_.block_size());
      num_tokens += std::max<int64_t>(0, filled - block_tokens_[i]);
      block_tokens_[i] = std::max(block_tokens_[i], filled);
      num_left -= cache_.block_size();
    }
  }
  result_.used_block_seconds += static_cast<double>(num_used_blocks) * step_seconds;
  result_.wasted_slot_seconds += static_cast<double>(num_used_blocks * cache_.block_size() - num_tokens) * step_seconds;
}

void Simulator::RemoveComplete(const StepPlan& plan) {
  for (const ScheduledRequest& scheduled : plan.requests) {
    const Request* request = scheduler_.Find(scheduled.request_id);
    if (request->num_output_tokens() == request->max_tokens) End(IndexOf(request->id), RequestEnd::kFinished);
  }
}

}  // namespace quire
