#include "engine/scheduler/scheduler_config.h"

#include <catch2/catch_test_macros.hpp>

#include "engine/base/status.h"

namespace quire {
namespace {

SchedulerConfig ValidConfig() {
  return {.max_num_batched_tokens = 1, .max_num_seqs = 4, .max_model_len = 2, .max_num_logits_rows = 4};
}

TEST_CASE("The least of each field is valid") { CHECK(ValidConfig().Validate().ok()); }

TEST_CASE("A value out of range is refused by name") {
  SchedulerConfig config = ValidConfig();
  std::string field;
  SECTION("max_num_batched_tokens") {
    config.max_num_batched_tokens = 0;
    field = "max_num_batched_tokens";
  }
  SECTION("max_num_seqs") {
    config.max_num_seqs = 0;
    field = "max_num_seqs";
  }
  SECTION("max_model_len") {
    config.max_model_len = 1;
    field = "max_model_len";
  }
  SECTION("max_num_logits_rows") {
    config.max_num_logits_rows = 3;
    field = "max_num_logits_rows";
  }
  const absl::Status status = config.Validate();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(FieldOf(status) == field);
}

}  // namespace
}  // namespace quire
