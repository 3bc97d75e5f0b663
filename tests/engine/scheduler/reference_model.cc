#include "tests/engine/scheduler/reference_model.h"

#include <algorithm>
#include <set>

#include "engine/base/strings.h"

namespace quire::testing {
namespace {

// Whether the first `count` elements of both are there and equal.
bool SameBeginning(const std::vector<TokenId>& a, const std::vector<TokenId>& b, int64_t count) {
  const auto n = static_cast<size_t>(count);
  return a.size() >= n && b.size() >= n && std::equal(a.begin(), a.begin() + count, b.begin());
}

}  // namespace

ReferenceModel::ReferenceModel(const SchedulerConfig& config, int64_t num_blocks, int64_t block_size)
    : config_(config), block_size_(block_size), contents_(static_cast<size_t>(num_blocks)) {}

void ReferenceModel::Expect(bool condition, RequestId id, const auto&... what) {
  if (!condition) violations_.push_back(StrCat("request ", static_cast<uint64_t>(id), ": ", what...));
}

bool ReferenceModel::Fits(const Request& request) const {
  const int64_t num_tokens = request.num_prompt_tokens + request.max_tokens;
  const int64_t num_blocks = (num_tokens - 1 + block_size_ - 1) / block_size_;
  const auto pool_blocks = static_cast<int64_t>(contents_.size());
  const int64_t most_blocks =
      std::min(pool_blocks, LimitsOf(request.tenant, config_.tenants).max_kv_blocks.value_or(pool_blocks));
  return num_tokens <= config_.max_model_len && num_blocks <= most_blocks;
}

void ReferenceModel::OnAdd(const Request& request) {
  requests_[request.id] = {.cache_namespace = *request.cache_namespace,
                           .reads_prefix_cache = request.reads_prefix_cache,
                           .wants_prompt_logprobs = request.wants_prompt_logprobs(),
                           .num_prompt_tokens = request.num_prompt_tokens,
                           .max_tokens = request.max_tokens,
                           .tokens = request.token_ids};
}

void ReferenceModel::OnSchedule(const StepPlan& plan, Scheduler* scheduler, const KvCacheManager& cache) {
  for (auto& [id, plain] : requests_) FollowStatus(id, &plain, *scheduler->Find(id), cache);
  ForgetUncomputed(cache);
  CheckPlan(plan);
}

void ReferenceModel::FollowStatus(RequestId id, PlainRequest* plain, const Request& request,
                                  const KvCacheManager& cache) {
  const bool runs = request.status == RequestStatus::kRunning;
  if (runs && !plain->runs) {
    CheckHit(id, *plain, request, cache);
    plain->num_computed = request.num_computed_tokens;
    num_hit_tokens_ += request.num_computed_tokens;
  } else if (!runs) {
    plain->num_computed = 0;
  }
  plain->runs = runs;
}

void ReferenceModel::CheckHit(RequestId id, const PlainRequest& plain, const Request& request,
                              const KvCacheManager& cache) {
  const int64_t num_hit = request.num_computed_tokens;
  Expect(num_hit == request.num_cached_tokens, id, "begins with ", num_hit, " computed and ", request.num_cached_tokens,
         " cached tokens");
  Expect(num_hit < static_cast<int64_t>(plain.tokens.size()), id, "found all of its tokens");
  Expect(num_hit % block_size_ == 0, id, "found ", num_hit, " tokens, not whole blocks");
  Expect(num_hit == 0 || (plain.reads_prefix_cache && cache.prefix_caching()), id, "found tokens it may not look for");
  const bool owes_rows = plain.wants_prompt_logprobs && plain.num_prompt_rows < plain.num_prompt_tokens - 1;
  Expect(!owes_rows || num_hit <= plain.num_prompt_rows, id, "found tokens whose rows it still owes");
  const std::span<const BlockId> table = cache.BlockTable(id);
  for (int64_t i = 0; i < num_hit / block_size_; ++i) {
    const Content& content = contents_[static_cast<size_t>(table[static_cast<size_t>(i)])];
    Expect(content.cache_namespace == plain.cache_namespace, id, "found block ", i, " of ", content.cache_namespace);
    Expect(SameBeginning(content.tokens, plain.tokens, (i + 1) * block_size_), id, "found other tokens in block ", i);
  }
}

std::map<BlockId, int64_t> ReferenceModel::CountOwners(const KvCacheManager& cache) const {
  std::map<BlockId, int64_t> owners;
  for (const auto& [id, plain] : requests_) {
    for (const BlockId block : cache.BlockTable(id)) ++owners[block];
  }
  return owners;
}

void ReferenceModel::ForgetUncomputed(const KvCacheManager& cache) {
  const std::map<BlockId, int64_t> owners = CountOwners(cache);
  for (const auto& [id, plain] : requests_) {
    const std::span<const BlockId> table = cache.BlockTable(id);
    for (size_t i = static_cast<size_t>(plain.num_computed / block_size_); i < table.size(); ++i) {
      Expect(owners.at(table[i]) == 1, id, "will write to block ", i, ", which others own too");
      // The block in which its computed tokens end keeps those.
      if (static_cast<int64_t>(i) * block_size_ >= plain.num_computed) contents_[static_cast<size_t>(table[i])] = {};
    }
  }
}

void ReferenceModel::CheckPlan(const StepPlan& plan) {
  std::set<RequestId> seen;
  int64_t num_tokens = 0;
  int64_t num_logits_rows = 0;
  for (const ScheduledRequest& scheduled : plan.requests) {
    Expect(seen.insert(scheduled.request_id).second, scheduled.request_id, "planned twice");
    Expect(requests_.contains(scheduled.request_id), scheduled.request_id, "planned and unknown");
    if (requests_.contains(scheduled.request_id)) CheckEntry(scheduled);
    num_tokens += scheduled.num_scheduled_tokens();
    num_logits_rows += scheduled.num_logits_rows();
  }
  const RequestId all{0};
  Expect(plan.num_tokens == num_tokens && num_tokens <= config_.max_num_batched_tokens, all, "a step of ", num_tokens,
         " tokens, said to be ", plan.num_tokens);
  Expect(plan.num_logits_rows == num_logits_rows && num_logits_rows <= config_.max_num_logits_rows, all, "a step of ",
         num_logits_rows, " rows, said to be ", plan.num_logits_rows);
  Expect(!plan.empty() || requests_.empty(), all, "nothing is planned, with ", requests_.size(), " requests left");
}

void ReferenceModel::CheckEntry(const ScheduledRequest& scheduled) {
  const RequestId id = scheduled.request_id;
  const PlainRequest& plain = requests_.at(id);
  const auto num_tokens = static_cast<int64_t>(plain.tokens.size());
  const int64_t first = scheduled.first_position;
  const int64_t end = first + scheduled.num_scheduled_tokens();
  Expect(plain.runs, id, "planned without running");
  Expect(first == plain.num_computed && first < end && end <= num_tokens, id, "tokens [", first, ", ", end,
         ") planned, with ", plain.num_computed, " of ", num_tokens, " computed");
  if (end > num_tokens) return;
  Expect(std::equal(scheduled.token_ids.begin(), scheduled.token_ids.end(), plain.tokens.begin() + first), id,
         "other tokens planned than it has");
  Expect(scheduled.samples_token == (end == num_tokens), id, "samples before its last token, or not after it");
  Expect(static_cast<int64_t>(scheduled.block_table.size()) * block_size_ >= end, id, "planned without slots");
  const int64_t num_owed_rows =
      plain.wants_prompt_logprobs
          ? std::max<int64_t>(0, std::min(end, plain.num_prompt_tokens - 1) - std::max(first, plain.num_prompt_rows))
          : 0;
  const int64_t num_rows = num_owed_rows + (scheduled.samples_token ? 1 : 0);
  Expect(scheduled.num_logits_rows() == num_rows && scheduled.end_logits_row == end - first, id, "rows [",
         scheduled.first_logits_row, ", ", scheduled.end_logits_row, ") planned of ", end - first, " tokens, expected ",
         num_rows);
}

void ReferenceModel::OnUpdate(const StepPlan& plan, std::span<const TokenId> sampled) {
  size_t num_taken = 0;
  for (const ScheduledRequest& scheduled : plan.requests) {
    const size_t taken = num_taken;
    if (scheduled.samples_token) ++num_taken;
    const auto found = requests_.find(scheduled.request_id);
    if (found == requests_.end()) continue;  // removed since it was planned
    PlainRequest& plain = found->second;
    const int64_t first = plain.num_computed;
    plain.num_computed += scheduled.num_scheduled_tokens();
    for (int64_t i = first / block_size_; i * block_size_ < plain.num_computed; ++i) {
      const int64_t end = std::min(plain.num_computed, (i + 1) * block_size_);
      contents_[static_cast<size_t>(scheduled.block_table[static_cast<size_t>(i)])] = {
          plain.cache_namespace, {plain.tokens.begin(), plain.tokens.begin() + end}};
    }
    plain.num_prompt_rows += scheduled.num_logits_rows() - (scheduled.samples_token ? 1 : 0);
    if (!scheduled.samples_token) continue;
    // The fake model reads all tokens through the block table: any wrong one shows here.
    Expect(sampled[taken] == NextToken(plain.tokens), found->first, "sampled another token than it does alone");
    plain.tokens.push_back(sampled[taken]);
  }
}

void ReferenceModel::OnRemove(const Request& removed) {
  const PlainRequest& plain = requests_.at(removed.id);
  Expect(removed.token_ids == plain.tokens, removed.id, "ends with other tokens than were committed");
  if (removed.num_output_tokens() == plain.max_tokens) {
    const int64_t num_rows = plain.wants_prompt_logprobs ? plain.num_prompt_tokens - 1 : 0;
    Expect(plain.num_prompt_rows == num_rows, removed.id, plain.num_prompt_rows, " rows of prompt log-probabilities");
    ++num_completed_;
    if (removed.num_preemptions > 0) ++num_completed_after_preemption_;
  }
  requests_.erase(removed.id);
}

void ReferenceModel::Check(Scheduler* scheduler, const KvCacheManager& cache) {
  const RequestId all{0};
  const auto num_requests = static_cast<int64_t>(requests_.size());
  Expect(scheduler->num_running() + scheduler->num_waiting() == num_requests, all, "it has other requests");
  for (const auto& [id, plain] : requests_) {
    const Request* request = scheduler->Find(id);
    Expect(request != nullptr, id, "is lost");
    if (request != nullptr) CheckRequest(id, plain, *request, cache);
  }
  const auto num_used = static_cast<int64_t>(CountOwners(cache).size());
  Expect(cache.num_blocks() - cache.num_available_blocks() == num_used, all, num_used, " blocks are owned, and ",
         cache.num_available_blocks(), " of ", cache.num_blocks(), " available");
}

void ReferenceModel::CheckRequest(RequestId id, const PlainRequest& plain, const Request& request,
                                  const KvCacheManager& cache) {
  Expect(request.token_ids == plain.tokens, id, "has other tokens than were committed");
  Expect((request.status == RequestStatus::kRunning) == plain.runs, id, "runs or not, between steps");
  Expect(request.num_computed_tokens == plain.num_computed, id, request.num_computed_tokens, " tokens computed, not ",
         plain.num_computed);
  const std::span<const BlockId> table = cache.BlockTable(id);
  Expect(static_cast<int64_t>(table.size()) * block_size_ >= plain.num_computed, id, "owns too few blocks");
  for (size_t i = 0; i < table.size(); ++i) {
    const int64_t end = std::min(plain.num_computed, static_cast<int64_t>(i + 1) * block_size_);
    if (end <= static_cast<int64_t>(i) * block_size_) break;
    const Content& content = contents_[static_cast<size_t>(table[i])];
    Expect(content.cache_namespace == plain.cache_namespace && SameBeginning(content.tokens, plain.tokens, end), id,
           "its block ", i, " holds other tokens");
  }
}

}  // namespace quire::testing
