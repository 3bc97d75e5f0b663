#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/strings.h"
#include "engine/checkpoint/checkpoint.h"

namespace quire::testing {

// A checkpoint that has metadata only, set by hand.
class FakeCheckpoint : public Checkpoint {
 public:
  using Value = std::variant<int64_t, double, bool, std::string, std::vector<std::string>, std::vector<int64_t>,
                             std::vector<float>>;
  std::map<std::string, Value, std::less<>> metadata;

  const std::string& path() const override { return path_; }
  std::string_view format() const override { return "fake"; }
  int64_t file_size_bytes() const override { return 0; }
  std::span<const CheckpointTensor> tensors() const override { return {}; }
  const CheckpointTensor* FindTensor(std::string_view) const override { return nullptr; }
  std::vector<std::string> Keys() const override { return {}; }
  bool HasKey(std::string_view key) const override { return metadata.contains(key); }
  absl::StatusOr<int64_t> GetInt(std::string_view key) const override { return Get<int64_t>(key); }
  absl::StatusOr<double> GetFloat(std::string_view key) const override { return Get<double>(key); }
  absl::StatusOr<bool> GetBool(std::string_view key) const override { return Get<bool>(key); }
  absl::StatusOr<std::string> GetString(std::string_view key) const override { return Get<std::string>(key); }
  absl::StatusOr<std::vector<std::string>> GetStringArray(std::string_view key) const override {
    return Get<std::vector<std::string>>(key);
  }
  absl::StatusOr<std::vector<int64_t>> GetIntArray(std::string_view key) const override {
    return Get<std::vector<int64_t>>(key);
  }
  absl::StatusOr<std::vector<float>> GetFloatArray(std::string_view key) const override {
    return Get<std::vector<float>>(key);
  }
  std::string Describe(std::string_view) const override { return ""; }
  absl::Status ReadTensor(const CheckpointTensor&, int64_t, std::span<std::byte>) const override {
    return absl::DataLossError("no tensors");
  }

 private:
  template <typename T>
  absl::StatusOr<T> Get(std::string_view key) const {
    const auto found = metadata.find(key);
    if (found == metadata.end()) return absl::NotFoundError(StrCat("no key ", std::string(key)));
    const T* value = std::get_if<T>(&found->second);
    if (value == nullptr) return absl::InvalidArgumentError(StrCat("another type: ", std::string(key)));
    return *value;
  }

  std::string path_ = "fake";
};

// A byte-level vocabulary: the ASCII letters a to z, space (written U+0120), the four bytes of an emoji (F0 9F 98 80),
// some merges, and a control and a user-defined token.
inline FakeCheckpoint MakeByteLevelCheckpoint() {
  FakeCheckpoint checkpoint;
  std::vector<std::string> tokens = {"<|end|>", "<tool>", "<|im_end|>"};
  std::vector<int64_t> kinds = {3, 4, 3};
  for (char letter = 'a'; letter <= 'z'; ++letter) tokens.emplace_back(1, letter);
  for (const char* token : {"Ġ", "ð", "Ł", "ĺ", "Ģ", "ab", "Ġab", "<", ">", "|", "_"}) tokens.emplace_back(token);
  kinds.resize(tokens.size(), 1);
  checkpoint.metadata["tokenizer.ggml.model"] = std::string("gpt2");
  checkpoint.metadata["tokenizer.ggml.pre"] = std::string("smollm");
  checkpoint.metadata["tokenizer.ggml.tokens"] = tokens;
  checkpoint.metadata["tokenizer.ggml.token_type"] = kinds;
  checkpoint.metadata["tokenizer.ggml.merges"] = std::vector<std::string>{"a b", "Ġ ab"};
  checkpoint.metadata["tokenizer.ggml.eos_token_id"] = int64_t{0};
  return checkpoint;
}

}  // namespace quire::testing
