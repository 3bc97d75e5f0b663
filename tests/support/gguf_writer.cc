#include "tests/support/gguf_writer.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/support/quantize.h"

namespace quire::testing {

uint32_t GgmlTypeNumber(StorageType type) {
  switch (type) {
    case StorageType::kF32: return 0;
    case StorageType::kF16: return 1;
    case StorageType::kQ4_0: return 2;
    case StorageType::kQ4_1: return 3;
    case StorageType::kQ8_0: return 8;
    case StorageType::kBF16: return 30;
  }
  throw std::invalid_argument("GgmlTypeNumber: not a storage type");
}

void GgufWriter::AddTensor(std::string_view name, const std::vector<int64_t>& shape, StorageType type,
                           std::span<const std::byte> bytes) {
  ++num_tensors_;
  data_.PadTo(alignment_);
  infos_.PutString(name).Put(static_cast<uint32_t>(shape.size()));
  for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) infos_.Put(static_cast<uint64_t>(*extent));
  infos_.Put(GgmlTypeNumber(type)).Put<uint64_t>(data_.size());
  data_.PutRaw({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void GgufWriter::AddTensor(std::string_view name, const std::vector<int64_t>& shape, StorageType type,
                           std::span<const float> values) {
  AddTensor(name, shape, type, std::span<const std::byte>(Quantize(type, values)));
}

std::string GgufWriter::ToBytes() const {
  GgufBytes file;
  file.PutRaw("GGUF").Put(version_).Put(num_tensors_).Put(num_pairs_);
  file.PutRaw(pairs_.str()).PutRaw(infos_.str()).PadTo(alignment_).PutRaw(data_.str());
  return file.str();
}

void WriteFile(const std::string& path, std::string_view bytes) {
  // A new file rather than the old one cut: some file systems flush the latter to disk on every close.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace quire::testing
