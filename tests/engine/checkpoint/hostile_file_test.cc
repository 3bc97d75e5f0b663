#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/describe_checkpoint.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"

namespace quire {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using testing::GgufBytes;

constexpr uint64_t kHuge = uint64_t{1} << 60;
constexpr uint32_t kTypeF32 = 0;
constexpr uint32_t kTypeQ4_1 = 3;

// Writes `bytes` as a file, opens it and returns the error, which must begin with the path; "" if it opens.
std::string ErrorOf(std::string_view bytes) {
  const testing::TempDir dir;
  const std::string path = dir.File("hostile.gguf");
  testing::WriteFile(path, bytes);
  const absl::Status status = OpenCheckpoint(path).status();
  if (status.ok()) return "";
  const std::string message(status.message());
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(message, StartsWith(path + ": "));
  CHECK_THAT(message, ContainsSubstring("expected ") && ContainsSubstring("found "));
  CHECK(message.find('\n') == std::string::npos);
  return message.substr(path.size() + 2);
}

GgufBytes Header(uint64_t num_tensors, uint64_t num_pairs, uint32_t version = 3) {
  return GgufBytes().PutRaw("GGUF").Put(version).Put(num_tensors).Put(num_pairs);
}

// One pair: its key, type number and the value's bytes.
std::string WithPair(uint32_t type, const GgufBytes& value) {
  return Header(0, 1).PutString("key").Put(type).PutRaw(value.str()).str();
}

struct LyingTensor {
  std::string name = "t";
  std::vector<uint64_t> dimensions = {32, 2};  // fastest first
  uint32_t type = kTypeF32;
  uint64_t offset = 0;
};

std::string WithTensors(const std::vector<LyingTensor>& tensors, size_t num_data_bytes) {
  GgufBytes file = Header(tensors.size(), 0);
  for (const LyingTensor& tensor : tensors) {
    file.PutString(tensor.name).Put(static_cast<uint32_t>(tensor.dimensions.size()));
    for (const uint64_t dimension : tensor.dimensions) file.Put(dimension);
    file.Put(tensor.type).Put(tensor.offset);
  }
  return file.PadTo(32).PutRaw(std::string(num_data_bytes, '\0')).str();
}

std::string SmallFile() {
  testing::GgufWriter writer;
  writer.Add("general.architecture", "llama");
  writer.Add<uint32_t>("general.alignment", 32);
  writer.AddArray<std::string>("tokenizer.ggml.tokens", {"a", "bc", ""});
  writer.AddArray<int32_t>("tokenizer.ggml.token_type", {1, 1, 3});
  writer.AddArray<bool>("flags", {true, false});
  writer.Add("flag", true);
  writer.Add("scale", 1.5);
  writer.AddTensor("norm", {32}, StorageType::kF32, std::vector<float>(32, 1.0F));
  writer.AddTensor("weight", {4, 64}, StorageType::kQ4_1, std::vector<float>(256, 0.5F));
  writer.AddTensor("half", {2, 3, 16}, StorageType::kF16, std::vector<float>(96, 0.25F));
  return writer.ToBytes();
}

// Reads everything that a checkpoint offers, so that a sanitizer sees what lies outside of the file.
void ReadAll(const Checkpoint& checkpoint) {
  for (const std::string& key : checkpoint.Keys()) {
    (void)checkpoint.GetInt(key);
    (void)checkpoint.GetFloat(key);
    (void)checkpoint.GetBool(key);
    (void)checkpoint.GetString(key);
    (void)checkpoint.GetStringArray(key);
    (void)checkpoint.GetIntArray(key);
    (void)checkpoint.GetFloatArray(key);
  }
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.num_bytes));
    REQUIRE(checkpoint.ReadTensor(tensor, 0, bytes).ok());
    Dequantize(tensor.type, bytes, values);
  }
  CHECK(!DescribeCheckpoint(checkpoint).empty());
}

TEST_CASE("the honest version of the lying files opens") {
  CHECK(ErrorOf(SmallFile()).empty());
  CHECK(ErrorOf(WithTensors({{}}, 256)).empty());
  CHECK(ErrorOf(WithPair(4, GgufBytes().Put<uint32_t>(7))).empty());
}

TEST_CASE("a file cut at any byte is an error or a valid file") {
  const testing::TempDir dir;
  const std::string path = dir.File("cut.gguf");
  const std::string whole = SmallFile();
  int num_opened = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    testing::WriteFile(path, std::string_view(whole).substr(0, size));
    const auto checkpoint = OpenCheckpoint(path);
    if (checkpoint.ok()) {
      ++num_opened;
      ReadAll(**checkpoint);
    } else {
      CHECK_THAT(std::string(checkpoint.status().message()), StartsWith(path + ": ") && ContainsSubstring("found "));
    }
  }
  CHECK(num_opened == 0);  // the last tensor ends with the file
}

TEST_CASE("random changes of bytes never do harm") {
  const testing::TempDir dir;
  const std::string path = dir.File("mutated.gguf");
  const std::string whole = SmallFile();
  std::mt19937 generator(20260115);
  int num_opened = 0;
  int num_refused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string bytes = whole;
    const int num_changes = 1 + static_cast<int>(generator() % 4);
    for (int i = 0; i < num_changes; ++i) {
      // Mostly in the header, metadata and tensor table: that is where a change can lie.
      const size_t range = generator() % 8 == 0 ? bytes.size() : 480;
      char& byte = bytes[generator() % range];
      byte = static_cast<char>(generator() % 2 == 0 ? generator()
                                                    : static_cast<unsigned char>(byte) ^ (1U << (generator() % 8)));
    }
    testing::WriteFile(path, bytes);
    const auto checkpoint = OpenCheckpoint(path);
    if (checkpoint.ok()) {
      ++num_opened;
      ReadAll(**checkpoint);
    } else {
      ++num_refused;
    }
  }
  // Both ways must have been walked often, or the changes miss their aim.
  CHECK(num_opened > 500);
  CHECK(num_refused > 500);
}

TEST_CASE("lying headers") {
  CHECK_THAT(ErrorOf(Header(0, 0, 1).str()),
             StartsWith("version: expected GGUF version 2 or 3, little-endian, found 1"));
  CHECK_THAT(ErrorOf(Header(0, 0, 4).str()), ContainsSubstring("found 4"));
  CHECK_THAT(ErrorOf(Header(0, 0, 3U << 24).str()), ContainsSubstring("found a big-endian file"));
  CHECK_THAT(ErrorOf(Header(kHuge, 0).str()),
             StartsWith("tensor count: expected at most 0") && ContainsSubstring("found 1152921504606846976"));
  CHECK_THAT(ErrorOf(Header(0, std::numeric_limits<uint64_t>::max()).str()),
             StartsWith("metadata count: expected at most 0") && ContainsSubstring("found 18446744073709551615"));
}

TEST_CASE("lying metadata") {
  CHECK_THAT(ErrorOf(Header(0, 1).Put(kHuge).PutRaw(std::string(64, 'x')).str()),
             StartsWith("metadata key 0: expected 1152921504606846976 bytes at byte 32, found 64 before the end"));
  CHECK_THAT(ErrorOf(Header(0, 1).PutString("").PutRaw(std::string(64, '\0')).str()),
             StartsWith("metadata key 0: expected a name, found an empty one"));
  CHECK_THAT(ErrorOf(WithPair(13, GgufBytes().Put<uint64_t>(0))),
             StartsWith("key: expected a value type in [0, 12], found 13"));
  CHECK_THAT(ErrorOf(WithPair(7, GgufBytes().Put<uint8_t>(2))), StartsWith("key: expected a bool, 0 or 1, found 2"));
  CHECK_THAT(ErrorOf(WithPair(10, GgufBytes().Put<uint32_t>(0))), StartsWith("key: expected 8 bytes at byte"));
  CHECK_THAT(ErrorOf(WithPair(8, GgufBytes().Put(kHuge).PutRaw("abc"))),
             StartsWith("key: expected 1152921504606846976 bytes at byte 47, found 3"));
  const std::string pair = GgufBytes().PutString("twice").Put<uint32_t>(4).Put<uint32_t>(1).str();
  CHECK_THAT(ErrorOf(Header(0, 2).PutRaw(pair).PutRaw(pair).str()),
             StartsWith("twice: expected each metadata key once, found it twice"));
  CHECK_THAT(ErrorOf(Header(0, 1).PutString("line\nfeed\x1b").Put<uint32_t>(99).Put<uint64_t>(0).str()),
             StartsWith("line\\nfeed\\x1b: expected a value type"));
}

TEST_CASE("lying arrays") {
  const auto array = [](uint32_t element_type, uint64_t count, std::string_view elements) {
    return WithPair(9, GgufBytes().Put(element_type).Put(count).PutRaw(elements));
  };
  CHECK_THAT(ErrorOf(array(4, kHuge, "abcdefgh")),
             StartsWith("key: expected an array of at most 2 elements") && ContainsSubstring("found a count of"));
  // 2^62 + 1 elements of 4 bytes are 4 bytes in 64-bit arithmetic.
  CHECK_THAT(ErrorOf(array(4, (uint64_t{1} << 62) + 1, "abcd")), StartsWith("key: expected an array of at most 1"));
  CHECK_THAT(ErrorOf(array(8, kHuge, "abcdefgh")), StartsWith("key: expected an array of at most 1 elements"));
  CHECK_THAT(ErrorOf(array(8, 1, GgufBytes().Put<uint64_t>(9).PutRaw("12345678").str())),
             StartsWith("key: expected 9 bytes at byte"));
  CHECK_THAT(ErrorOf(array(7, 2, std::string("\x01\x05", 2))), StartsWith("key: expected a bool, 0 or 1, found 5"));
  CHECK_THAT(ErrorOf(array(77, 0, "")), StartsWith("key: expected a value type in [0, 12], found 77"));

  GgufBytes nested;
  for (int i = 0; i < 100000; ++i) nested.Put<uint32_t>(9).Put<uint64_t>(1);
  CHECK_THAT(ErrorOf(WithPair(9, nested)), StartsWith("key: expected arrays nested at most 4 deep, found a deeper"));
}

TEST_CASE("lying alignments") {
  const auto aligned = [](uint32_t alignment) {
    return Header(0, 1).PutString("general.alignment").Put<uint32_t>(4).Put(alignment).str();
  };
  for (const uint32_t alignment : {0U, 1U, 4U, 24U, 33U, 4294967295U}) {
    CHECK_THAT(
        ErrorOf(aligned(alignment)),
        StartsWith("general.alignment: expected a power of two in [8, 2^31], found " + std::to_string(alignment)));
  }
  CHECK(ErrorOf(aligned(8)).empty());
  CHECK(ErrorOf(aligned(1U << 31)).empty());
  CHECK_THAT(ErrorOf(Header(0, 1).PutString("general.alignment").Put<uint32_t>(8).PutString("32").str()),
             StartsWith("general.alignment: expected an integer, found a string"));
}

TEST_CASE("lying shapes and types") {
  CHECK_THAT(ErrorOf(WithTensors({{.dimensions = {}}}, 256)),
             StartsWith("tensor t: expected 1 to 4 dimensions, found 0"));
  CHECK_THAT(ErrorOf(WithTensors({{.dimensions = {1, 1, 1, 1, 1}}}, 256)), ContainsSubstring("found 5"));
  CHECK_THAT(ErrorOf(WithTensors({{.dimensions = {32, 0}}}, 256)), ContainsSubstring("found a dimension of 0"));
  // 2^32 x 2^32 elements are none in 64-bit arithmetic.
  CHECK_THAT(ErrorOf(WithTensors({{.dimensions = {uint64_t{1} << 32, uint64_t{1} << 32}}}, 256)),
             StartsWith("tensor t: expected dimensions of at least 1 whose product is below 2^63, found a dimension of "
                        "4294967296 after 4294967296 elements"));
  CHECK_THAT(ErrorOf(WithTensors({{.dimensions = {std::numeric_limits<uint64_t>::max()}}}, 256)),
             ContainsSubstring("whose product is below 2^63"));
  // 2^62 elements of 4 bytes are none in 64-bit arithmetic.
  CHECK_THAT(ErrorOf(WithTensors({{.dimensions = {uint64_t{1} << 62}}}, 256)),
             StartsWith("tensor t: expected a tensor of at most the file's"));
  CHECK_THAT(ErrorOf(WithTensors({{.dimensions = {48, 2}, .type = kTypeQ4_1}}, 256)),
             StartsWith("tensor t: expected rows of a multiple of 32 elements for Q4_1, found 48"));
  CHECK_THAT(ErrorOf(WithTensors({{.type = 12}}, 256)),
             StartsWith("tensor t: expected one of the types F32, F16, BF16, Q8_0, Q4_0, Q4_1, found Q4_K"));
  CHECK_THAT(ErrorOf(WithTensors({{.type = 14}}, 256)), ContainsSubstring("found Q6_K"));
  CHECK_THAT(ErrorOf(WithTensors({{.type = 1000}}, 256)), ContainsSubstring("found type 1000, which is unknown"));
}

TEST_CASE("lying tensor places and names") {
  CHECK_THAT(ErrorOf(WithTensors({{}}, 255)), StartsWith("tensor t: expected 256 bytes at offset 0 of the data") &&
                                                  ContainsSubstring("found a file whose data ends after 255 bytes"));
  CHECK_THAT(ErrorOf(WithTensors({{.offset = 32}}, 256)), StartsWith("tensor t: expected 256 bytes at offset 32"));
  CHECK_THAT(ErrorOf(WithTensors({{.offset = 8}}, 512)),
             StartsWith("tensor t: expected an offset that is a multiple of 32, found 8"));
  // The end of this one is byte 224 in 64-bit arithmetic.
  CHECK_THAT(ErrorOf(WithTensors({{.offset = std::numeric_limits<uint64_t>::max() - 31}}, 256)),
             StartsWith("tensor t: expected 256 bytes at offset 18446744073709551584"));
  CHECK_THAT(ErrorOf(WithTensors({{.name = ""}}, 256)), StartsWith("tensor 0: expected a name, found an empty one"));
  CHECK_THAT(ErrorOf(WithTensors({{}, {.offset = 256}}, 512)),
             StartsWith("tensor t: expected each name once, found it twice"));
  CHECK_THAT(ErrorOf(WithTensors({{}, {.name = "u", .offset = 224}}, 512)),
             StartsWith("tensor u: expected bytes of its own, found bytes of tensor t in its place"));
  CHECK(ErrorOf(WithTensors({{}, {.name = "u", .offset = 256}}, 512)).empty());
}

}  // namespace
}  // namespace quire
