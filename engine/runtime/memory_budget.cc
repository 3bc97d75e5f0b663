#include "engine/runtime/memory_budget.h"

#include <algorithm>
#include <cstdlib>
#include <format>
#include <limits>
#include <string_view>

#include "engine/base/math.h"
#include "engine/base/status.h"
#include "engine/base/strings.h"

namespace quire {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kMinReserveBytes = 8 * kMiB;
constexpr int64_t kMaxAutoPoolBytes = 4 * kGiB;
constexpr int64_t kMinModelLen = 256;  // tokens

std::string HumanBytes(int64_t bytes) {
  const bool large = bytes >= kGiB;
  return std::format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(large ? kGiB : kMiB),
                     large ? "GiB" : "MiB");
}

std::string BothBytes(int64_t bytes) { return std::format("{} ({} bytes)", HumanBytes(bytes), bytes); }

// What is kept for all that the sum does not name: fragments of the allocator, stacks that grow, page tables.
int64_t ReserveOf(int64_t budget_bytes) { return std::max(kMinReserveBytes, budget_bytes / 50); }

// The least budget that holds `content_bytes` and its own reserve. What a budget leaves never shrinks as it grows.
int64_t LeastBudget(int64_t content_bytes) {
  int64_t too_small = -1;
  int64_t enough = content_bytes + content_bytes / 10 + 64 * kMiB;
  while (enough - too_small > 1) {
    const int64_t middle = too_small + (enough - too_small) / 2;
    (middle - ReserveOf(middle) >= content_bytes ? enough : too_small) = middle;
  }
  return enough;
}

// A limit that holds here, and what it is called in messages.
struct NamedLimit {
  int64_t bytes;
  const char* name;
};

std::vector<NamedLimit> NamedLimits(const MemoryLimits& limits) {
  std::vector<NamedLimit> named;
  if (limits.cgroup_bytes) named.push_back({*limits.cgroup_bytes, "the cgroup's limit"});
  if (limits.available_bytes) named.push_back({*limits.available_bytes, "the available memory"});
  if (limits.address_space_bytes) {
    named.push_back({*limits.address_space_bytes, "what the limit on address space (RLIMIT_AS) leaves"});
  }
  return named;
}

NamedLimit LeastLimit(const MemoryLimits& limits) {
  NamedLimit least = {std::numeric_limits<int64_t>::max(), "no limit"};
  for (const NamedLimit& limit : NamedLimits(limits)) {
    if (limit.bytes < least.bytes) least = limit;
  }
  return least;
}

// What follows from the inputs before the pool is chosen.
struct Sum {
  explicit Sum(const MemoryInputs& inputs)
      : fixed_bytes(inputs.items.total_bytes()),
        block_bytes(inputs.bytes_per_block + inputs.index_bytes_per_block),
        min_model_len(inputs.max_model_len.value_or(std::min(kMinModelLen, inputs.context_length))),
        min_blocks(CeilDiv(min_model_len, inputs.block_size)),
        limit(LeastLimit(inputs.limits)),
        most_bytes(inputs.memory_budget_bytes.value_or(limit.bytes)) {}

  int64_t fixed_bytes;
  int64_t block_bytes;    // what a block takes, its bookkeeping included
  int64_t min_model_len;  // tokens that must fit
  int64_t min_blocks;     // that they take
  NamedLimit limit;       // the least that holds here
  int64_t most_bytes;     // that the sum may reach
};

absl::Status CheckExplicitValues(const MemoryInputs& inputs) {
  if (inputs.max_model_len && (*inputs.max_model_len < 1 || *inputs.max_model_len > inputs.context_length)) {
    return InvalidArgument("max_model_len", *inputs.max_model_len,
                           StrCat("a number of tokens in [1, ", inputs.context_length, "]"));
  }
  if (inputs.kv_cache_memory_bytes && *inputs.kv_cache_memory_bytes < inputs.bytes_per_block) {
    return InvalidArgument("kv_cache_memory_bytes", *inputs.kv_cache_memory_bytes,
                           StrCat("at least one block, ", BothBytes(inputs.bytes_per_block)));
  }
  if (!inputs.memory_budget_bytes) return absl::OkStatus();
  if (*inputs.memory_budget_bytes < 1) {
    return InvalidArgument("memory_budget", *inputs.memory_budget_bytes, "a number of bytes >= 1");
  }
  return CheckBudgetWithinLimits(*inputs.memory_budget_bytes, inputs.limits);
}

int64_t ChooseNumBlocks(const MemoryInputs& inputs, const Sum& sum) {
  if (inputs.kv_cache_memory_bytes) return *inputs.kv_cache_memory_bytes / inputs.bytes_per_block;
  const int64_t left_bytes = sum.most_bytes - ReserveOf(sum.most_bytes) - sum.fixed_bytes;
  const int64_t fitting = std::max<int64_t>(0, left_bytes) / sum.block_bytes;
  if (inputs.memory_budget_bytes || inputs.limits.cgroup_bytes) return fitting;
  const int64_t blocks_per_seq = CeilDiv(inputs.max_model_len.value_or(inputs.context_length), inputs.block_size);
  const int64_t useful = std::min(inputs.max_num_seqs * blocks_per_seq, kMaxAutoPoolBytes / inputs.bytes_per_block);
  return std::min(fitting, std::max(sum.min_blocks, useful));
}

// By hand: as told. In a limited cgroup whose rest goes to the pool: all of it. Otherwise: the sum.
int64_t ChooseBudget(const MemoryInputs& inputs, const Sum& sum, int64_t num_blocks) {
  if (inputs.memory_budget_bytes) return *inputs.memory_budget_bytes;
  if (inputs.limits.cgroup_bytes && !inputs.kv_cache_memory_bytes) return sum.limit.bytes;
  return LeastBudget(sum.fixed_bytes + num_blocks * sum.block_bytes);
}

MemoryPlan MakePlan(const MemoryInputs& inputs, const Sum& sum) {
  MemoryPlan plan;
  plan.items = inputs.items;
  plan.bytes_per_block = inputs.bytes_per_block;
  plan.block_size = inputs.block_size;
  plan.num_blocks = ChooseNumBlocks(inputs, sum);
  plan.pool_bytes = plan.num_blocks * inputs.bytes_per_block;
  plan.block_index_bytes = plan.num_blocks * inputs.index_bytes_per_block;
  plan.budget_bytes = ChooseBudget(inputs, sum, plan.num_blocks);
  plan.reserve_bytes = ReserveOf(plan.budget_bytes);
  plan.max_num_seqs = inputs.max_num_seqs;
  const int64_t fitting_model_len = std::min(inputs.context_length, plan.num_blocks * inputs.block_size);
  plan.max_model_len = inputs.max_model_len.value_or(fitting_model_len);
  return plan;
}

std::string WithTable(std::string sentence, const MemoryPlan& plan) { return StrCat(sentence, "\n", plan.ToTable()); }

// The pool that a length needs is not there.
absl::Status TooSmall(const MemoryInputs& inputs, const Sum& sum, const MemoryPlan& plan) {
  const int64_t min_pool_bytes = sum.min_blocks * inputs.bytes_per_block;
  const int64_t fitting_len = plan.num_blocks * plan.block_size;
  const std::string shorter = inputs.max_model_len && fitting_len >= std::min(kMinModelLen, inputs.context_length)
                                  ? StrCat(", or a max_model_len of at most ", fitting_len, " tokens")
                                  : "";
  const std::string needed =
      StrCat(inputs.max_model_len ? "max_model_len " : "the least useful length of ", sum.min_model_len,
             " tokens needs ", sum.min_blocks, " blocks (", HumanBytes(min_pool_bytes), "), ", plan.num_blocks, " fit");
  if (inputs.kv_cache_memory_bytes) {
    return NeverFits("kv_cache_memory_bytes",
                     WithTable(StrCat(BothBytes(*inputs.kv_cache_memory_bytes), " are too small: ", needed,
                                      "; what would work is at least ", BothBytes(min_pool_bytes), shorter),
                               plan));
  }
  const int64_t least_budget_bytes = LeastBudget(sum.fixed_bytes + sum.min_blocks * sum.block_bytes);
  const std::string given = inputs.memory_budget_bytes ? "" : StrCat("auto, with ", sum.limit.name, " of ");
  return NeverFits("memory_budget",
                   WithTable(StrCat(given, BothBytes(sum.most_bytes), " is too small: ", needed,
                                    "; what would work is at least ", BothBytes(least_budget_bytes), shorter),
                             plan));
}

// A pool set by hand, with which the sum is above what there is.
absl::Status PoolTooLarge(const MemoryInputs& inputs, const Sum& sum, const MemoryPlan& plan) {
  const int64_t needed_bytes = LeastBudget(sum.fixed_bytes + plan.num_blocks * sum.block_bytes);
  return NeverFits("kv_cache_memory_bytes",
                   WithTable(StrCat(BothBytes(*inputs.kv_cache_memory_bytes), " are too large: the sum is ",
                                    BothBytes(needed_bytes), ", ", BothBytes(sum.most_bytes), " are there"),
                             plan));
}

std::string TableLine(std::string_view name, int64_t bytes, std::string_view remark = "") {
  return std::format("  {:<18} {:>12} {:>18} bytes{}{}\n", name, HumanBytes(bytes), bytes, remark.empty() ? "" : "  ",
                     remark);
}

}  // namespace

int64_t MemoryItems::total_bytes() const {
  return weights_bytes + workspace_bytes + text_layer_bytes + request_state_bytes + queue_bytes + rpc_bytes +
         process_bytes;
}

int64_t MemoryPlan::unused_bytes() const {
  return budget_bytes - items.total_bytes() - block_index_bytes - reserve_bytes - pool_bytes;
}

int64_t MemoryPlan::num_full_length_requests() const {
  const int64_t blocks_per_request = CeilDiv(std::max<int64_t>(1, max_model_len), block_size);
  return std::min(max_num_seqs, num_blocks / blocks_per_request);
}

std::vector<MemoryLine> MemoryPlan::Lines() const {
  std::vector<MemoryLine> lines = {
      {"weights_bytes", "weights", items.weights_bytes, ""},
      {"workspace_bytes", "workspace", items.workspace_bytes, "worst step"},
      {"text_layer_bytes", "text layer", items.text_layer_bytes, "vocabulary, prompts while they are encoded"},
      {"request_state_bytes", "request state", items.request_state_bytes, std::format("{} requests", max_num_seqs)},
      {"queue_bytes", "queue", items.queue_bytes, "waiting requests and their prompts"},
      {"rpc_bytes", "connections", items.rpc_bytes, "buffers, answers not read yet"},
      {"process_bytes", "process", items.process_bytes, "code, libraries, stacks"},
      {"block_index_bytes", "block index", block_index_bytes, ""},
      {"reserve_bytes", "reserve", reserve_bytes, ""},
      {"pool_bytes", "KV pool", pool_bytes,
       std::format("{} blocks of {} tokens, {} bytes each", num_blocks, block_size, bytes_per_block)}};
  if (unused_bytes() != 0) lines.push_back({"unused_bytes", "unused", unused_bytes(), ""});
  return lines;
}

std::string MemoryPlan::ToTable() const {
  std::string table;
  for (const MemoryLine& line : Lines()) {
    const bool missing = line.bytes < 0;
    table += TableLine(missing ? "missing" : line.name, std::abs(line.bytes), line.remark);
  }
  table += TableLine("memory budget", budget_bytes, std::format("max_model_len {} tokens", max_model_len));
  return table;
}

absl::Status CheckBudgetWithinLimits(int64_t budget_bytes, const MemoryLimits& limits) {
  for (const NamedLimit& limit : NamedLimits(limits)) {
    if (budget_bytes <= limit.bytes) continue;
    return InvalidArgument("memory_budget", BothBytes(budget_bytes),
                           StrCat("at most ", limit.name, ", ", BothBytes(limit.bytes)));
  }
  return absl::OkStatus();
}

absl::StatusOr<MemoryPlan> PlanMemory(const MemoryInputs& inputs) {
  QUIRE_RETURN_IF_ERROR(CheckExplicitValues(inputs));
  const Sum sum(inputs);
  const MemoryPlan plan = MakePlan(inputs, sum);
  if (plan.num_blocks < sum.min_blocks) return TooSmall(inputs, sum, plan);
  if (plan.unused_bytes() < 0 || plan.budget_bytes > sum.most_bytes) return PoolTooLarge(inputs, sum, plan);
  return plan;
}

}  // namespace quire
