#include "engine/runtime/memory_budget.h"

#include <algorithm>
#include <string>

#include "catch2/catch_test_macros.hpp"
#include "engine/base/status.h"

namespace quire {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

// A small model: 300 MiB of weights, 23,040 bytes a token.
MemoryInputs SmallModel() {
  MemoryInputs inputs;
  inputs.items = {.weights_bytes = 300 * kMiB,
                  .workspace_bytes = 20 * kMiB,
                  .text_layer_bytes = 30 * kMiB,
                  .request_state_bytes = 5 * kMiB,
                  .queue_bytes = 12 * kMiB,
                  .rpc_bytes = 8 * kMiB,
                  .process_bytes = 20 * kMiB};
  inputs.block_size = 16;
  inputs.bytes_per_block = 16 * 23040;
  inputs.index_bytes_per_block = 192;
  inputs.max_num_seqs = 64;
  inputs.context_length = 8192;
  inputs.limits.available_bytes = 32 * kGiB;
  return inputs;
}

constexpr int64_t kFixedBytes = 395 * kMiB;

// A block with its bookkeeping.
int64_t BlockBytes(const MemoryInputs& inputs) { return inputs.bytes_per_block + inputs.index_bytes_per_block; }

int64_t SumOf(const MemoryPlan& plan) {
  return plan.items.total_bytes() + plan.block_index_bytes + plan.reserve_bytes + plan.pool_bytes;
}

// What every plan that was accepted must keep.
void CheckPlan(const MemoryPlan& plan, const MemoryInputs& inputs) {
  CHECK(SumOf(plan) <= plan.budget_bytes);
  CHECK(plan.reserve_bytes <= std::max(64 * kMiB, plan.budget_bytes * 3 / 100));
  CHECK(plan.reserve_bytes > 0);
  CHECK(plan.pool_bytes == plan.num_blocks * inputs.bytes_per_block);
  CHECK(plan.block_index_bytes == plan.num_blocks * inputs.index_bytes_per_block);
  CHECK(plan.num_blocks * inputs.block_size >= plan.max_model_len);
  CHECK(plan.max_model_len <= inputs.context_length);
}

TEST_CASE("an explicit budget is used to less than a block") {
  for (const int64_t budget : {600 * kMiB, 1100 * kMiB, 2 * kGiB, 5 * kGiB + 12345}) {
    MemoryInputs inputs = SmallModel();
    inputs.memory_budget_bytes = budget;
    const auto plan = PlanMemory(inputs);
    REQUIRE(plan.ok());
    CheckPlan(*plan, inputs);
    CHECK(plan->budget_bytes == budget);
    CHECK(plan->unused_bytes() < BlockBytes(inputs));
    CHECK(plan->max_model_len == std::min<int64_t>(8192, plan->num_blocks * 16));
  }
}

TEST_CASE("automatic without a cgroup limit: the pool is what all sequences need, 4 GiB or what is there") {
  MemoryInputs inputs = SmallModel();
  inputs.max_num_seqs = 2;
  auto plan = PlanMemory(inputs);
  REQUIRE(plan.ok());
  CheckPlan(*plan, inputs);
  CHECK(plan->num_blocks == 2 * 8192 / 16);
  CHECK(plan->unused_bytes() == 0);  // the budget is the sum

  inputs.max_model_len = 1000;  // 63 blocks
  CHECK(PlanMemory(inputs)->num_blocks == 2 * 63);

  inputs = SmallModel();
  plan = PlanMemory(inputs);
  CHECK(plan->num_blocks == 4 * kGiB / inputs.bytes_per_block);
  CHECK(plan->max_model_len == 8192);

  inputs.limits.available_bytes = 1 * kGiB;
  plan = PlanMemory(inputs);
  REQUIRE(plan.ok());
  CheckPlan(*plan, inputs);
  CHECK(plan->budget_bytes <= 1 * kGiB);
  CHECK(plan->budget_bytes > 1 * kGiB - 2 * BlockBytes(inputs));
}

TEST_CASE("a length set by hand may need more than the 4 GiB of automatic pools") {
  MemoryInputs inputs = SmallModel();
  inputs.context_length = 1 << 18;
  inputs.max_model_len = 1 << 18;  // 6 GB
  const auto plan = PlanMemory(inputs);
  REQUIRE(plan.ok());
  CheckPlan(*plan, inputs);
  CHECK(plan->num_blocks == (1 << 18) / 16);
}

TEST_CASE("automatic in a limited cgroup takes the limit") {
  MemoryInputs inputs = SmallModel();
  inputs.limits.cgroup_bytes = 3 * kGiB;
  const auto plan = PlanMemory(inputs);
  REQUIRE(plan.ok());
  CheckPlan(*plan, inputs);
  CHECK(plan->budget_bytes == 3 * kGiB);
  CHECK(plan->unused_bytes() < BlockBytes(inputs));

  inputs.limits.available_bytes = 2 * kGiB;  // the machine has less than the cgroup promises
  CHECK(PlanMemory(inputs)->budget_bytes == 2 * kGiB);
}

TEST_CASE("an explicit budget above the cgroup's limit or the available memory is refused with both figures") {
  MemoryInputs inputs = SmallModel();
  inputs.limits.cgroup_bytes = 2 * kGiB;
  inputs.memory_budget_bytes = 2 * kGiB;
  CHECK(PlanMemory(inputs).ok());
  inputs.memory_budget_bytes = 2 * kGiB + 1;
  absl::Status status = PlanMemory(inputs).status();
  CHECK(FieldOf(status) == "memory_budget");
  CHECK(std::string(status.message()).find("2147483649 bytes") != std::string::npos);
  CHECK(std::string(status.message()).find("2147483648 bytes") != std::string::npos);

  inputs.limits.cgroup_bytes.reset();
  inputs.limits.available_bytes = 1 * kGiB;
  status = PlanMemory(inputs).status();
  CHECK(FieldOf(status) == "memory_budget");
  CHECK(std::string(status.message()).find("available memory") != std::string::npos);

  inputs.limits = {.cgroup_bytes = {}, .available_bytes = {}, .address_space_bytes = 1 * kGiB};
  status = PlanMemory(inputs).status();
  CHECK(FieldOf(status) == "memory_budget");
  CHECK(std::string(status.message()).find("RLIMIT_AS") != std::string::npos);
  CHECK(std::string(status.message()).find("1073741824 bytes") != std::string::npos);
  inputs.limits.address_space_bytes.reset();
  CHECK(PlanMemory(inputs)->budget_bytes == *inputs.memory_budget_bytes);  // no limits at all
}

TEST_CASE("automatic keeps to the address space as to the machine's memory") {
  MemoryInputs inputs = SmallModel();
  inputs.limits.address_space_bytes = 1 * kGiB;
  auto plan = PlanMemory(inputs);
  REQUIRE(plan.ok());
  CheckPlan(*plan, inputs);
  CHECK(plan->budget_bytes <= 1 * kGiB);
  CHECK(plan->budget_bytes > 1 * kGiB - 2 * BlockBytes(inputs));
  inputs.limits.cgroup_bytes = 2 * kGiB;
  CHECK(PlanMemory(inputs)->budget_bytes == 1 * kGiB);
  inputs.limits.address_space_bytes = 0;
  const absl::Status status = PlanMemory(inputs).status();
  CHECK(FieldOf(status) == "memory_budget");
  CHECK(std::string(status.message()).find("RLIMIT_AS") != std::string::npos);
}

TEST_CASE("every part of the sum takes from the pool") {
  MemoryInputs inputs = SmallModel();
  inputs.memory_budget_bytes = 1 * kGiB;
  const int64_t num_blocks = PlanMemory(inputs)->num_blocks;
  const auto blocks_with = [&](int64_t MemoryItems::* item) {
    MemoryInputs more = inputs;
    more.items.*item += 10 * BlockBytes(inputs);
    return PlanMemory(more)->num_blocks;
  };
  for (const auto item : {&MemoryItems::weights_bytes, &MemoryItems::workspace_bytes, &MemoryItems::text_layer_bytes,
                          &MemoryItems::request_state_bytes, &MemoryItems::queue_bytes, &MemoryItems::rpc_bytes,
                          &MemoryItems::process_bytes}) {
    CHECK(blocks_with(item) == num_blocks - 10);
  }
  inputs.index_bytes_per_block += inputs.bytes_per_block;  // an index as large as the blocks takes half of them
  CHECK(PlanMemory(inputs)->num_blocks == num_blocks / 2);
}

TEST_CASE("the lines add up to the budget, and tell how many of the longest requests run at once") {
  MemoryInputs inputs = SmallModel();
  inputs.memory_budget_bytes = 1 * kGiB;
  inputs.max_model_len = 1000;  // 63 blocks
  const auto plan = PlanMemory(inputs);
  REQUIRE(plan.ok());
  int64_t sum = 0;
  for (const MemoryLine& line : plan->Lines()) sum += line.bytes;
  CHECK(sum == 1 * kGiB);
  CHECK(plan->num_full_length_requests() == plan->num_blocks / 63);
  inputs.max_num_seqs = 3;
  CHECK(PlanMemory(inputs)->num_full_length_requests() == 3);
}

// Reads the number of bytes that follows "at least".
int64_t SuggestedBytes(const absl::Status& status) {
  const std::string message(status.message());
  const size_t at_least = message.find("what would work is at least ");
  REQUIRE(at_least != std::string::npos);
  return std::stoll(message.substr(message.find('(', at_least) + 1));
}

TEST_CASE("a budget too small for 256 tokens is refused with the least that works") {
  MemoryInputs inputs = SmallModel();
  inputs.memory_budget_bytes = kFixedBytes;
  const absl::Status status = PlanMemory(inputs).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(FieldOf(status) == "memory_budget");
  CHECK(std::string(status.message()).find("weights") != std::string::npos);

  const int64_t least = SuggestedBytes(status);
  inputs.memory_budget_bytes = least;
  const auto plan = PlanMemory(inputs);
  REQUIRE(plan.ok());
  CheckPlan(*plan, inputs);
  CHECK(plan->max_model_len == 256);
  inputs.memory_budget_bytes = least - 1;
  CHECK(!PlanMemory(inputs).ok());
}

TEST_CASE("an explicit length that does not fit is refused with the budget and the length that would") {
  MemoryInputs inputs = SmallModel();
  inputs.memory_budget_bytes = 500 * kMiB;
  inputs.max_model_len = 8192;
  const absl::Status status = PlanMemory(inputs).status();
  CHECK(FieldOf(status) == "memory_budget");
  const std::string message(status.message());
  const size_t length_at = message.find("max_model_len of at most ");
  REQUIRE(length_at != std::string::npos);

  MemoryInputs with_length = inputs;
  with_length.max_model_len = std::stoll(message.substr(length_at + 25));
  CHECK(PlanMemory(with_length).ok());
  with_length.max_model_len = *with_length.max_model_len + 1;
  CHECK(!PlanMemory(with_length).ok());

  inputs.memory_budget_bytes = SuggestedBytes(status);
  CHECK(PlanMemory(inputs).ok());
  inputs.memory_budget_bytes = *inputs.memory_budget_bytes - 1;
  CHECK(!PlanMemory(inputs).ok());
}

TEST_CASE("a cgroup or a machine too small for the model is refused under the budget's name") {
  MemoryInputs inputs = SmallModel();
  inputs.limits.cgroup_bytes = 200 * kMiB;
  CHECK(FieldOf(PlanMemory(inputs).status()) == "memory_budget");
  inputs.limits.cgroup_bytes.reset();
  inputs.limits.available_bytes = 200 * kMiB;
  CHECK(FieldOf(PlanMemory(inputs).status()) == "memory_budget");
}

TEST_CASE("a pool set by hand is taken as it is, or refused") {
  MemoryInputs inputs = SmallModel();
  inputs.kv_cache_memory_bytes = 100 * kMiB;
  auto plan = PlanMemory(inputs);
  REQUIRE(plan.ok());
  CheckPlan(*plan, inputs);
  CHECK(plan->num_blocks == 100 * kMiB / inputs.bytes_per_block);
  CHECK(plan->unused_bytes() == 0);

  inputs.memory_budget_bytes = 1 * kGiB;
  plan = PlanMemory(inputs);
  REQUIRE(plan.ok());
  CheckPlan(*plan, inputs);
  CHECK(plan->budget_bytes == 1 * kGiB);
  CHECK(plan->num_blocks == 100 * kMiB / inputs.bytes_per_block);

  inputs.kv_cache_memory_bytes = 1 * kGiB;
  CHECK(FieldOf(PlanMemory(inputs).status()) == "kv_cache_memory_bytes");
  inputs.memory_budget_bytes.reset();
  inputs.limits.available_bytes = 1 * kGiB;
  CHECK(FieldOf(PlanMemory(inputs).status()) == "kv_cache_memory_bytes");
  inputs.kv_cache_memory_bytes = 1;
  CHECK(FieldOf(PlanMemory(inputs).status()) == "kv_cache_memory_bytes");

  inputs = SmallModel();
  inputs.kv_cache_memory_bytes = 15 * inputs.bytes_per_block;  // 240 tokens
  const absl::Status status = PlanMemory(inputs).status();
  CHECK(FieldOf(status) == "kv_cache_memory_bytes");
  CHECK(SuggestedBytes(status) == 16 * inputs.bytes_per_block);
}

TEST_CASE("a model shorter than 256 tokens needs its own length only") {
  MemoryInputs inputs = SmallModel();
  inputs.context_length = 100;
  inputs.kv_cache_memory_bytes = 7 * inputs.bytes_per_block;
  CHECK(PlanMemory(inputs)->max_model_len == 100);
  inputs.kv_cache_memory_bytes = 6 * inputs.bytes_per_block;
  CHECK(!PlanMemory(inputs).ok());
}

TEST_CASE("a length outside the model's is refused by name") {
  MemoryInputs inputs = SmallModel();
  inputs.max_model_len = 8193;
  CHECK(FieldOf(PlanMemory(inputs).status()) == "max_model_len");
  inputs.max_model_len = 0;
  CHECK(FieldOf(PlanMemory(inputs).status()) == "max_model_len");
}

TEST_CASE("the table has a line for each part of the sum, in bytes and in units") {
  MemoryInputs inputs = SmallModel();
  inputs.memory_budget_bytes = 2 * kGiB;
  const std::string table = PlanMemory(inputs)->ToTable();
  for (const char* part :
       {"weights", "workspace", "text layer", "request state", "queue", "connections", "process", "block index",
        "reserve", "KV pool", "memory budget", "300.00 MiB", "314572800 bytes", "2.00 GiB", "2147483648 bytes"}) {
    INFO(table);
    CHECK(table.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace quire
