#include "engine/text/text_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "catch2/catch_test_macros.hpp"
#include "engine/text/tokenizer.h"
#include "tests/engine/text/fake_checkpoint.h"
#include "tests/support/test_data.h"

// Sanitizers keep freed memory and shadow every byte: what is resident then says nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUIRE_TEST_RESIDENT_MEMORY 0
#else
#define QUIRE_TEST_RESIDENT_MEMORY 1
#endif

namespace quire {
namespace {

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

int64_t PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;  // given in KiB
}

struct Memory {
  int64_t estimate_bytes;
  int64_t growth_bytes;  // of the process, by making the tokenizer and using it once
};

Memory Measure(const std::string& path) {
  const auto checkpoint = OpenCheckpoint(path);
  REQUIRE(checkpoint.ok());
  const int64_t estimate_bytes = EstimateTextLayerBytes(**checkpoint);
  const int64_t before_bytes = ResidentBytes();
  const auto tokenizer = Tokenizer::Create(**checkpoint);
  REQUIRE(tokenizer.ok());
  REQUIRE((*tokenizer)->Encode("Hello world", true, true).ok());
  return {estimate_bytes, ResidentBytes() - before_bytes};
}

TEST_CASE("the real model's tokenizer stays within its estimate, which is close") {
  const Memory memory = Measure(testing::RequireModel().string());
  INFO("estimate " << memory.estimate_bytes << ", growth " << memory.growth_bytes);
  if (QUIRE_TEST_RESIDENT_MEMORY) {
    CHECK(memory.estimate_bytes >= memory.growth_bytes);
    CHECK(memory.estimate_bytes <= memory.growth_bytes * 4 / 3);
  }
}

TEST_CASE("a sentence piece tokenizer stays within its estimate") {
  const Memory memory = Measure(testing::RequireTestData("gguf/vocab-llama-spm.gguf").string());
  INFO("estimate " << memory.estimate_bytes << ", growth " << memory.growth_bytes);
  if (QUIRE_TEST_RESIDENT_MEMORY) CHECK(memory.estimate_bytes >= memory.growth_bytes);
}

TEST_CASE("the longest token is the tokenizer's") {
  const auto checkpoint = OpenCheckpoint(testing::RequireModel().string());
  REQUIRE(checkpoint.ok());
  CHECK(LongestTokenBytes(**checkpoint) == Tokenizer::Create(**checkpoint).value()->max_token_bytes());
  CHECK(LongestTokenBytes(testing::FakeCheckpoint()) == 0);
}

TEST_CASE("encoding a long text stays within its bound") {
  const auto checkpoint = OpenCheckpoint(testing::RequireModel().string());
  REQUIRE(checkpoint.ok());
  const auto tokenizer = Tokenizer::Create(**checkpoint);
  REQUIRE(tokenizer.ok());
  REQUIRE((*tokenizer)->Encode("warm up", true, true).ok());
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i * 7919 % 1000) + " ";
  const int64_t before_bytes = PeakResidentBytes();
  REQUIRE((*tokenizer)->Encode(text, true, true).ok());
  const int64_t growth_bytes = PeakResidentBytes() - before_bytes;
  INFO("growth " << growth_bytes << " of " << text.size() << " bytes of text");
  if (QUIRE_TEST_RESIDENT_MEMORY) CHECK(growth_bytes <= EncodingBytesFor(static_cast<int64_t>(text.size()), 1));
}

TEST_CASE("a checkpoint without a vocabulary needs nothing") {
  CHECK(EstimateTextLayerBytes(testing::FakeCheckpoint()) == 0);
}

}  // namespace
}  // namespace quire
