#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/byte_cursor.h"

namespace quire {

// The numbers by which GGUF tells the types of metadata values.
enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// The key-value pairs of a GGUF file. Values are checked once, when read, and stay in the file's bytes until asked
// for, so that a vocabulary costs no memory here; the bytes must outlive this. Immutable; thread-safe.
// Errors are one sentence that begins with the key. The accessors are those of Checkpoint.
class GgufMetadata {
 public:
  // Reads `count` pairs; keys must be unique and not empty.
  static absl::StatusOr<GgufMetadata> Read(ByteCursor& cursor, uint64_t count);

  bool HasKey(std::string_view key) const { return index_.contains(key); }
  std::vector<std::string> Keys() const;  // in file order
  absl::StatusOr<int64_t> GetInt(std::string_view key) const;
  absl::StatusOr<double> GetFloat(std::string_view key) const;
  absl::StatusOr<bool> GetBool(std::string_view key) const;
  absl::StatusOr<std::string> GetString(std::string_view key) const;
  absl::StatusOr<std::vector<std::string>> GetStringArray(std::string_view key) const;
  absl::StatusOr<std::vector<int64_t>> GetIntArray(std::string_view key) const;
  absl::StatusOr<std::vector<float>> GetFloatArray(std::string_view key) const;
  std::string Describe(std::string_view key) const;

 private:
  struct Entry {
    std::string key;
    GgufType type;
    std::span<const std::byte> bytes;  // the value as in the file; an array's begins with its element type
  };
  struct Array {
    GgufType element_type;
    int64_t num_elements;
    ByteCursor elements;
  };

  absl::StatusOr<const Entry*> Find(std::string_view key) const;
  // `expected` says what the caller wants, for the error: "an array of strings".
  absl::StatusOr<Array> FindArray(std::string_view key, std::string_view expected, bool (*accepts)(GgufType)) const;

  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> index_;  // key -> place in entries_
};

}  // namespace quire
