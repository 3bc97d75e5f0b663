#include "bench/workload.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/base/status.h"

namespace quire {
namespace {

class TraceMaker {
 public:
  explicit TraceMaker(const Workload& workload) : workload_(workload), random_(workload.seed) {}

  Trace Make() {
    // Conversations begin as often as makes their turns together come at the asked rate.
    const double seconds_between = workload_.mean_turns / workload_.requests_per_second;
    double begin_seconds = 0;
    while (static_cast<int64_t>(trace_.size()) < workload_.num_requests) {
      begin_seconds += Exponential(seconds_between);
      AddConversation(begin_seconds);
    }
    std::stable_sort(trace_.begin(), trace_.end(), [](const TraceRequest& a, const TraceRequest& b) {
      return a.arrival_seconds < b.arrival_seconds;
    });
    trace_.resize(static_cast<size_t>(workload_.num_requests));
    return std::move(trace_);
  }

 private:
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double Exponential(double mean) { return -mean * std::log1p(-Uniform()); }
  int64_t Length(const LengthDistribution& length) {
    const double normal = std::normal_distribution<double>(0, 1)(random_);
    return std::max<int64_t>(1, std::llround(length.median * std::exp(length.sigma * normal)));
  }
  template <typename Choice>
  const Choice& Choose(const std::vector<Choice>& choices) {
    double sum = 0;
    for (const Choice& choice : choices) sum += choice.share;
    double left = Uniform() * sum;
    for (const Choice& choice : choices) {
      left -= choice.share;
      if (left < 0) return choice;
    }
    return choices.back();
  }

  void AddConversation(double begin_seconds) {
    TraceRequest turn;
    turn.arrival_seconds = begin_seconds;
    turn.tenant = Choose(workload_.tenants).name;
    turn.priority = Choose(workload_.priorities).priority;
    turn.conversation_id = next_conversation_id_++;
    if (Uniform() < workload_.system_prompt_share) {
      turn.prefix_id = static_cast<int64_t>(Uniform() * static_cast<double>(workload_.num_system_prompts));
      turn.prefix_tokens = workload_.system_prompt_tokens;
    }
    int64_t num_earlier_tokens = turn.prefix_tokens;
    do {
      turn.prompt_tokens = num_earlier_tokens + Length(workload_.prompt);
      turn.output_tokens = Length(workload_.output);
      // A conversation that has become too long ends.
      if (num_earlier_tokens > 0 && turn.prompt_tokens + turn.output_tokens > workload_.max_request_tokens) break;
      CutToFit(&turn);
      turn.cancel_after_seconds.reset();
      if (Uniform() < workload_.cancel_probability) {
        turn.cancel_after_seconds = Exponential(workload_.mean_cancel_seconds);
      }
      trace_.push_back(turn);
      num_earlier_tokens = turn.prompt_tokens + turn.output_tokens;
      turn.arrival_seconds += Exponential(workload_.mean_think_seconds);
    } while (Uniform() < 1 - 1 / workload_.mean_turns);
  }

  void CutToFit(TraceRequest* turn) const {
    const int64_t most = workload_.max_request_tokens;
    turn->prompt_tokens = std::min(turn->prompt_tokens, most - 1);
    turn->output_tokens = std::min(turn->output_tokens, most - turn->prompt_tokens);
  }

  const Workload& workload_;
  std::mt19937_64 random_;
  int64_t next_conversation_id_ = 0;
  Trace trace_;
};

template <typename Choice>
absl::Status CheckShares(std::string_view field, const std::vector<Choice>& choices) {
  double sum = 0;
  for (const Choice& choice : choices) {
    if (!(choice.share >= 0)) return InvalidArgument(field, choice.share, "shares of at least 0");
    sum += choice.share;
  }
  if (!(sum > 0)) return InvalidArgument(field, sum, "shares with a sum above 0");
  return absl::OkStatus();
}

}  // namespace

absl::Status Workload::Validate() const {
  if (num_requests < 1) return InvalidArgument("requests", num_requests, "at least 1");
  if (!(requests_per_second > 0)) return InvalidArgument("rate", requests_per_second, "above 0");
  if (!(prompt.median >= 1)) return InvalidArgument("prompt_median", prompt.median, "at least 1");
  if (!(prompt.sigma >= 0)) return InvalidArgument("prompt_sigma", prompt.sigma, "at least 0");
  if (!(output.median >= 1)) return InvalidArgument("output_median", output.median, "at least 1");
  if (!(output.sigma >= 0)) return InvalidArgument("output_sigma", output.sigma, "at least 0");
  if (max_request_tokens < 2) return InvalidArgument("max_request_tokens", max_request_tokens, "at least 2");
  if (!(system_prompt_share >= 0 && system_prompt_share <= 1)) {
    return InvalidArgument("system_prompt_share", system_prompt_share, "[0, 1]");
  }
  if (num_system_prompts < 1) return InvalidArgument("system_prompts", num_system_prompts, "at least 1");
  if (system_prompt_tokens < 0 || system_prompt_tokens > max_request_tokens - 2) {
    return InvalidArgument("system_prompt_tokens", system_prompt_tokens, "room for a prompt and an output beside it");
  }
  if (!(mean_turns >= 1)) return InvalidArgument("turns", mean_turns, "at least 1");
  if (!(mean_think_seconds >= 0)) return InvalidArgument("think_seconds", mean_think_seconds, "at least 0");
  if (!(cancel_probability >= 0 && cancel_probability <= 1)) {
    return InvalidArgument("cancel_probability", cancel_probability, "[0, 1]");
  }
  if (!(mean_cancel_seconds >= 0)) return InvalidArgument("cancel_seconds", mean_cancel_seconds, "at least 0");
  QUIRE_RETURN_IF_ERROR(CheckShares("tenants", tenants));
  return CheckShares("priorities", priorities);
}

Trace MakeTrace(const Workload& workload) { return TraceMaker(workload).Make(); }

}  // namespace quire
