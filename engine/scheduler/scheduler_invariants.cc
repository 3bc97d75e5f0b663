#include "engine/scheduler/scheduler_invariants.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/base/strings.h"
#include "engine/kv_cache/kv_cache_invariants.h"
#include "engine/scheduler/request_fit.h"

namespace quire {
namespace {

class Validator {
 public:
  explicit Validator(const SchedulerSnapshot& snapshot) : snapshot_(snapshot) {}

  std::vector<std::string> Run() {
    for (const auto& table : snapshot_.cache.tables) num_table_tokens_.emplace(table.request, table.num_tokens);
    CheckOwnership();
    for (const auto& request : snapshot_.running) CheckRunning(request);
    for (const auto& request : snapshot_.waiting) CheckWaiting(request);
    CheckTables();
    CheckOrder();
    CheckTenants();
    for (std::string& violation : FindKvCacheViolations(snapshot_.cache)) violations_.push_back(std::move(violation));
    return std::move(violations_);
  }

 private:
  static std::string Name(RequestId id) { return StrCat("request ", static_cast<uint64_t>(id)); }

  void Expect(bool condition, RequestId id, const auto&... what) {
    if (!condition) violations_.push_back(StrCat(Name(id), ": ", what...));
  }

  void CheckOwnership() {
    std::map<RequestId, int> occurrences;
    for (const RequestId id : snapshot_.owned) occurrences[id] = 0;
    for (const auto* queue : {&snapshot_.running, &snapshot_.waiting}) {
      for (const auto& request : *queue) {
        Expect(occurrences.contains(request.id), request.id, "stands in a queue, but is not owned");
        ++occurrences[request.id];
      }
    }
    for (const auto& [id, count] : occurrences) {
      Expect(count == 1, id, "stands in the queues ", count, " times, expected once");
    }
    const int64_t num_running = static_cast<int64_t>(snapshot_.running.size());
    if (num_running > snapshot_.config.max_num_seqs) {
      violations_.push_back(
          StrCat("running requests: got ", num_running, ", expected at most ", snapshot_.config.max_num_seqs));
    }
  }

  void CheckCounters(const SchedulerSnapshot::QueuedRequest& request) {
    Expect(request.num_computed_tokens >= 0 && request.num_computed_tokens < request.num_tokens, request.id,
           request.num_computed_tokens, " tokens are computed of ", request.num_tokens);
    Expect(request.num_tokens >= request.num_prompt_tokens, request.id, "prompt of ", request.num_prompt_tokens,
           " tokens among ", request.num_tokens);
    Expect(request.num_tokens <= request.num_prompt_tokens + request.max_tokens, request.id, request.num_tokens,
           " tokens, expected at most ", request.num_prompt_tokens, " of prompt and ", request.max_tokens,
           " of output");
    Expect(request.num_prompt_logprobs_sent >= 0 && request.num_prompt_logprobs_sent < request.num_prompt_tokens,
           request.id, request.num_prompt_logprobs_sent, " prompt log-probabilities are sent for ",
           request.num_prompt_tokens, " prompt tokens");
  }

  void CheckRunning(const SchedulerSnapshot::QueuedRequest& request) {
    CheckCounters(request);
    Expect(request.status == RequestStatus::kRunning, request.id, "runs with status ", ToString(request.status));
    const auto table = num_table_tokens_.find(request.id);
    const int64_t num_slots = table != num_table_tokens_.end() ? table->second : 0;
    Expect(request.num_computed_tokens <= num_slots, request.id, request.num_computed_tokens,
           " tokens are computed, but it owns slots for ", num_slots);
  }

  void CheckWaiting(const SchedulerSnapshot::QueuedRequest& request) {
    CheckCounters(request);
    Expect(request.status == RequestStatus::kWaiting || request.status == RequestStatus::kPreempted, request.id,
           "waits with status ", ToString(request.status));
    Expect(request.num_computed_tokens == 0, request.id, "waits with ", request.num_computed_tokens,
           " computed tokens");
    Expect(!num_table_tokens_.contains(request.id), request.id, "waits and has a block table");
  }

  void CheckTables() {
    for (const auto& [id, num_tokens] : num_table_tokens_) {
      const bool runs = std::any_of(snapshot_.running.begin(), snapshot_.running.end(),
                                    [id = id](const auto& request) { return request.id == id; });
      Expect(runs, id, "has a block table for ", num_tokens, " tokens and does not run");
    }
  }

  void CheckOrder() {
    for (size_t i = 1; i < snapshot_.running.size(); ++i) {
      const auto& before = snapshot_.running[i - 1];
      const auto& after = snapshot_.running[i];
      Expect(before.rank < after.rank, after.id, "runs after ", Name(before.id), ", which it precedes");
    }
  }

  void CheckTenants() {
    std::map<std::string, SchedulerSnapshot::TenantAccount> expected;
    for (const auto& account : snapshot_.tenants) expected[account.tenant] = {};
    int64_t num_waiting_tokens = 0;
    for (const auto& request : snapshot_.waiting) {
      ++expected[request.tenant].num_requests;
      num_waiting_tokens += request.num_tokens;
    }
    for (const auto& request : snapshot_.running) {
      auto& account = expected[request.tenant];
      ++account.num_requests;
      ++account.num_running;
      account.num_reserved_blocks +=
          BlocksForRequest(request.num_prompt_tokens, request.max_tokens, snapshot_.cache.block_size);
    }
    ExpectEqual("waiting tokens", snapshot_.num_waiting_tokens, num_waiting_tokens);
    for (const auto& account : snapshot_.tenants) {
      const auto& sums = expected[account.tenant];
      ExpectEqual(StrCat("tenant ", account.tenant, ": requests"), account.num_requests, sums.num_requests);
      ExpectEqual(StrCat("tenant ", account.tenant, ": running"), account.num_running, sums.num_running);
      ExpectEqual(StrCat("tenant ", account.tenant, ": reserved blocks"), account.num_reserved_blocks,
                  sums.num_reserved_blocks);
    }
    if (expected.size() != snapshot_.tenants.size()) violations_.push_back("a tenant with requests has no account");
  }

  void ExpectEqual(const std::string& what, int64_t got, int64_t expected) {
    if (got != expected) violations_.push_back(StrCat(what, ": got ", got, ", expected ", expected));
  }

  const SchedulerSnapshot& snapshot_;
  std::map<RequestId, int64_t> num_table_tokens_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> FindSchedulerViolations(const SchedulerSnapshot& snapshot) {
  return Validator(snapshot).Run();
}

}  // namespace quire
