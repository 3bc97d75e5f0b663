#include "server/security/tenant_table.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "engine/base/status.h"
#include "server/security/api_keys.h"
#include "server/security/hidden_json.h"
#include "server/shown_json.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr char kWeight[] = "weight";

using OptionalCount = std::optional<int64_t>;

struct TenantEntry {
  TenantLimits limits;
  RateLimits rates;
};

// The members that are counts.
struct Count {
  std::string_view name;
  OptionalCount& (*of)(TenantEntry& entry);
};

constexpr Count kCounts[] = {
    {"max_running_requests", [](TenantEntry& entry) -> OptionalCount& { return entry.limits.max_running_requests; }},
    {"max_kv_blocks", [](TenantEntry& entry) -> OptionalCount& { return entry.limits.max_kv_blocks; }},
    {"requests_per_minute", [](TenantEntry& entry) -> OptionalCount& { return entry.rates.requests_per_minute; }},
    {"tokens_per_minute", [](TenantEntry& entry) -> OptionalCount& { return entry.rates.tokens_per_minute; }},
};

class Parser {
 public:
  explicit Parser(WrongValues wrong_values) : wrong_values_(wrong_values) {}

  absl::StatusOr<TenantTable> ParseTable(const std::string& field, const Json& json) const {
    if (!json.is_object()) return InvalidArgument(field, Describe(json), "a JSON object by tenant name");
    TenantTable table;
    for (const auto& [name, value] : json.items()) {
      QUIRE_RETURN_IF_ERROR(CheckTenantName(field, name));
      QUIRE_ASSIGN_OR_RETURN(const TenantEntry entry, ParseEntry(StrCat(field, ".", name), value));
      table.limits[name] = entry.limits;
      table.rates[name] = entry.rates;
    }
    return table;
  }

 private:
  std::string Describe(const Json& value) const {
    return wrong_values_ == WrongValues::kShown ? ShownJson(value) : HiddenJson(value);
  }

  absl::StatusOr<TenantEntry> ParseEntry(const std::string& field, const Json& json) const {
    if (!json.is_object()) return InvalidArgument(field, Describe(json), "an object");
    TenantEntry entry;
    for (const auto& [name, value] : json.items()) QUIRE_RETURN_IF_ERROR(SetMember(field, name, value, &entry));
    return entry;
  }

  absl::Status SetMember(const std::string& field, const std::string& name, const Json& value,
                         TenantEntry* entry) const {
    if (name == kWeight) return SetWeight(StrCat(field, ".", name), value, &entry->limits.weight);
    const auto count = std::ranges::find(kCounts, name, &Count::name);
    if (count == std::end(kCounts)) return UnknownMember(field, name);
    return SetCount(StrCat(field, ".", name), value, &count->of(*entry));
  }

  absl::Status UnknownMember(const std::string& field, const std::string& name) const {
    std::string known = kWeight;
    for (const Count& count : kCounts) known += StrCat(", ", count.name);
    if (wrong_values_ == WrongValues::kHidden) return InvalidArgument(field, "a member of another name", known);
    return InvalidArgument(StrCat(field, ".", name), "an unknown key", known);
  }

  absl::Status SetWeight(const std::string& field, const Json& value, double* weight) const {
    // Written so that NaN fails it.
    const bool is_weight =
        value.is_number() && value.get<double>() >= kMinTenantWeight && value.get<double>() <= kMaxTenantWeight;
    if (!is_weight) {
      return InvalidArgument(field, Describe(value),
                             StrCat("a number in [", kMinTenantWeight, ", ", kMaxTenantWeight, "]"));
    }
    *weight = value.get<double>();
    return absl::OkStatus();
  }

  absl::Status SetCount(const std::string& field, const Json& value, OptionalCount* count) const {
    // Integers above int64's range come out negative.
    const bool is_count =
        value.is_number_integer() && value.get<int64_t>() >= 1 && value.get<int64_t>() <= kMaxTenantCount;
    if (!is_count) return InvalidArgument(field, Describe(value), StrCat("an integer in [1, ", kMaxTenantCount, "]"));
    *count = value.get<int64_t>();
    return absl::OkStatus();
  }

  const WrongValues wrong_values_;
};

}  // namespace

absl::StatusOr<TenantTable> ParseTenantTable(const std::string& field, const Json& json, WrongValues wrong_values) {
  return Parser(wrong_values).ParseTable(field, json);
}

Json ToJson(const TenantTable& table) {
  Json json = Json::object();
  for (const auto& [name, limits] : table.limits) {
    const auto rates = table.rates.find(name);
    TenantEntry entry = {.limits = limits, .rates = rates != table.rates.end() ? rates->second : RateLimits{}};
    Json& tenant = json[name] = {{kWeight, limits.weight}};
    for (const Count& count : kCounts) {
      if (const OptionalCount& value = count.of(entry)) tenant[std::string(count.name)] = *value;
    }
  }
  return json;
}

}  // namespace quire
