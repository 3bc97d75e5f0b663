#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace quire::testing {

// Bytes of a GGUF file, little-endian, put together piece by piece: also for files that lie.
class GgufBytes {
 public:
  template <typename T>
    requires std::is_arithmetic_v<T>
  GgufBytes& Put(T value) {
    const size_t end = bytes_.size();
    bytes_.resize(end + sizeof(T));
    std::memcpy(bytes_.data() + end, &value, sizeof(T));
    return *this;
  }
  // A string as GGUF has it: 64 bits of length, then the bytes.
  GgufBytes& PutString(std::string_view text) { return Put<uint64_t>(text.size()).PutRaw(text); }
  GgufBytes& PutRaw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  GgufBytes& PadTo(size_t alignment) {
    while (bytes_.size() % alignment != 0) bytes_ += '\0';
    return *this;
  }

  size_t size() const { return bytes_.size(); }
  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

// The number by which GGUF tells a value's type.
template <typename T>
constexpr uint32_t GgufTypeNumber() {
  if constexpr (std::is_same_v<T, uint8_t>) return 0;
  if constexpr (std::is_same_v<T, int8_t>) return 1;
  if constexpr (std::is_same_v<T, uint16_t>) return 2;
  if constexpr (std::is_same_v<T, int16_t>) return 3;
  if constexpr (std::is_same_v<T, uint32_t>) return 4;
  if constexpr (std::is_same_v<T, int32_t>) return 5;
  if constexpr (std::is_same_v<T, float>) return 6;
  if constexpr (std::is_same_v<T, bool>) return 7;
  if constexpr (std::is_same_v<T, std::string>) return 8;
  if constexpr (std::is_same_v<T, uint64_t>) return 10;
  if constexpr (std::is_same_v<T, int64_t>) return 11;
  if constexpr (std::is_same_v<T, double>) return 12;
}

// The number by which ggml tells a tensor's type.
uint32_t GgmlTypeNumber(StorageType type);

// Builds a valid GGUF file. Metadata and tensors stand in the order in which they were added.
class GgufWriter {
 public:
  // `alignment` other than 32 needs the metadata general.alignment, which is the caller's to add.
  explicit GgufWriter(uint32_t version = 3, uint32_t alignment = 32) : version_(version), alignment_(alignment) {}

  // T is one of the types of GgufTypeNumber.
  template <typename T>
  void Add(std::string_view key, const T& value) {
    BeginPair(key).Put(GgufTypeNumber<T>());
    PutValue(value);
  }
  void Add(std::string_view key, const char* value) { Add(key, std::string(value)); }

  template <typename T>
  void AddArray(std::string_view key, const std::vector<T>& values) {
    BeginPair(key).Put(kArrayTypeNumber).Put(GgufTypeNumber<T>()).template Put<uint64_t>(values.size());
    for (const T& value : values) PutValue(value);
  }

  // `shape` is row-major, slowest first; `bytes` are the tensor's as the file stores them.
  void AddTensor(std::string_view name, const std::vector<int64_t>& shape, StorageType type,
                 std::span<const std::byte> bytes);
  // The same from f32 values, rounded to `type`.
  void AddTensor(std::string_view name, const std::vector<int64_t>& shape, StorageType type,
                 std::span<const float> values);

  std::string ToBytes() const;

 private:
  static constexpr uint32_t kArrayTypeNumber = 9;

  GgufBytes& BeginPair(std::string_view key) {
    ++num_pairs_;
    return pairs_.PutString(key);
  }
  template <typename T>
  void PutValue(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      pairs_.PutString(value);
    } else {
      pairs_.Put(value);
    }
  }

  uint32_t version_;
  uint32_t alignment_;
  uint64_t num_pairs_ = 0;
  uint64_t num_tensors_ = 0;
  GgufBytes pairs_;
  GgufBytes infos_;
  GgufBytes data_;
};

// Writes `bytes` to a file, replacing it; throws if it can't.
void WriteFile(const std::string& path, std::string_view bytes);

}  // namespace quire::testing
