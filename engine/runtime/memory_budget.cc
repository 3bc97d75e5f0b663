#include "engine/runtime/memory_budget.h"

#include <algorithm>
#include <format>
#include <string_view>

#include "engine/base/math.h"
#include "engine/base/status.h"
#include "engine/base/strings.h"

namespace quire {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kMaxAutoPoolBytes = 4 * kGiB;
constexpr int64_t kMinModelLen = 256;  // tokens

std::string HumanBytes(int64_t bytes) {
  const bool large = bytes >= kGiB;
  return std::format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(large ? kGiB : kMiB),
                     large ? "GiB" : "MiB");
}

std::string BothBytes(int64_t bytes) { return std::format("{} ({} bytes)", HumanBytes(bytes), bytes); }

// What is kept for all that the sum does not name: stacks, buffers of connections, fragments. 3 %, but 6 % of a
// small budget as far as 64 MiB.
int64_t ReserveOf(int64_t budget_bytes) {
  return std::max(budget_bytes / 100 * 3, std::min(64 * kMiB, budget_bytes / 100 * 6));
}

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

// The sum's parts that depend on nothing but the inputs, and the limits that follow from them.
struct Sum {
  explicit Sum(const MemoryInputs& inputs)
      : fixed_bytes(inputs.weights_bytes + inputs.workspace_bytes + inputs.text_layer_bytes +
                    inputs.request_state_bytes + inputs.process_bytes),
        min_model_len(inputs.max_model_len.value_or(std::min(kMinModelLen, inputs.context_length))),
        min_pool_bytes(CeilDiv(min_model_len, inputs.block_size) * inputs.bytes_per_block),
        machine_bytes(inputs.available_bytes + inputs.process_bytes),
        limit_bytes(std::min(machine_bytes, inputs.cgroup_limit_bytes.value_or(machine_bytes))) {}

  int64_t fixed_bytes;
  int64_t min_model_len;   // tokens that must fit
  int64_t min_pool_bytes;  // what they take
  int64_t machine_bytes;   // what this process may come to hold: available, and what it holds already
  int64_t limit_bytes;     // the same, in its cgroup
};

absl::Status CheckExplicitValues(const MemoryInputs& inputs, const Sum& sum) {
  if (inputs.max_model_len && (*inputs.max_model_len < 1 || *inputs.max_model_len > inputs.context_length)) {
    return InvalidArgument("max_model_len", *inputs.max_model_len,
                           StrCat("a number of tokens in [1, ", inputs.context_length, "]"));
  }
  if (inputs.kv_cache_memory_bytes && *inputs.kv_cache_memory_bytes < inputs.bytes_per_block) {
    return InvalidArgument("kv_cache_memory_bytes", *inputs.kv_cache_memory_bytes,
                           StrCat("at least one block, ", BothBytes(inputs.bytes_per_block)));
  }
  if (!inputs.memory_budget_bytes) return absl::OkStatus();
  const int64_t budget_bytes = *inputs.memory_budget_bytes;
  if (budget_bytes < 1) return InvalidArgument("memory_budget", budget_bytes, "a number of bytes >= 1");
  if (inputs.cgroup_limit_bytes && budget_bytes > *inputs.cgroup_limit_bytes) {
    return InvalidArgument("memory_budget", BothBytes(budget_bytes),
                           StrCat("at most the cgroup's limit, ", BothBytes(*inputs.cgroup_limit_bytes)));
  }
  if (budget_bytes > sum.machine_bytes) {
    return InvalidArgument("memory_budget", BothBytes(budget_bytes),
                           StrCat("at most the available memory, ", BothBytes(sum.machine_bytes)));
  }
  return absl::OkStatus();
}

// The bytes that the pool would get, before they are cut to whole blocks; negative if not even the rest fits.
int64_t ChoosePoolBytes(const MemoryInputs& inputs, const Sum& sum) {
  if (inputs.kv_cache_memory_bytes) return *inputs.kv_cache_memory_bytes;
  const int64_t most_bytes = inputs.memory_budget_bytes.value_or(sum.limit_bytes);
  const int64_t left_bytes = most_bytes - ReserveOf(most_bytes) - sum.fixed_bytes;
  if (inputs.memory_budget_bytes || inputs.cgroup_limit_bytes) return left_bytes;
  const int64_t blocks_per_seq = CeilDiv(inputs.max_model_len.value_or(inputs.context_length), inputs.block_size);
  const int64_t useful_bytes = inputs.max_num_seqs * blocks_per_seq * inputs.bytes_per_block;
  return std::min(left_bytes, std::max(sum.min_pool_bytes, std::min(useful_bytes, kMaxAutoPoolBytes)));
}

// By hand: as told. In a limited cgroup whose rest goes to the pool: all of it. Otherwise: the sum.
int64_t ChooseBudget(const MemoryInputs& inputs, const Sum& sum, int64_t pool_bytes) {
  if (inputs.memory_budget_bytes) return *inputs.memory_budget_bytes;
  if (inputs.cgroup_limit_bytes && !inputs.kv_cache_memory_bytes) return sum.limit_bytes;
  return LeastBudget(sum.fixed_bytes + pool_bytes);
}

MemoryPlan MakePlan(const MemoryInputs& inputs, const Sum& sum) {
  MemoryPlan plan;
  plan.weights_bytes = inputs.weights_bytes;
  plan.workspace_bytes = inputs.workspace_bytes;
  plan.text_layer_bytes = inputs.text_layer_bytes;
  plan.request_state_bytes = inputs.request_state_bytes;
  plan.process_bytes = inputs.process_bytes;
  plan.bytes_per_block = inputs.bytes_per_block;
  plan.block_size = inputs.block_size;
  plan.num_blocks = std::max<int64_t>(0, ChoosePoolBytes(inputs, sum)) / inputs.bytes_per_block;
  plan.pool_bytes = plan.num_blocks * inputs.bytes_per_block;
  plan.budget_bytes = ChooseBudget(inputs, sum, plan.pool_bytes);
  plan.reserve_bytes = ReserveOf(plan.budget_bytes);
  const int64_t fitting_model_len = std::min(inputs.context_length, plan.num_blocks * inputs.block_size);
  plan.max_model_len = inputs.max_model_len.value_or(fitting_model_len);
  return plan;
}

std::string WithTable(std::string sentence, const MemoryPlan& plan) { return StrCat(sentence, "\n", plan.ToTable()); }

// The pool that a length needs is not there.
absl::Status TooSmall(const MemoryInputs& inputs, const Sum& sum, const MemoryPlan& plan) {
  const int64_t fitting_len = plan.num_blocks * plan.block_size;
  const std::string shorter = inputs.max_model_len && fitting_len >= std::min(kMinModelLen, inputs.context_length)
                                  ? StrCat(", or a max_model_len of at most ", fitting_len, " tokens")
                                  : "";
  const std::string needed = StrCat(inputs.max_model_len ? "max_model_len " : "the least useful length of ",
                                    sum.min_model_len, " tokens needs ", sum.min_pool_bytes / inputs.bytes_per_block,
                                    " blocks (", HumanBytes(sum.min_pool_bytes), "), ", plan.num_blocks, " fit");
  if (inputs.kv_cache_memory_bytes) {
    return NeverFits("kv_cache_memory_bytes",
                     WithTable(StrCat(BothBytes(*inputs.kv_cache_memory_bytes), " are too small: ", needed,
                                      "; what would work is at least ", BothBytes(sum.min_pool_bytes), shorter),
                               plan));
  }
  const int64_t least_budget_bytes = LeastBudget(sum.fixed_bytes + sum.min_pool_bytes);
  const int64_t given_bytes = inputs.memory_budget_bytes.value_or(sum.limit_bytes);
  const char* given = inputs.memory_budget_bytes  ? ""
                      : inputs.cgroup_limit_bytes ? "auto, limited by the cgroup and the machine to "
                                                  : "auto, with available memory of ";
  return NeverFits("memory_budget",
                   WithTable(StrCat(given, BothBytes(given_bytes), " is too small: ", needed,
                                    "; what would work is at least ", BothBytes(least_budget_bytes), shorter),
                             plan));
}

// A pool set by hand, with which the sum is above what there is.
absl::Status PoolTooLarge(const MemoryInputs& inputs, const MemoryPlan& plan, int64_t most_bytes) {
  const int64_t needed_bytes = LeastBudget(plan.budget_bytes - plan.unused_bytes() - plan.reserve_bytes);
  return NeverFits("kv_cache_memory_bytes",
                   WithTable(StrCat(BothBytes(*inputs.kv_cache_memory_bytes), " are too large: the sum is ",
                                    BothBytes(needed_bytes), ", ", BothBytes(most_bytes), " are there"),
                             plan));
}

std::string TableLine(std::string_view name, int64_t bytes, std::string_view remark = "") {
  return std::format("  {:<18} {:>12} {:>18} bytes{}{}\n", name, HumanBytes(bytes), bytes, remark.empty() ? "" : "  ",
                     remark);
}

}  // namespace

int64_t MemoryPlan::unused_bytes() const {
  return budget_bytes - weights_bytes - workspace_bytes - text_layer_bytes - request_state_bytes - process_bytes -
         reserve_bytes - pool_bytes;
}

std::string MemoryPlan::ToTable() const {
  std::string table;
  table += TableLine("weights", weights_bytes);
  table += TableLine("workspace", workspace_bytes, "worst step");
  table += TableLine("text layer", text_layer_bytes);
  table += TableLine("request state", request_state_bytes);
  table += TableLine("process", process_bytes, "before loading");
  table += TableLine("reserve", reserve_bytes);
  table += TableLine("KV pool", pool_bytes,
                     std::format("{} blocks of {} tokens, {} bytes each", num_blocks, block_size, bytes_per_block));
  if (unused_bytes() > 0) table += TableLine("unused", unused_bytes());
  if (unused_bytes() < 0) table += TableLine("missing", -unused_bytes());
  table += TableLine("memory budget", budget_bytes, std::format("max_model_len {} tokens", max_model_len));
  return table;
}

absl::StatusOr<MemoryPlan> PlanMemory(const MemoryInputs& inputs) {
  const Sum sum(inputs);
  QUIRE_RETURN_IF_ERROR(CheckExplicitValues(inputs, sum));
  const MemoryPlan plan = MakePlan(inputs, sum);
  if (plan.pool_bytes < sum.min_pool_bytes) return TooSmall(inputs, sum, plan);
  const int64_t most_bytes = inputs.memory_budget_bytes.value_or(sum.limit_bytes);
  if (plan.unused_bytes() < 0 || plan.budget_bytes > most_bytes) return PoolTooLarge(inputs, plan, most_bytes);
  return plan;
}

}  // namespace quire
