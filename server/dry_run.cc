#include "server/dry_run.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/status.h"
#include "engine/base/version.h"
#include "engine/runtime/engine_plan.h"
#include "server/serving_memory.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<int64_t>& bytes) { return bytes ? Json(*bytes) : Json(nullptr); }

std::string ToText(const std::string& name, const EnginePlan& plan, const absl::Status& here) {
  const MemoryPlan& memory = plan.memory;
  return StrCat("quire-server ", kVersion, ", dry run\n",                                                     //
                "  model         ", name, ": ", plan.model.architecture, ", ", plan.model.num_parameters,     //
                " parameters, up to ", memory.max_model_len, " of ", plan.model.context_length, " tokens\n",  //
                "  weights       ", plan.weights.DescribeTypes(), "\n",                                       //
                "  KV cache      ", ToString(plan.kv_type), ", ", memory.num_blocks, " blocks of ",           //
                memory.block_size, " tokens: ", memory.num_blocks * memory.block_size, " tokens\n",           //
                "  at once       ", memory.num_full_length_requests(), " requests of ", memory.max_model_len,
                " tokens, of at most ", memory.max_num_seqs, " (max_num_seqs)\n",               //
                "  threads       ", plan.threads.num_threads, ": ", plan.threads.reason, "\n",  //
                memory.ToTable(),                                                               //
                "  here          ",
                here.ok() ? "would start" : StrCat("would be refused: ", std::string(here.message())), "\n");
}

std::string ToJson(const std::string& name, const EnginePlan& plan, const absl::Status& here) {
  const MemoryPlan& memory = plan.memory;
  Json sum;
  for (const MemoryLine& line : memory.Lines()) sum[std::string(line.key)] = line.bytes;
  const Json json = {{"model", name},
                     {"weight_type", plan.weights.DescribeTypes()},
                     {"kv_cache_dtype", ToString(plan.kv_type)},
                     {"threads", plan.threads.num_threads},
                     {"budget_bytes", memory.budget_bytes},
                     {"sum", sum},
                     {"blocks", memory.num_blocks},
                     {"bytes_per_block", memory.bytes_per_block},
                     {"block_size_tokens", memory.block_size},
                     {"cache_tokens", memory.num_blocks * memory.block_size},
                     {"max_model_len", memory.max_model_len},
                     {"max_num_seqs", memory.max_num_seqs},
                     {"full_length_requests", memory.num_full_length_requests()},
                     {"limits_here",
                      {{"cgroup_bytes", OrNull(plan.limits.cgroup_bytes)},
                       {"available_bytes", OrNull(plan.limits.available_bytes)},
                       {"address_space_bytes", OrNull(plan.limits.address_space_bytes)}}},
                     {"starts_here", here.ok()}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::StatusOr<std::string> DryRun(const ServerConfig& config, bool as_json) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, OpenCheckpoint(config.model));
  QUIRE_ASSIGN_OR_RETURN(const EnginePlan plan, PlanEngine(*checkpoint, config.engine,
                                                           MemoryAroundEngine(*checkpoint, config), PlanPurpose::kAsk));
  const absl::Status here = CheckBudgetWithinLimits(plan.memory.budget_bytes, plan.limits);
  return (as_json ? ToJson : ToText)(config.model_name(), plan, here);
}

}  // namespace quire
