#include "engine/scheduler/token_budget.h"

#include <catch2/catch_test_macros.hpp>
#include <random>

namespace quire {
namespace {

TEST_CASE("Tokens taken from a budget") {
  struct Row {
    const char* what;
    TokenBudget budget;
    TokenDemand demand;
    int64_t num_taken;
    TokenBudget left;
  };
  const Row rows[] = {
      {"a decode", {16, 4}, {1, 0}, 1, {15, 3}},
      {"a decode without tokens left", {0, 4}, {1, 0}, 0, {0, 4}},
      {"a decode without rows left", {16, 0}, {1, 0}, 0, {16, 0}},
      {"a whole prefill", {16, 4}, {10, 9}, 10, {6, 3}},
      {"a prefill of exactly the budget", {16, 4}, {16, 15}, 16, {0, 3}},
      {"a chunk wants no row", {16, 4}, {17, 16}, 16, {0, 4}},
      {"a prefill without rows left stops before its last token", {16, 0}, {10, 9}, 9, {7, 0}},
      {"a row for each token", {16, 4}, {3, 0}, 3, {13, 1}},
      {"a row for each token, shortened to the rows", {16, 4}, {10, 0}, 4, {12, 0}},
      {"a row for each token, shortened to the tokens", {3, 4}, {10, 0}, 3, {0, 1}},
      {"rows for the later tokens, shortened to the rows", {16, 4}, {12, 6}, 10, {6, 0}},
      {"rows for the later tokens, none reached", {6, 4}, {12, 6}, 6, {0, 4}},
      {"nothing left", {0, 0}, {12, 6}, 0, {0, 0}},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    TokenBudget budget = row.budget;
    CHECK(TakeTokens(row.demand, &budget) == row.num_taken);
    CHECK(budget.num_tokens == row.left.num_tokens);
    CHECK(budget.num_logits_rows == row.left.num_logits_rows);
  }
}

TEST_CASE("Demands in order of precedence split a step") {
  TokenBudget budget{.num_tokens = 16, .num_logits_rows = 8};
  CHECK(TakeTokens({.num_tokens = 1, .num_rowless_tokens = 0}, &budget) == 1);
  CHECK(TakeTokens({.num_tokens = 1, .num_rowless_tokens = 0}, &budget) == 1);
  CHECK(TakeTokens({.num_tokens = 9, .num_rowless_tokens = 8}, &budget) == 9);
  CHECK(TakeTokens({.num_tokens = 40, .num_rowless_tokens = 39}, &budget) == 5);
  CHECK(TakeTokens({.num_tokens = 1, .num_rowless_tokens = 0}, &budget) == 0);
  CHECK(budget.num_logits_rows == 5);
}

TEST_CASE("What is taken is the most that fits") {
  std::mt19937 random(4);
  const auto below = [&random](int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(random); };
  for (int i = 0; i < 20000; ++i) {
    const TokenBudget before{.num_tokens = below(12), .num_logits_rows = below(12)};
    const int64_t num_wanted = 1 + below(12);
    const TokenDemand demand{.num_tokens = num_wanted, .num_rowless_tokens = below(num_wanted)};
    int64_t most = 0;
    while (most < demand.num_tokens && most + 1 <= before.num_tokens &&
           NumLogitsRows(demand, most + 1) <= before.num_logits_rows) {
      ++most;
    }
    TokenBudget budget = before;
    REQUIRE(TakeTokens(demand, &budget) == most);
    REQUIRE(budget.num_tokens == before.num_tokens - most);
    REQUIRE(budget.num_logits_rows == before.num_logits_rows - NumLogitsRows(demand, most));
  }
}

}  // namespace
}  // namespace quire
