#include "engine/checkpoint/gguf_metadata.h"

#include <algorithm>
#include <array>
#include <format>
#include <limits>
#include <utility>

#include "engine/base/status.h"

namespace quire {
namespace {

constexpr int64_t kMinPairBytes = 8 + 1 + 4 + 1;  // key length, key, type, value
constexpr int64_t kMinNestedBytes = 8;            // a string's length; an array has more
constexpr int kMaxArrayDepth = 4;                 // bounds recursion; files nest once at most
constexpr int64_t kMaxDescribedElements = 6;
constexpr size_t kMaxDescribedBytes = 100;

struct TypeTraits {
  std::string_view name;  // with its article: "an array"
  int64_t num_bytes;      // 0 if values differ in size
};

constexpr std::array<TypeTraits, 13> kTypes = {{{"a uint8", 1},
                                                {"an int8", 1},
                                                {"a uint16", 2},
                                                {"an int16", 2},
                                                {"a uint32", 4},
                                                {"an int32", 4},
                                                {"a float32", 4},
                                                {"a bool", 1},
                                                {"a string", 0},
                                                {"an array", 0},
                                                {"a uint64", 8},
                                                {"an int64", 8},
                                                {"a float64", 8}}};

const TypeTraits& TraitsOf(GgufType type) { return kTypes[static_cast<size_t>(type)]; }

bool IsString(GgufType type) { return type == GgufType::kString; }
bool IsFloat(GgufType type) { return type == GgufType::kFloat32 || type == GgufType::kFloat64; }
bool IsInteger(GgufType type) { return !IsFloat(type) && !IsString(type) && type != GgufType::kArray; }
bool IsNumber(GgufType type) { return IsInteger(type) || IsFloat(type); }

absl::Status WrongValue(std::string_view what, std::string_view expected, std::string_view found) {
  return absl::InvalidArgumentError(std::format("{}: expected {}, found {}", what, expected, found));
}

absl::StatusOr<GgufType> ReadType(ByteCursor& cursor, std::string_view what) {
  QUIRE_ASSIGN_OR_RETURN(const uint32_t type, cursor.Read<uint32_t>(what));
  if (type >= kTypes.size()) return WrongValue(what, "a value type in [0, 12]", std::to_string(type));
  return static_cast<GgufType>(type);
}

absl::Status SkipBools(ByteCursor& cursor, uint64_t count, std::string_view what) {
  const int64_t begin = cursor.offset_bytes();
  QUIRE_RETURN_IF_ERROR(cursor.Skip(count, what));
  for (const std::byte value : cursor.since(begin)) {
    if (value > std::byte{1}) return WrongValue(what, "a bool, 0 or 1", std::to_string(std::to_integer<int>(value)));
  }
  return absl::OkStatus();
}

absl::Status SkipValue(ByteCursor& cursor, GgufType type, std::string_view what, int depth);

absl::Status SkipArray(ByteCursor& cursor, std::string_view what, int depth) {
  if (depth > kMaxArrayDepth) {
    return WrongValue(what, std::format("arrays nested at most {} deep", kMaxArrayDepth), "a deeper one");
  }
  QUIRE_ASSIGN_OR_RETURN(const GgufType type, ReadType(cursor, what));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, cursor.Read<uint64_t>(what));
  const int64_t element_bytes = TraitsOf(type).num_bytes;
  const int64_t min_element_bytes = std::max(element_bytes, element_bytes == 0 ? kMinNestedBytes : 1);
  const auto max_count = static_cast<uint64_t>(cursor.remaining_bytes() / min_element_bytes);
  if (count > max_count) {
    return WrongValue(what,
                      std::format("an array of at most {} elements, as the file has {} bytes left", max_count,
                                  cursor.remaining_bytes()),
                      std::format("a count of {}", count));
  }
  if (type == GgufType::kBool) return SkipBools(cursor, count, what);
  if (element_bytes > 0) return cursor.Skip(count * static_cast<uint64_t>(element_bytes), what);
  for (uint64_t i = 0; i < count; ++i) QUIRE_RETURN_IF_ERROR(SkipValue(cursor, type, what, depth + 1));
  return absl::OkStatus();
}

absl::Status SkipValue(ByteCursor& cursor, GgufType type, std::string_view what, int depth) {
  switch (type) {
    case GgufType::kString: return cursor.ReadString(what).status();
    case GgufType::kArray: return SkipArray(cursor, what, depth);
    case GgufType::kBool: return SkipBools(cursor, 1, what);
    default: return cursor.Skip(static_cast<uint64_t>(TraitsOf(type).num_bytes), what);
  }
}

template <typename T>
absl::StatusOr<int64_t> ReadAs(ByteCursor& cursor, std::string_view what) {
  QUIRE_ASSIGN_OR_RETURN(const T value, cursor.Read<T>(what));
  if (std::cmp_greater(value, std::numeric_limits<int64_t>::max())) {
    return WrongValue(what, "an integer below 2^63", std::to_string(value));
  }
  return static_cast<int64_t>(value);
}

// `type` is an integer type.
absl::StatusOr<int64_t> ReadInteger(ByteCursor& cursor, GgufType type, std::string_view what) {
  switch (type) {
    case GgufType::kInt8: return ReadAs<int8_t>(cursor, what);
    case GgufType::kUint16: return ReadAs<uint16_t>(cursor, what);
    case GgufType::kInt16: return ReadAs<int16_t>(cursor, what);
    case GgufType::kUint32: return ReadAs<uint32_t>(cursor, what);
    case GgufType::kInt32: return ReadAs<int32_t>(cursor, what);
    case GgufType::kUint64: return ReadAs<uint64_t>(cursor, what);
    case GgufType::kInt64: return ReadAs<int64_t>(cursor, what);
    default: return ReadAs<uint8_t>(cursor, what);  // uint8 and bool
  }
}

// `type` is an integer or float type.
absl::StatusOr<double> ReadNumber(ByteCursor& cursor, GgufType type, std::string_view what) {
  if (type == GgufType::kFloat64) return cursor.Read<double>(what);
  if (type == GgufType::kFloat32) {
    QUIRE_ASSIGN_OR_RETURN(const float value, cursor.Read<float>(what));
    return static_cast<double>(value);
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t value, ReadInteger(cursor, type, what));
  return static_cast<double>(value);
}

absl::StatusOr<std::string> DescribeScalar(ByteCursor& cursor, GgufType type) {
  if (type == GgufType::kString) {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view text, cursor.ReadString("value"));
    return Printable(text, kMaxDescribedBytes);
  }
  if (type == GgufType::kUint64) {  // may be beyond what ReadInteger gives
    QUIRE_ASSIGN_OR_RETURN(const uint64_t value, cursor.Read<uint64_t>("value"));
    return std::to_string(value);
  }
  if (type == GgufType::kFloat32) {
    QUIRE_ASSIGN_OR_RETURN(const float value, cursor.Read<float>("value"));
    return std::format("{}", value);
  }
  if (type == GgufType::kFloat64) {
    QUIRE_ASSIGN_OR_RETURN(const double value, cursor.Read<double>("value"));
    return std::format("{}", value);
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t value, ReadInteger(cursor, type, "value"));
  if (type == GgufType::kBool) return std::string(value != 0 ? "true" : "false");
  return std::to_string(value);
}

absl::StatusOr<std::string> DescribeArray(ByteCursor& cursor) {
  QUIRE_ASSIGN_OR_RETURN(const GgufType type, ReadType(cursor, "value"));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, cursor.Read<uint64_t>("value"));
  const std::string_view name = TraitsOf(type).name;
  if (type == GgufType::kArray) return std::format("[{} arrays]", count);
  const uint64_t num_shown = std::min<uint64_t>(count, kMaxDescribedElements);
  std::string text = "[";
  for (uint64_t i = 0; i < num_shown; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const std::string element, DescribeScalar(cursor, type));
    if (i > 0) text += ", ";
    text += type == GgufType::kString ? "\"" + element + "\"" : element;
  }
  if (count > num_shown) text += ", ...";
  return std::format("{}] ({} x {})", text, count, name.substr(name.find(' ') + 1));
}

}  // namespace

absl::StatusOr<GgufMetadata> GgufMetadata::Read(ByteCursor& cursor, uint64_t count) {
  const int64_t max_count = cursor.remaining_bytes() / kMinPairBytes;
  if (count > static_cast<uint64_t>(max_count)) {
    return WrongValue("metadata count",
                      std::format("at most {}, as the file has {} bytes left", max_count, cursor.remaining_bytes()),
                      std::to_string(count));
  }
  GgufMetadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view key, cursor.ReadString(std::format("metadata key {}", i)));
    const std::string shown = Printable(key);
    if (key.empty()) return WrongValue(std::format("metadata key {}", i), "a name", "an empty one");
    if (!metadata.index_.emplace(key, metadata.entries_.size()).second) {
      return WrongValue(shown, "each metadata key once", "it twice");
    }
    QUIRE_ASSIGN_OR_RETURN(const GgufType type, ReadType(cursor, shown));
    const int64_t begin = cursor.offset_bytes();
    QUIRE_RETURN_IF_ERROR(SkipValue(cursor, type, shown, 1));
    metadata.entries_.push_back({std::string(key), type, cursor.since(begin)});
  }
  return metadata;
}

std::vector<std::string> GgufMetadata::Keys() const {
  std::vector<std::string> keys;
  keys.reserve(entries_.size());
  for (const Entry& entry : entries_) keys.push_back(entry.key);
  return keys;
}

absl::StatusOr<const GgufMetadata::Entry*> GgufMetadata::Find(std::string_view key) const {
  const auto found = index_.find(key);
  if (found == index_.end()) {
    return absl::NotFoundError(std::format("{}: expected this metadata key, found none", key));
  }
  return &entries_[found->second];
}

absl::StatusOr<GgufMetadata::Array> GgufMetadata::FindArray(std::string_view key, std::string_view expected,
                                                            bool (*accepts)(GgufType)) const {
  QUIRE_ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  if (entry->type != GgufType::kArray) return WrongValue(key, expected, TraitsOf(entry->type).name);
  ByteCursor cursor(entry->bytes);
  QUIRE_ASSIGN_OR_RETURN(const GgufType type, ReadType(cursor, key));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, cursor.Read<uint64_t>(key));
  // An empty array suits everybody, whatever type its writer gave it.
  if (count > 0 && !accepts(type)) {
    return WrongValue(key, expected, std::format("an array with {} in it", TraitsOf(type).name));
  }
  return Array{type, static_cast<int64_t>(count), cursor};
}

absl::StatusOr<int64_t> GgufMetadata::GetInt(std::string_view key) const {
  QUIRE_ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  if (!IsInteger(entry->type)) return WrongValue(key, "an integer", TraitsOf(entry->type).name);
  ByteCursor cursor(entry->bytes);
  return ReadInteger(cursor, entry->type, key);
}

absl::StatusOr<double> GgufMetadata::GetFloat(std::string_view key) const {
  QUIRE_ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  if (!IsNumber(entry->type)) return WrongValue(key, "a number", TraitsOf(entry->type).name);
  ByteCursor cursor(entry->bytes);
  return ReadNumber(cursor, entry->type, key);
}

absl::StatusOr<bool> GgufMetadata::GetBool(std::string_view key) const {
  QUIRE_ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  if (entry->type != GgufType::kBool) return WrongValue(key, "a bool", TraitsOf(entry->type).name);
  ByteCursor cursor(entry->bytes);
  QUIRE_ASSIGN_OR_RETURN(const int64_t value, ReadInteger(cursor, entry->type, key));
  return value != 0;
}

absl::StatusOr<std::string> GgufMetadata::GetString(std::string_view key) const {
  QUIRE_ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  if (!IsString(entry->type)) return WrongValue(key, "a string", TraitsOf(entry->type).name);
  ByteCursor cursor(entry->bytes);
  QUIRE_ASSIGN_OR_RETURN(const std::string_view text, cursor.ReadString(key));
  return std::string(text);
}

absl::StatusOr<std::vector<std::string>> GgufMetadata::GetStringArray(std::string_view key) const {
  QUIRE_ASSIGN_OR_RETURN(Array array, FindArray(key, "an array of strings", IsString));
  std::vector<std::string> values;
  values.reserve(static_cast<size_t>(array.num_elements));
  for (int64_t i = 0; i < array.num_elements; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view text, array.elements.ReadString(key));
    values.emplace_back(text);
  }
  return values;
}

absl::StatusOr<std::vector<int64_t>> GgufMetadata::GetIntArray(std::string_view key) const {
  QUIRE_ASSIGN_OR_RETURN(Array array, FindArray(key, "an array of integers", IsInteger));
  std::vector<int64_t> values;
  values.reserve(static_cast<size_t>(array.num_elements));
  for (int64_t i = 0; i < array.num_elements; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t value, ReadInteger(array.elements, array.element_type, key));
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<std::vector<float>> GgufMetadata::GetFloatArray(std::string_view key) const {
  QUIRE_ASSIGN_OR_RETURN(Array array, FindArray(key, "an array of numbers", IsNumber));
  std::vector<float> values;
  values.reserve(static_cast<size_t>(array.num_elements));
  for (int64_t i = 0; i < array.num_elements; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const double value, ReadNumber(array.elements, array.element_type, key));
    values.push_back(static_cast<float>(value));
  }
  return values;
}

std::string GgufMetadata::Describe(std::string_view key) const {
  const absl::StatusOr<const Entry*> entry = Find(key);
  if (!entry.ok()) return "(none)";
  ByteCursor cursor((*entry)->bytes);
  const absl::StatusOr<std::string> text =
      (*entry)->type == GgufType::kArray ? DescribeArray(cursor) : DescribeScalar(cursor, (*entry)->type);
  return text.ok() ? *text : "(unreadable)";
}

}  // namespace quire
