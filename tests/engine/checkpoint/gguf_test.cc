#include "engine/checkpoint/gguf.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/describe_checkpoint.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_model.h"

namespace quire {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::GgufWriter;

std::unique_ptr<Checkpoint> Opened(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = OpenCheckpoint(path);
  INFO(checkpoint.status());
  REQUIRE(checkpoint.ok());
  return *std::move(checkpoint);
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

std::vector<std::byte> BytesOf(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.num_bytes));
  REQUIRE(checkpoint.ReadTensor(tensor, 0, bytes).ok());
  return bytes;
}

std::vector<float> Ramp(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), -3.0F);
  return values;
}

void AddOneOfEachType(GgufWriter& writer) {
  writer.Add<uint8_t>("u8", 255);
  writer.Add<int8_t>("i8", -128);
  writer.Add<uint16_t>("u16", 65535);
  writer.Add<int16_t>("i16", -32768);
  writer.Add<uint32_t>("u32", 4294967295U);
  writer.Add<int32_t>("i32", -2147483647);
  writer.Add<uint64_t>("u64", std::numeric_limits<int64_t>::max());
  writer.Add<int64_t>("i64", std::numeric_limits<int64_t>::min());
  writer.Add<float>("f32", 0.25F);
  writer.Add<double>("f64", 1e300);
  writer.Add<bool>("yes", true);
  writer.Add<bool>("no", false);
  writer.Add("text", "caf\xc3\xa9");
  writer.Add("empty", "");
}

TEST_CASE("every type of scalar is read back") {
  const testing::TempDir dir;
  const uint32_t version = GENERATE(2U, 3U);
  GgufWriter writer(version);
  AddOneOfEachType(writer);
  testing::WriteFile(dir.File("a.gguf"), writer.ToBytes());
  const auto checkpoint = Opened(dir.File("a.gguf"));

  CHECK(checkpoint->format() == (version == 2 ? "GGUF v2" : "GGUF v3"));
  CHECK(checkpoint->GetInt("u8").value() == 255);
  CHECK(checkpoint->GetInt("i8").value() == -128);
  CHECK(checkpoint->GetInt("u16").value() == 65535);
  CHECK(checkpoint->GetInt("i16").value() == -32768);
  CHECK(checkpoint->GetInt("u32").value() == 4294967295);
  CHECK(checkpoint->GetInt("i32").value() == -2147483647);
  CHECK(checkpoint->GetInt("u64").value() == std::numeric_limits<int64_t>::max());
  CHECK(checkpoint->GetInt("i64").value() == std::numeric_limits<int64_t>::min());
  CHECK(checkpoint->GetInt("yes").value() == 1);
  CHECK(checkpoint->GetFloat("f32").value() == 0.25);
  CHECK(checkpoint->GetFloat("f64").value() == 1e300);
  CHECK(checkpoint->GetFloat("i8").value() == -128.0);
  CHECK(checkpoint->GetBool("yes").value());
  CHECK_FALSE(checkpoint->GetBool("no").value());
  CHECK(checkpoint->GetString("text").value() == "caf\xc3\xa9");
  CHECK(checkpoint->GetString("empty").value().empty());
  CHECK(checkpoint->Keys().size() == 14);
  CHECK(checkpoint->Keys().front() == "u8");
  CHECK(checkpoint->tensors().empty());
}

TEST_CASE("arrays are read back") {
  const testing::TempDir dir;
  GgufWriter writer;
  writer.AddArray<std::string>("words", {"a", "", "b c"});
  writer.AddArray<int32_t>("counts", {3, -1, 2147483647});
  writer.AddArray<float>("scores", {0.5F, -1.0F});
  writer.AddArray<bool>("flags", {true, false, true});
  writer.AddArray<std::string>("none", {});
  testing::WriteFile(dir.File("a.gguf"), writer.ToBytes());
  const auto checkpoint = Opened(dir.File("a.gguf"));

  CHECK(checkpoint->GetStringArray("words").value() == std::vector<std::string>{"a", "", "b c"});
  CHECK(checkpoint->GetIntArray("counts").value() == std::vector<int64_t>{3, -1, 2147483647});
  CHECK(checkpoint->GetIntArray("flags").value() == std::vector<int64_t>{1, 0, 1});
  CHECK(checkpoint->GetFloatArray("scores").value() == std::vector<float>{0.5F, -1.0F});
  CHECK(checkpoint->GetFloatArray("counts").value()[0] == 3.0F);
  CHECK(checkpoint->GetStringArray("none").value().empty());
  CHECK(checkpoint->GetIntArray("none").value().empty());
}

TEST_CASE("a missing key and a key of another type are named, with the path") {
  const testing::TempDir dir;
  GgufWriter writer;
  AddOneOfEachType(writer);
  writer.AddArray<std::string>("words", {"a"});
  const std::string path = dir.File("a.gguf");
  testing::WriteFile(path, writer.ToBytes());
  const auto checkpoint = Opened(path);

  CHECK(checkpoint->GetInt("absent").status().code() == absl::StatusCode::kNotFound);
  CHECK(MessageOf(checkpoint->GetInt("absent").status()) == path + ": absent: expected this metadata key, found none");
  CHECK(checkpoint->GetInt("text").status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(MessageOf(checkpoint->GetInt("text").status()) == path + ": text: expected an integer, found a string");
  CHECK(MessageOf(checkpoint->GetInt("f32").status()) == path + ": f32: expected an integer, found a float32");
  CHECK(MessageOf(checkpoint->GetString("u8").status()) == path + ": u8: expected a string, found a uint8");
  CHECK(MessageOf(checkpoint->GetBool("u8").status()) == path + ": u8: expected a bool, found a uint8");
  CHECK(MessageOf(checkpoint->GetFloat("text").status()) == path + ": text: expected a number, found a string");
  CHECK_THAT(MessageOf(checkpoint->GetIntArray("words").status()),
             ContainsSubstring("words: expected an array of integers, found an array with a string in it"));
  CHECK_THAT(MessageOf(checkpoint->GetStringArray("text").status()),
             ContainsSubstring("text: expected an array of strings, found a string"));
}

TEST_CASE("an integer of 2^63 or more is not an int64") {
  const testing::TempDir dir;
  GgufWriter writer;
  writer.Add<uint64_t>("large", uint64_t{1} << 63);
  testing::WriteFile(dir.File("a.gguf"), writer.ToBytes());
  const auto checkpoint = Opened(dir.File("a.gguf"));
  CHECK_THAT(MessageOf(checkpoint->GetInt("large").status()),
             ContainsSubstring("large: expected an integer below 2^63, found 9223372036854775808"));
  CHECK(checkpoint->Describe("large") == "9223372036854775808");
}

TEST_CASE("tensors are read back: row-major shapes, every type, aligned bytes") {
  const testing::TempDir dir;
  const uint32_t alignment = GENERATE(8U, 32U, 4096U);
  GgufWriter writer(3, alignment);
  writer.Add<uint32_t>("general.alignment", alignment);
  const std::vector<StorageType> types = {StorageType::kF32,  StorageType::kF16,  StorageType::kBF16,
                                          StorageType::kQ8_0, StorageType::kQ4_0, StorageType::kQ4_1};
  for (const StorageType type : types) writer.AddTensor(std::string(ToString(type)), {3, 64}, type, Ramp(3 * 64));
  writer.AddTensor("deep", {2, 3, 4, 5}, StorageType::kF32, Ramp(120));
  testing::WriteFile(dir.File("a.gguf"), writer.ToBytes());
  const auto checkpoint = Opened(dir.File("a.gguf"));

  REQUIRE(checkpoint->tensors().size() == 7);
  for (size_t i = 0; i < types.size(); ++i) {
    const CheckpointTensor* tensor = checkpoint->FindTensor(ToString(types[i]));
    REQUIRE(tensor == &checkpoint->tensors()[i]);
    CHECK(tensor->type == types[i]);
    CHECK(tensor->shape == std::vector<int64_t>{3, 64});
    CHECK(tensor->num_elements() == 192);
    CHECK(tensor->offset_bytes % alignment == 0);
    std::vector<float> values(192);
    Dequantize(tensor->type, BytesOf(*checkpoint, *tensor), values);
    CHECK(values[0] == Catch::Approx(-3.0F).margin(6.5));
    CHECK(values[191] == Catch::Approx(188.0F).margin(6.5));
  }
  const CheckpointTensor* deep = checkpoint->FindTensor("deep");
  REQUIRE(deep != nullptr);
  CHECK(deep->shape == std::vector<int64_t>{2, 3, 4, 5});
  float last = 0;
  CHECK(checkpoint->ReadTensor(*deep, 119 * 4, std::as_writable_bytes(std::span(&last, 1))).ok());
  CHECK(last == 116.0F);
  CHECK(checkpoint->FindTensor("absent") == nullptr);
}

TEST_CASE("a file cut short after it was opened: tensors past its end are an error, all else is there") {
  const testing::TempDir dir;
  const std::string path = testing::WriteTinyModel({}, dir.File("tiny.gguf"));
  const auto checkpoint = Opened(path);
  const auto tensors = checkpoint->tensors();
  const auto by_offset = [](const auto& a, const auto& b) { return a.offset_bytes < b.offset_bytes; };
  const CheckpointTensor& first = *std::ranges::min_element(tensors, by_offset);
  const CheckpointTensor& last = *std::ranges::max_element(tensors, by_offset);
  const std::vector<std::byte> before = BytesOf(*checkpoint, first);
  std::filesystem::resize_file(path, static_cast<uintmax_t>(last.offset_bytes + last.num_bytes - 1));

  CHECK(BytesOf(*checkpoint, first) == before);
  std::vector<std::byte> bytes(static_cast<size_t>(last.num_bytes));
  CHECK(checkpoint->ReadTensor(last, 0, std::span(bytes).first(bytes.size() - 1)).ok());
  const absl::Status status = checkpoint->ReadTensor(last, 0, bytes);
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(MessageOf(status), ContainsSubstring(path) && ContainsSubstring("cut short"));
  CHECK(checkpoint->GetStringArray("tokenizer.ggml.tokens").ok());
}

TEST_CASE("the tiny model has what a llama model has") {
  const testing::TempDir dir;
  testing::TinyModelOptions options;
  options.storage_type = GENERATE(StorageType::kF32, StorageType::kF16, StorageType::kQ4_1);
  options.tied_embeddings = GENERATE(true, false);
  const auto checkpoint = Opened(testing::WriteTinyModel(options, dir.File("tiny.gguf")));

  CHECK(checkpoint->tensors().size() == (options.tied_embeddings ? 20 : 21));
  CHECK((checkpoint->FindTensor("output.weight") == nullptr) == options.tied_embeddings);
  CHECK(checkpoint->FindTensor("blk.1.ffn_down.weight")->shape == std::vector<int64_t>{64, 96});
  CHECK(checkpoint->FindTensor("blk.0.attn_k.weight")->shape == std::vector<int64_t>{32, 64});
  CHECK(checkpoint->FindTensor("blk.0.attn_k.weight")->type == options.storage_type);
  CHECK(checkpoint->GetStringArray("tokenizer.ggml.tokens")->size() == 320);
  CHECK(checkpoint->GetIntArray("tokenizer.ggml.token_type")->size() == 320);
  CHECK(checkpoint->GetStringArray("tokenizer.ggml.tokens").value()[testing::kTinyFirstByte] == "!");
  CHECK(checkpoint->GetStringArray("tokenizer.ggml.tokens").value()[testing::kTinyFirstByte + 255] == "\xc5\x83");
}

TEST_CASE("the tiny model follows from its seed") {
  const testing::TempDir dir;
  const auto first = Opened(testing::WriteTinyModel({}, dir.File("a.gguf")));
  const auto again = Opened(testing::WriteTinyModel({}, dir.File("b.gguf")));
  testing::TinyModelOptions other_seed;
  other_seed.seed = 2;
  const auto other = Opened(testing::WriteTinyModel(other_seed, dir.File("c.gguf")));
  const auto embedding = [](const Checkpoint& checkpoint) {
    return BytesOf(checkpoint, *checkpoint.FindTensor("token_embd.weight"));
  };
  CHECK(embedding(*first) == embedding(*again));
  CHECK_FALSE(embedding(*first) == embedding(*other));
}

TEST_CASE("what is not a model file is refused in one sentence") {
  const testing::TempDir dir;
  const auto message = [&](const std::string& path, absl::StatusCode code) {
    const absl::Status status = OpenCheckpoint(path).status();
    CHECK(status.code() == code);
    return MessageOf(status);
  };
  const std::string missing = dir.File("missing.gguf");
  CHECK(message(missing, absl::StatusCode::kNotFound) ==
        missing + ": expected a model file, found nothing at this path");
  const std::string folder = dir.path().string();
  CHECK(message(folder, absl::StatusCode::kInvalidArgument) == folder + ": expected a model file, found a directory");
  CHECK(message("/dev/null", absl::StatusCode::kInvalidArgument) ==
        "/dev/null: expected a model file, found something that is not a regular file");
  const std::string path = dir.File("x");
  testing::WriteFile(path, "");
  CHECK(message(path, absl::StatusCode::kInvalidArgument) == path + ": expected a GGUF file, found an empty file");
  testing::WriteFile(path, "PK\x03\x04 and more");
  CHECK(message(path, absl::StatusCode::kInvalidArgument) ==
        path + ": expected a GGUF file, which begins with \"GGUF\", found \"PK\\x03\\x04\"");
  testing::WriteFile(path, "GG");
  CHECK_THAT(message(path, absl::StatusCode::kInvalidArgument), ContainsSubstring("found \"GG\""));
}

TEST_CASE("files of other writers open with the right counts") {
  const auto tiny = Opened(testing::RequireTestData("gguf/llama-2-tiny-random.gguf").string());
  CHECK(tiny->tensors().size() == 12);
  CHECK(tiny->Keys().size() == 18);
  CHECK(tiny->GetString("general.architecture").value() == "llama");
  const auto gpt2 = Opened(testing::RequireTestData("gguf/vocab-gpt-2.gguf").string());
  CHECK(gpt2->tensors().empty());
  CHECK(gpt2->Keys().size() == 16);
  CHECK(gpt2->GetStringArray("tokenizer.ggml.tokens")->size() == 50257);
  const auto spm = Opened(testing::RequireTestData("gguf/vocab-llama-spm.gguf").string());
  CHECK(spm->Keys().size() == 22);
  CHECK(spm->GetFloatArray("tokenizer.ggml.scores")->size() == 32000);
}

TEST_CASE("the real model opens") {
  const auto checkpoint = Opened(testing::RequireModel().string());
  CHECK(checkpoint->format() == "GGUF v3");
  CHECK(checkpoint->tensors().size() == 272);
  CHECK(checkpoint->Keys().size() == 33);
  CHECK(checkpoint->GetInt("llama.block_count").value() == 30);
  CHECK(checkpoint->GetFloat("llama.rope.freq_base").value() == 100000.0);
  CHECK(checkpoint->GetStringArray("tokenizer.ggml.tokens")->size() == 49152);
  CHECK(checkpoint->FindTensor("token_embd.weight")->shape == std::vector<int64_t>{49152, 576});
  CHECK(checkpoint->FindTensor("token_embd.weight")->type == StorageType::kQ8_0);
  CHECK(checkpoint->FindTensor("blk.29.ffn_down.weight")->shape == std::vector<int64_t>{576, 1536});
  int64_t num_parameters = 0;
  for (const CheckpointTensor& tensor : checkpoint->tensors()) num_parameters += tensor.num_elements();
  CHECK(num_parameters == 134515008);
}

TEST_CASE("a checkpoint is described for a person") {
  const testing::TempDir dir;
  const auto checkpoint = Opened(testing::WriteTinyModel({}, dir.File("tiny.gguf")));
  const std::string text = DescribeCheckpoint(*checkpoint);
  CHECK_THAT(text, ContainsSubstring("format      GGUF v3\n"));
  CHECK_THAT(text, ContainsSubstring("path        " + dir.File("tiny.gguf") + "\n"));
  CHECK_THAT(text, ContainsSubstring("tensors     20, "));
  CHECK_THAT(text, ContainsSubstring("[\"<|endoftext|>\", \"<|im_start|>\", \"<|im_end|>\", "));
  CHECK_THAT(text, ContainsSubstring(", ...] (320 x string)"));
  CHECK_THAT(text, ContainsSubstring("blk.0.attn_k.weight       F32   [32, 64]           8192\n"));
  CHECK(text.back() == '\n');
  CHECK(text.size() < 8000);
}

}  // namespace
}  // namespace quire
