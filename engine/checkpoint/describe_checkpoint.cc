#include "engine/checkpoint/describe_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <format>
#include <iterator>
#include <map>

#include "engine/checkpoint/byte_cursor.h"

namespace quire {
namespace {

struct Total {
  int64_t num_tensors = 0;
  int64_t num_elements = 0;
  int64_t num_bytes = 0;

  void Add(const CheckpointTensor& tensor) {
    ++num_tensors;
    num_elements += tensor.num_elements();
    num_bytes += tensor.num_bytes;
  }
};

// "97.3 MiB", with the exact count before it where the unit hides digits.
std::string Bytes(int64_t num_bytes) {
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (num_bytes < 1024) return std::format("{} bytes", num_bytes);
  double value = static_cast<double>(num_bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return std::format("{} bytes ({:.1f} {})", num_bytes, value, kUnits[unit]);
}

std::string Shape(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

template <typename... Args>
void AppendLine(std::string& text, std::format_string<Args...> format, Args&&... args) {
  std::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  text += '\n';
}

void AppendSummary(std::string& text, const Checkpoint& checkpoint) {
  Total total;
  std::map<std::string_view, Total> by_type;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    total.Add(tensor);
    by_type[ToString(tensor.type)].Add(tensor);
  }
  AppendLine(text, "path        {}", checkpoint.path());
  AppendLine(text, "format      {}", checkpoint.format());
  AppendLine(text, "size        {}", Bytes(checkpoint.file_size_bytes()));
  AppendLine(text, "parameters  {}", total.num_elements);
  AppendLine(text, "tensors     {}, {}", total.num_tensors, Bytes(total.num_bytes));
  for (const auto& [type, part] : by_type) {
    AppendLine(text, "  {:<8}  {}, {}, {} parameters", type, part.num_tensors, Bytes(part.num_bytes),
               part.num_elements);
  }
}

void AppendMetadata(std::string& text, const Checkpoint& checkpoint) {
  const std::vector<std::string> keys = checkpoint.Keys();
  size_t width = 0;
  for (const std::string& key : keys) width = std::max(width, Printable(key).size());
  AppendLine(text, "\nmetadata ({})", keys.size());
  for (const std::string& key : keys) {
    AppendLine(text, "  {:<{}}  {}", Printable(key), width, checkpoint.Describe(key));
  }
}

void AppendTensors(std::string& text, const Checkpoint& checkpoint) {
  size_t name_width = 4;
  size_t shape_width = 5;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    name_width = std::max(name_width, Printable(tensor.name).size());
    shape_width = std::max(shape_width, Shape(tensor.shape).size());
  }
  AppendLine(text, "\ntensors ({})", checkpoint.tensors().size());
  if (checkpoint.tensors().empty()) return;
  AppendLine(text, "  {:<{}}  {:<4}  {:<{}}  {:>12}", "name", name_width, "type", "shape", shape_width, "bytes");
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    AppendLine(text, "  {:<{}}  {:<4}  {:<{}}  {:>12}", Printable(tensor.name), name_width, ToString(tensor.type),
               Shape(tensor.shape), shape_width, tensor.num_bytes);
  }
}

}  // namespace

std::string DescribeCheckpoint(const Checkpoint& checkpoint) {
  std::string text;
  AppendSummary(text, checkpoint);
  AppendMetadata(text, checkpoint);
  AppendTensors(text, checkpoint);
  return text;
}

}  // namespace quire
