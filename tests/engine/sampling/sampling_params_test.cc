#include "engine/sampling/sampling_params.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "engine/base/status.h"

namespace quire {
namespace {

constexpr int64_t kVocabSize = 100;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Change = std::function<void(SamplingParams&)>;

absl::Status Validate(const Change& change) {
  SamplingParams params;
  change(params);
  return ValidateSamplingParams(params, kVocabSize);
}

TEST_CASE("defaults and the ends of every range are accepted") {
  CHECK(ValidateSamplingParams(SamplingParams(), kVocabSize).ok());
  const std::vector<Change> accepted = {
      [](SamplingParams& p) { p.temperature = 0.0F; },
      [](SamplingParams& p) { p.top_k = std::numeric_limits<int32_t>::max(); },
      [](SamplingParams& p) { p.top_p = std::numeric_limits<float>::denorm_min(); },
      [](SamplingParams& p) { p.min_p = 1.0F; },
      [](SamplingParams& p) { p.repetition_penalty = 0.01F; },
      [](SamplingParams& p) { p.max_tokens = 1; },
      [](SamplingParams& p) { p.stop_strings.assign(16, std::string(256, 'x')); },
      [](SamplingParams& p) { p.stop_token_ids = {0, 99}; },
      [](SamplingParams& p) { p.num_logprobs = 0; },
      [](SamplingParams& p) { p.num_prompt_logprobs = 20; },
  };
  for (size_t i = 0; i < accepted.size(); ++i) {
    INFO("case " << i);
    CHECK(Validate(accepted[i]).ok());
  }
}

TEST_CASE("what is out of range is refused by field, value and range") {
  struct Case {
    Change change;
    std::string field;
    std::string value;
  };
  const std::vector<Case> cases = {
      {[](SamplingParams& p) { p.temperature = -0.5F; }, "sampling.temperature", "-0.5"},
      {[](SamplingParams& p) { p.temperature = kNan; }, "sampling.temperature", "nan"},
      {[](SamplingParams& p) { p.temperature = kInfinity; }, "sampling.temperature", "inf"},
      {[](SamplingParams& p) { p.top_k = -1; }, "sampling.top_k", "-1"},
      {[](SamplingParams& p) { p.top_p = 0.0F; }, "sampling.top_p", "0"},
      {[](SamplingParams& p) { p.top_p = 1.5F; }, "sampling.top_p", "1.5"},
      {[](SamplingParams& p) { p.top_p = kNan; }, "sampling.top_p", "nan"},
      {[](SamplingParams& p) { p.min_p = -0.25F; }, "sampling.min_p", "-0.25"},
      {[](SamplingParams& p) { p.min_p = 1.25F; }, "sampling.min_p", "1.25"},
      {[](SamplingParams& p) { p.min_p = kNan; }, "sampling.min_p", "nan"},
      {[](SamplingParams& p) { p.repetition_penalty = 0.0F; }, "sampling.repetition_penalty", "0"},
      {[](SamplingParams& p) { p.repetition_penalty = kInfinity; }, "sampling.repetition_penalty", "inf"},
      {[](SamplingParams& p) { p.max_tokens = 0; }, "sampling.max_tokens", "0"},
      {[](SamplingParams& p) { p.max_tokens = -3; }, "sampling.max_tokens", "-3"},
      {[](SamplingParams& p) { p.stop_strings.assign(17, "x"); }, "sampling.stop_strings", "17 strings"},
      {[](SamplingParams& p) { p.stop_strings = {"ok", ""}; }, "sampling.stop_strings[1]", "0 bytes"},
      {[](SamplingParams& p) { p.stop_strings = {std::string(257, 'x')}; }, "sampling.stop_strings[0]", "257 bytes"},
      {[](SamplingParams& p) { p.stop_token_ids.assign(257, 1); }, "sampling.stop_token_ids", "257 ids"},
      {[](SamplingParams& p) { p.stop_token_ids = {5, 100}; }, "sampling.stop_token_ids[1]", "100"},
      {[](SamplingParams& p) { p.stop_token_ids = {-1}; }, "sampling.stop_token_ids[0]", "-1"},
      {[](SamplingParams& p) { p.num_logprobs = 21; }, "sampling.logprobs", "21"},
      {[](SamplingParams& p) { p.num_logprobs = -1; }, "sampling.logprobs", "-1"},
      {[](SamplingParams& p) { p.num_prompt_logprobs = 21; }, "sampling.prompt_logprobs", "21"},
  };
  for (const Case& c : cases) {
    const absl::Status status = Validate(c.change);
    INFO(c.field << " = " << c.value << ": " << status);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(FieldOf(status) == c.field);
    CHECK(status.message().starts_with(c.field + ": got " + c.value + ", expected "));
  }
}

}  // namespace
}  // namespace quire
