#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/ids.h"

namespace quire {

// `text` as JSON, if it is UTF-8, an object, nested at most 64 deep and of at most `max_values` values: then it takes
// memory in proportion to its text. INVALID_ARGUMENT otherwise.
absl::StatusOr<nlohmann::json> ParseJsonObject(std::string_view text, int64_t max_values);

// A number in [least, most] that is written as an integer.
absl::StatusOr<int64_t> ReadInteger(const std::string& field, const nlohmann::json& value, int64_t least, int64_t most);

// An array of token ids.
absl::StatusOr<std::vector<TokenId>> ReadTokenIds(const std::string& field, const nlohmann::json& ids);

// Reads the members of a JSON object by name and type. `null` is the same as missing, and leaves the target as it is.
// The first wrong one is remembered and named by Finish, and nothing is read after it.
class JsonFields {
 public:
  // `path` stands before the names of fields in errors: "stream_options."
  explicit JsonFields(const nlohmann::json& object, std::string path = "");

  void Read(const std::string& name, bool* target);
  void Read(const std::string& name, std::string* target);
  void Read(const std::string& name, float* target);
  void Read(const std::string& name, std::optional<double>* target);
  void Read(const std::string& name, std::vector<std::string>* target);  // a string alone is a list of one
  void Read(const std::string& name, int64_t least, int64_t most, int64_t* target);
  void Read(const std::string& name, int64_t least, int64_t most, std::optional<int64_t>* target);
  void Read(const std::string& name, int64_t least, int64_t most, int32_t* target);

  // The member as it is, or nothing; the caller reads it and says with Fail what is wrong.
  const nlohmann::json* Find(const std::string& name);
  void Fail(const absl::Status& status);

  // Accepts the member, whatever it is: it changes no result.
  void Ignore(std::initializer_list<const char*> names);
  // Refuses any other value: it would change the result, and is not supported.
  void Expect(const std::string& name, const nlohmann::json& value);

  // INVALID_ARGUMENT naming the first field that is wrong, or one that nothing has asked for.
  absl::Status Finish() const;
  const std::string& path() const { return path_; }

 private:
  void Refuse(const std::string& name, const nlohmann::json& value, std::string_view accepted);

  const nlohmann::json& object_;
  const std::string path_;
  std::set<std::string> known_;
  absl::Status status_;
};

}  // namespace quire
