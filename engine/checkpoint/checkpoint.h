#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

// How a tensor's elements are stored in a file. Quantized types are GGUF's: blocks of 32 elements.
enum class StorageType { kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_1 };

std::string_view ToString(StorageType type);

// Elements in a storage block, and its bytes: {1, 4} for F32, {32, 20} for Q4_1.
struct StorageBlock {
  int64_t num_elements;
  int64_t num_bytes;
};
StorageBlock BlockOf(StorageType type);

// Dequantizes `bytes` (whole blocks) into `out`; bytes.size() must be out.size() elements' worth.
// Formats: ggml's block_q8_0 {f16 d; i8 q[32]}, block_q4_0 {f16 d; u8 q[16]} (value (q - 8) * d; low nibbles are
// elements 0-15, high 16-31), block_q4_1 {f16 d; f16 m; u8 q[16]} (value q * d + m).
void Dequantize(StorageType type, std::span<const std::byte> bytes, std::span<float> out);

// The quants of Q8_0, Q4_0 or Q4_1 `bytes` (whole blocks) as they are, for kernels that compute with them: `quants` is
// each element's q (Q8_0: q + 128), `scales` and `minima` each block's halves d and m; for a Q4_0 block m = -8 d, so
// that d * q + m holds for it too.
void UnpackQuants(StorageType type, std::span<const std::byte> bytes, uint8_t* quants, uint16_t* scales,
                  uint16_t* minima);

// One tensor of a checkpoint. `shape` is row-major, slowest first: a linear layer is [out_features, in_features].
// Its bytes stay in the file until Checkpoint::ReadTensor asks for them.
struct CheckpointTensor {
  std::string name;
  StorageType type;
  std::vector<int64_t> shape;
  int64_t offset_bytes;  // in the file
  int64_t num_bytes;

  int64_t num_elements() const;
};

// A model file, whatever its format: names, shapes, types, metadata, tensors' bytes. Everything is checked
// against the file when it is opened, so accessors can't run past it. Immutable; thread-safe.
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  virtual const std::string& path() const = 0;
  virtual std::string_view format() const = 0;  // "GGUF v3"
  virtual int64_t file_size_bytes() const = 0;

  // Tensors in file order.
  virtual std::span<const CheckpointTensor> tensors() const = 0;
  // nullptr if there is none of that name.
  virtual const CheckpointTensor* FindTensor(std::string_view name) const = 0;

  // Metadata by GGUF key ("llama.block_count"). NotFound names a missing key, InvalidArgument one of another type.
  // Unsigned, signed and boolean scalars of any width answer GetInt; f32 and f64, and integers, answer GetFloat.
  virtual bool HasKey(std::string_view key) const = 0;
  virtual std::vector<std::string> Keys() const = 0;
  virtual absl::StatusOr<int64_t> GetInt(std::string_view key) const = 0;
  virtual absl::StatusOr<double> GetFloat(std::string_view key) const = 0;
  virtual absl::StatusOr<bool> GetBool(std::string_view key) const = 0;
  virtual absl::StatusOr<std::string> GetString(std::string_view key) const = 0;
  virtual absl::StatusOr<std::vector<std::string>> GetStringArray(std::string_view key) const = 0;
  virtual absl::StatusOr<std::vector<int64_t>> GetIntArray(std::string_view key) const = 0;
  virtual absl::StatusOr<std::vector<float>> GetFloatArray(std::string_view key) const = 0;

  // The value as a person would print it; long arrays are shortened. For `inspect`.
  virtual std::string Describe(std::string_view key) const = 0;

  // Fills `out` with a tensor's bytes from `offset_bytes` of it on; they must lie within the tensor. DataLoss if the
  // file does not have them any more.
  virtual absl::Status ReadTensor(const CheckpointTensor& tensor, int64_t offset_bytes,
                                  std::span<std::byte> out) const = 0;
};

// Opens a model file; the format is told from its first bytes. Errors are one sentence: the path, what was
// expected, what was found (NotFound, InvalidArgument).
absl::StatusOr<std::unique_ptr<Checkpoint>> OpenCheckpoint(const std::string& path);

}  // namespace quire
