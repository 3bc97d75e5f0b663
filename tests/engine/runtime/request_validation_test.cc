#include "engine/runtime/request_validation.h"

#include <limits>
#include <string>

#include "catch2/catch_test_macros.hpp"
#include "engine/base/status.h"

namespace quire {
namespace {

const EngineLimits kLimits = {
    .vocab_size = 100,
    .fit = {.max_model_len = 64, .num_blocks = 16, .block_size = 4, .bytes_per_block = 1000},
    .tenants = {{"small", {.weight = 1, .max_running_requests = {}, .max_kv_blocks = 4}}}};

GenerationRequest WithPrompt(int64_t num_tokens) {
  GenerationRequest request;
  request.prompt_token_ids.assign(num_tokens, 7);
  return request;
}

bool Mentions(const absl::Status& status, const std::string& words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

TEST_CASE("an empty prompt and tokens outside the vocabulary are refused, the first one by place and value") {
  CHECK(FieldOf(ValidateRequest(WithPrompt(0), kLimits)) == "prompt");
  GenerationRequest request = WithPrompt(5);
  request.prompt_token_ids[3] = 100;
  absl::Status status = ValidateRequest(request, kLimits);
  CHECK(FieldOf(status) == "token_ids[3]");
  CHECK(Mentions(status, "got 100, expected a token id in [0, 100)"));
  request.prompt_token_ids[1] = -1;
  CHECK(FieldOf(ValidateRequest(request, kLimits)) == "token_ids[1]");
}

TEST_CASE("priorities out of range and long salts are refused") {
  GenerationRequest request = WithPrompt(1);
  for (const int32_t priority : {kMinPriority, kMaxPriority}) {
    request.priority = priority;
    CHECK(ValidateRequest(request, kLimits).ok());
  }
  request.priority = 101;
  absl::Status status = ValidateRequest(request, kLimits);
  CHECK(FieldOf(status) == "priority");
  CHECK(Mentions(status, "got 101, expected an integer in [-100, 100]"));
  request.priority = -101;
  CHECK(FieldOf(ValidateRequest(request, kLimits)) == "priority");
  request.priority = 0;
  request.cache_salt.assign(256, 's');
  CHECK(ValidateRequest(request, kLimits).ok());
  request.cache_salt += 's';
  status = ValidateRequest(request, kLimits);
  CHECK(FieldOf(status) == "cache_salt");
  CHECK(Mentions(status, "got 257 bytes, expected at most 256 bytes"));
}

TEST_CASE("sampling parameters are validated with the request") {
  GenerationRequest request = WithPrompt(1);
  request.sampling.top_p = 2.0F;
  CHECK(FieldOf(ValidateRequest(request, kLimits)) == "sampling.top_p");
}

TEST_CASE("a prompt needs room for one output token, and is refused with the sizes") {
  CHECK(ValidateRequest(WithPrompt(63), kLimits).ok());
  const absl::Status status = ValidateRequest(WithPrompt(64), kLimits);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(FieldOf(status) == "prompt");
  CHECK(Mentions(status, "64 tokens in 16 KV blocks (16000 bytes)"));
  CHECK(Mentions(status, "64 tokens (max_model_len)"));
}

TEST_CASE("prompt and output must fit in the model's length") {
  GenerationRequest request = WithPrompt(60);
  request.sampling.max_tokens = 4;
  CHECK(ValidateRequest(request, kLimits).ok());
  request.sampling.max_tokens = 5;
  const absl::Status status = ValidateRequest(request, kLimits);
  CHECK(FieldOf(status) == "sampling.max_tokens");
  CHECK(Mentions(status, "60 prompt tokens and 5 output tokens"));
  CHECK(Mentions(status, "at most 4 output tokens would fit"));
  request.sampling.max_tokens = std::numeric_limits<int64_t>::max();
  CHECK(FieldOf(ValidateRequest(request, kLimits)) == "sampling.max_tokens");
}

TEST_CASE("prompt and output must fit in the pool, the last output token takes no slot") {
  EngineLimits small = kLimits;
  small.fit.num_blocks = 4;  // 16 slots
  CHECK(ValidateRequest(WithPrompt(16), small).ok());
  CHECK(FieldOf(ValidateRequest(WithPrompt(17), small)) == "prompt");
  GenerationRequest request = WithPrompt(10);
  request.sampling.max_tokens = 7;
  CHECK(ValidateRequest(request, small).ok());
  request.sampling.max_tokens = 8;
  CHECK(FieldOf(ValidateRequest(request, small)) == "sampling.max_tokens");
}

TEST_CASE("a tenant's own limit of blocks counts where it is the smaller one") {
  GenerationRequest request = WithPrompt(17);
  CHECK(ValidateRequest(request, kLimits).ok());
  request.tenant = "small";
  CHECK(FieldOf(ValidateRequest(request, kLimits)) == "prompt");
  request.prompt_token_ids.resize(10);
  CHECK(ResolveMaxTokens(request, kLimits) == 7);
}

TEST_CASE("without max_tokens a request may make what fits") {
  CHECK(ResolveMaxTokens(WithPrompt(10), kLimits) == 54);
  EngineLimits small = kLimits;
  small.fit.num_blocks = 4;
  CHECK(ResolveMaxTokens(WithPrompt(10), small) == 7);
  GenerationRequest request = WithPrompt(10);
  request.sampling.max_tokens = 3;
  CHECK(ResolveMaxTokens(request, kLimits) == 3);
}

}  // namespace
}  // namespace quire
