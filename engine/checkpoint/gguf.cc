#include "engine/checkpoint/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <format>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/base/status.h"
#include "engine/checkpoint/byte_cursor.h"
#include "engine/checkpoint/gguf_metadata.h"
#include "engine/checkpoint/storage_type.h"

namespace quire {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kMinVersion = 2;
constexpr uint32_t kMaxVersion = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr int64_t kDefaultAlignmentBytes = 32;
constexpr uint32_t kMaxDimensions = 4;
constexpr int64_t kMinTensorInfoBytes = 8 + 1 + 4 + 8 + 4 + 8;  // name length, name, rank, dimension, type, offset

absl::Status Malformed(std::string_view what, std::string_view expected, std::string_view found) {
  return absl::InvalidArgumentError(std::format("{}: expected {}, found {}", what, expected, found));
}

// `status` with the file's path before its message.
absl::Status WithPath(const absl::Status& status, const std::string& path) {
  if (status.ok()) return status;
  return absl::Status(status.code(), std::format("{}: {}", path, std::string(status.message())));
}

template <typename T>
absl::StatusOr<T> WithPath(absl::StatusOr<T> value, const std::string& path) {
  if (value.ok()) return value;
  return WithPath(value.status(), path);
}

// What a file says about a tensor, before the place of the data is known.
struct TensorInfo {
  std::string name;
  StorageType type;
  std::vector<int64_t> shape;  // row-major
  int64_t num_bytes;
  uint64_t offset_bytes;  // from the start of the data; unchecked
};

struct Header {
  uint32_t version;
  uint64_t num_tensors;
  uint64_t num_pairs;
};

absl::StatusOr<Header> ReadHeader(ByteCursor& cursor) {
  QUIRE_RETURN_IF_ERROR(cursor.Skip(kMagic.size(), "magic"));
  QUIRE_ASSIGN_OR_RETURN(const uint32_t version, cursor.Read<uint32_t>("version"));
  if (version < kMinVersion || version > kMaxVersion) {
    const bool swapped = (version & 0xffffU) == 0 && version != 0;
    return Malformed("version", "GGUF version 2 or 3, little-endian",
                     swapped ? "a big-endian file" : std::to_string(version));
  }
  QUIRE_ASSIGN_OR_RETURN(const uint64_t num_tensors, cursor.Read<uint64_t>("tensor count"));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t num_pairs, cursor.Read<uint64_t>("metadata count"));
  return Header{version, num_tensors, num_pairs};
}

absl::StatusOr<int64_t> ReadAlignment(const GgufMetadata& metadata) {
  if (!metadata.HasKey(kAlignmentKey)) return kDefaultAlignmentBytes;
  QUIRE_ASSIGN_OR_RETURN(const int64_t alignment, metadata.GetInt(kAlignmentKey));
  const bool accepted = alignment >= 8 && alignment <= std::numeric_limits<uint32_t>::max() &&
                        std::has_single_bit(static_cast<uint64_t>(alignment));
  if (!accepted) {
    return Malformed(kAlignmentKey, "a power of two in [8, 2^31]", std::to_string(alignment));
  }
  return alignment;
}

// Reads the dimensions, which the file gives fastest first, into a row-major shape whose product is an int64_t.
absl::StatusOr<std::vector<int64_t>> ReadShape(ByteCursor& cursor, std::string_view what) {
  QUIRE_ASSIGN_OR_RETURN(const uint32_t rank, cursor.Read<uint32_t>(what));
  if (rank < 1 || rank > kMaxDimensions) {
    return Malformed(what, std::format("1 to {} dimensions", kMaxDimensions), std::to_string(rank));
  }
  std::vector<int64_t> shape(rank);
  int64_t num_elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t extent, cursor.Read<uint64_t>(what));
    const auto max_extent = static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / num_elements);
    if (extent < 1 || extent > max_extent) {
      return Malformed(what, "dimensions of at least 1 whose product is below 2^63",
                       std::format("a dimension of {} after {} elements", extent, num_elements));
    }
    num_elements *= static_cast<int64_t>(extent);
    shape[rank - 1 - i] = static_cast<int64_t>(extent);
  }
  return shape;
}

// Bytes of a tensor of whole blocks, at most `max_bytes`.
absl::StatusOr<int64_t> TensorBytes(const TensorInfo& info, int64_t max_bytes, std::string_view what) {
  const StorageBlock block = BlockOf(info.type);
  if (info.shape.back() % block.num_elements != 0) {
    return Malformed(what,
                     std::format("rows of a multiple of {} elements for {}", block.num_elements, ToString(info.type)),
                     std::to_string(info.shape.back()));
  }
  int64_t num_blocks = 1;
  for (const int64_t extent : info.shape) num_blocks *= extent;  // fits, by ReadShape
  num_blocks /= block.num_elements;
  if (num_blocks > max_bytes / block.num_bytes) {
    return Malformed(what, std::format("a tensor of at most the file's {} bytes", max_bytes),
                     std::format("{} blocks of {} bytes", num_blocks, block.num_bytes));
  }
  return num_blocks * block.num_bytes;
}

absl::StatusOr<TensorInfo> ReadTensorInfo(ByteCursor& cursor, uint64_t number, int64_t file_size_bytes) {
  const std::string numbered = std::format("tensor {}", number);
  QUIRE_ASSIGN_OR_RETURN(const std::string_view name, cursor.ReadString(numbered));
  if (name.empty()) return Malformed(numbered, "a name", "an empty one");
  const std::string what = std::format("tensor {}", Printable(name));
  TensorInfo info;
  info.name = name;
  QUIRE_ASSIGN_OR_RETURN(info.shape, ReadShape(cursor, what));
  QUIRE_ASSIGN_OR_RETURN(const uint32_t ggml_type, cursor.Read<uint32_t>(what));
  const std::optional<StorageType> type = StorageTypeOfGgml(ggml_type);
  if (!type) {
    return Malformed(what, std::format("one of the types {}", ReadableStorageTypes()), GgmlTypeName(ggml_type));
  }
  info.type = *type;
  QUIRE_ASSIGN_OR_RETURN(info.num_bytes, TensorBytes(info, file_size_bytes, what));
  QUIRE_ASSIGN_OR_RETURN(info.offset_bytes, cursor.Read<uint64_t>(what));
  return info;
}

absl::StatusOr<std::vector<TensorInfo>> ReadTensorInfos(ByteCursor& cursor, uint64_t count, int64_t file_size_bytes) {
  const int64_t max_count = cursor.remaining_bytes() / kMinTensorInfoBytes;
  if (count > static_cast<uint64_t>(max_count)) {
    return Malformed("tensor count",
                     std::format("at most {}, as the file has {} bytes left", max_count, cursor.remaining_bytes()),
                     std::to_string(count));
  }
  std::vector<TensorInfo> infos;
  for (uint64_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(TensorInfo info, ReadTensorInfo(cursor, i, file_size_bytes));
    infos.push_back(std::move(info));
  }
  return infos;
}

// Gives every tensor its bytes in the data, `data_bytes` that begin at byte `data_begin` of the file.
absl::StatusOr<std::vector<CheckpointTensor>> PlaceTensors(std::vector<TensorInfo> infos, int64_t data_begin,
                                                           int64_t data_bytes, int64_t alignment_bytes) {
  std::vector<CheckpointTensor> tensors;
  tensors.reserve(infos.size());
  for (TensorInfo& info : infos) {
    const std::string what = std::format("tensor {}", Printable(info.name));
    if (info.offset_bytes % static_cast<uint64_t>(alignment_bytes) != 0) {
      return Malformed(what, std::format("an offset that is a multiple of {}", alignment_bytes),
                       std::to_string(info.offset_bytes));
    }
    const auto max_offset = static_cast<uint64_t>(data_bytes);
    if (info.offset_bytes > max_offset || static_cast<uint64_t>(info.num_bytes) > max_offset - info.offset_bytes) {
      return Malformed(what,
                       std::format("{} bytes at offset {} of the data, which begins at byte {}", info.num_bytes,
                                   info.offset_bytes, data_begin),
                       std::format("a file whose data ends after {} bytes", data_bytes));
    }
    const int64_t offset_bytes = data_begin + static_cast<int64_t>(info.offset_bytes);
    tensors.push_back({std::move(info.name), info.type, std::move(info.shape), offset_bytes, info.num_bytes});
  }
  return tensors;
}

// Tensors that share bytes would let a small file claim any number of parameters.
absl::Status CheckNoOverlap(std::span<const CheckpointTensor> tensors) {
  std::vector<const CheckpointTensor*> by_place;
  by_place.reserve(tensors.size());
  for (const CheckpointTensor& tensor : tensors) by_place.push_back(&tensor);
  std::sort(by_place.begin(), by_place.end(),
            [](const auto* a, const auto* b) { return a->offset_bytes < b->offset_bytes; });
  for (size_t i = 1; i < by_place.size(); ++i) {
    if (by_place[i - 1]->offset_bytes + by_place[i - 1]->num_bytes > by_place[i]->offset_bytes) {
      return Malformed(std::format("tensor {}", Printable(by_place[i]->name)), "bytes of its own",
                       std::format("bytes of tensor {} in its place", Printable(by_place[i - 1]->name)));
    }
  }
  return absl::OkStatus();
}

class GgufCheckpoint final : public Checkpoint {
 public:
  using TensorIndex = std::map<std::string, size_t, std::less<>>;  // name -> place in tensors

  GgufCheckpoint(MappedFile file, int64_t file_size_bytes, uint32_t version, GgufMetadata metadata,
                 std::vector<CheckpointTensor> tensors, TensorIndex index)
      : file_(std::move(file)),
        file_size_bytes_(file_size_bytes),
        format_(std::format("GGUF v{}", version)),
        metadata_(std::move(metadata)),
        tensors_(std::move(tensors)),
        index_(std::move(index)) {}

  const std::string& path() const override { return file_.path(); }
  std::string_view format() const override { return format_; }
  int64_t file_size_bytes() const override { return file_size_bytes_; }

  std::span<const CheckpointTensor> tensors() const override { return tensors_; }
  const CheckpointTensor* FindTensor(std::string_view name) const override {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &tensors_[found->second];
  }

  bool HasKey(std::string_view key) const override { return metadata_.HasKey(key); }
  std::vector<std::string> Keys() const override { return metadata_.Keys(); }
  absl::StatusOr<int64_t> GetInt(std::string_view key) const override { return Pathed(metadata_.GetInt(key)); }
  absl::StatusOr<double> GetFloat(std::string_view key) const override { return Pathed(metadata_.GetFloat(key)); }
  absl::StatusOr<bool> GetBool(std::string_view key) const override { return Pathed(metadata_.GetBool(key)); }
  absl::StatusOr<std::string> GetString(std::string_view key) const override {
    return Pathed(metadata_.GetString(key));
  }
  absl::StatusOr<std::vector<std::string>> GetStringArray(std::string_view key) const override {
    return Pathed(metadata_.GetStringArray(key));
  }
  absl::StatusOr<std::vector<int64_t>> GetIntArray(std::string_view key) const override {
    return Pathed(metadata_.GetIntArray(key));
  }
  absl::StatusOr<std::vector<float>> GetFloatArray(std::string_view key) const override {
    return Pathed(metadata_.GetFloatArray(key));
  }
  std::string Describe(std::string_view key) const override { return metadata_.Describe(key); }

  absl::Status ReadTensor(const CheckpointTensor& tensor, int64_t offset_bytes,
                          std::span<std::byte> out) const override {
    QUIRE_CHECK_LE(offset_bytes + static_cast<int64_t>(out.size()), tensor.num_bytes);
    return file_.Read(tensor.offset_bytes + offset_bytes, out);
  }

 private:
  template <typename T>
  absl::StatusOr<T> Pathed(absl::StatusOr<T> value) const {
    return WithPath(std::move(value), path());
  }

  MappedFile file_;  // of which the header is mapped: metadata points into it
  int64_t file_size_bytes_;
  std::string format_;
  GgufMetadata metadata_;
  std::vector<CheckpointTensor> tensors_;
  TensorIndex index_;
};

absl::StatusOr<GgufCheckpoint::TensorIndex> IndexTensors(std::span<const CheckpointTensor> tensors) {
  GgufCheckpoint::TensorIndex index;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!index.emplace(tensors[i].name, i).second) {
      return Malformed(std::format("tensor {}", Printable(tensors[i].name)), "each name once", "it twice");
    }
  }
  return index;
}

// As OpenGguf; errors lack the path.
absl::StatusOr<std::unique_ptr<Checkpoint>> ReadGguf(MappedFile& file) {
  const auto file_size_bytes = static_cast<int64_t>(file.bytes().size());
  ByteCursor cursor(file.bytes());
  QUIRE_ASSIGN_OR_RETURN(const Header header, ReadHeader(cursor));
  QUIRE_ASSIGN_OR_RETURN(GgufMetadata metadata, GgufMetadata::Read(cursor, header.num_pairs));
  QUIRE_ASSIGN_OR_RETURN(const int64_t alignment, ReadAlignment(metadata));
  QUIRE_ASSIGN_OR_RETURN(std::vector<TensorInfo> infos, ReadTensorInfos(cursor, header.num_tensors, file_size_bytes));
  // A file without tensors may end before its data would begin.
  const int64_t data_begin = AlignUp(cursor.offset_bytes(), alignment);
  const int64_t data_bytes = std::max<int64_t>(0, file_size_bytes - data_begin);
  QUIRE_ASSIGN_OR_RETURN(std::vector<CheckpointTensor> tensors,
                         PlaceTensors(std::move(infos), data_begin, data_bytes, alignment));
  QUIRE_RETURN_IF_ERROR(CheckNoOverlap(tensors));
  QUIRE_ASSIGN_OR_RETURN(GgufCheckpoint::TensorIndex index, IndexTensors(tensors));
  file.KeepFirst(cursor.offset_bytes());
  return std::make_unique<GgufCheckpoint>(std::move(file), file_size_bytes, header.version, std::move(metadata),
                                          std::move(tensors), std::move(index));
}

}  // namespace

bool IsGguf(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenGguf(MappedFile file) {
  const std::string path = file.path();
  return WithPath(ReadGguf(file), path);
}

}  // namespace quire
