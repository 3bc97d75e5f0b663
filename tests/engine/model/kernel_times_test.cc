// Kernel times are kept between starts, and the choice follows them.
#include "engine/model/kernel_times.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "engine/model/decoder_loader.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace quire::testing {
namespace {

using Seconds = std::vector<double>;

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// What Get says of a name that is known nowhere but in the file.
bool Knows(KernelTimes times, const std::string& name) {
  bool measured = false;
  times.Get(name, 1, [&] {
    measured = true;
    return Seconds{1};
  });
  return !measured;
}

TEST_CASE("kernel times come back from their file") {
  const TempDir dir;
  const std::string path = dir.File("times.json");
  KernelTimes times = KernelTimes::Open(path, "machine");
  CHECK(times.Get("qkv", 2, [] { return Seconds{0.25, 0.5}; }) == Seconds{0.25, 0.5});
  CHECK(times.Get("attention", 1, [] { return Seconds{}; }).empty());
  REQUIRE(times.Save().ok());

  KernelTimes again = KernelTimes::Open(path, "machine");
  const auto must_not_measure = [] {
    FAIL("measured again");
    return Seconds{};
  };
  CHECK(again.Get("qkv", 2, must_not_measure) == Seconds{0.25, 0.5});
  CHECK(again.Get("attention", 1, must_not_measure).empty());
  std::filesystem::remove(path);
  CHECK(again.Save().ok());  // nothing is new
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("times of another machine, or of no sense, are measured again and replaced") {
  const TempDir dir;
  const std::string path = dir.File("times.json");
  const std::string good = R"({"machine": "this one", "seconds": {"qkv": [1.0]}})";
  std::ofstream(path) << good;
  CHECK(Knows(KernelTimes::Open(path, "this one"), "qkv"));
  CHECK_FALSE(Knows(KernelTimes::Open(path, "another"), "qkv"));
  for (const char* text :
       {"", "{", "[]", "{}", R"({"machine": "this one", "seconds": 1})",
        R"({"machine": "this one", "seconds": {"qkv": [-1.0]}})",
        R"({"machine": "this one", "seconds": {"qkv": ["a"]}})",
        R"({"machine": "this one", "seconds": {"qkv": [1.0, 1.0]}})", R"({"machine": 7, "seconds": {"qkv": [1.0]}})"}) {
    CAPTURE(text);
    std::ofstream(path) << text;
    KernelTimes times = KernelTimes::Open(path, "this one");
    CHECK(times.Get("qkv", 1, [] { return Seconds{2}; }) == Seconds{2});
    CHECK(times.Save().ok());
    CHECK(Knows(KernelTimes::Open(path, "this one"), "qkv"));
  }
}

TEST_CASE("a file that can't be written is told, and leaves nothing behind") {
  const TempDir dir;
  KernelTimes times = KernelTimes::Open(dir.File("missing/times.json"), "machine");
  times.Get("qkv", 1, [] { return Seconds{1}; });
  const absl::Status status = times.Save();
  CHECK(status.code() == absl::StatusCode::kUnavailable);
  CHECK(std::string(status.message()).find("kernel_times_file") != std::string::npos);

  std::filesystem::create_directory(dir.File("folder"));
  KernelTimes onto_folder = KernelTimes::Open(dir.File("folder"), "machine");
  onto_folder.Get("qkv", 1, [] { return Seconds{1}; });
  CHECK_FALSE(onto_folder.Save().ok());
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

// What a decoder with bf16 weights computes in.
std::string ComputeTypeWith(const std::string& model_path, const std::string& kernel_times_file) {
  const auto checkpoint = OpenCheckpoint(model_path);
  REQUIRE(checkpoint.ok());
  const auto config = ReadModelConfig(**checkpoint);
  REQUIRE(config.ok());
  const auto plan = PlanWeights(**checkpoint, *config, WeightType::kBF16);
  REQUIRE(plan.ok());
  const DecoderOptions options = {.limits = {.max_tokens = 32,
                                             .max_num_seqs = 2,
                                             .max_logits_rows = 2,
                                             .max_seq_len = 64,
                                             .num_threads = 1,
                                             .kv_layout = KvLayoutFor(*config, 16, DType::kBF16)},
                                  .kernel_times_file = kernel_times_file,
                                  .num_blocks = 8};
  const auto loaded = LoadDecoder(**checkpoint, *config, *plan, options, [](int64_t, int64_t) {});
  REQUIRE(loaded.ok());
  return loaded->kernels.compute_type;
}

TEST_CASE("the choice of kernels follows the times that are kept") {
  const TempDir dir;
  const std::string model = WriteTinyModel({}, dir.File("model.gguf"));
  const std::string path = dir.File("times.json");
  const std::string measured = ComputeTypeWith(model, path);
  if (!std::filesystem::exists(path)) SKIP("this processor has no bf16 kernels to choose");
  const std::string text = ReadFile(path);
  nlohmann::json json = nlohmann::json::parse(text);
  CHECK(ComputeTypeWith(model, path) == measured);
  CHECK(ReadFile(path) == text);

  for (const std::string fast : {"bf16", "f32"}) {
    for (auto& [name, seconds] : json["seconds"].items()) {
      const bool is_fast = name.find("inputs " + fast) != std::string::npos;
      for (auto& value : seconds) value = is_fast ? 1e-6 : 1.0;
    }
    std::ofstream(path) << json.dump();
    CHECK(ComputeTypeWith(model, path) == fast);
  }

  // Too few of them, or none: nothing is read past their end.
  for (const nlohmann::json& wrong : {nlohmann::json::array({1.0}), nlohmann::json::array()}) {
    for (auto& [name, seconds] : json["seconds"].items()) seconds = wrong;
    std::ofstream(path) << json.dump();
    CHECK_FALSE(ComputeTypeWith(model, path).empty());
  }
}

}  // namespace
}  // namespace quire::testing
