#include "engine/model/step_profile.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <vector>

#include "tests/engine/model/decoder_harness.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace quire::testing {
namespace {

double SumOf(const StepProfile& profile) {
  double sum = 0;
  for (size_t part = 0; part < kNumStepParts; ++part) sum += profile.seconds(static_cast<StepPart>(part));
  return sum;
}

}  // namespace

TEST_CASE("A pass tells its profile where its time went", "[model]") {
  const TempDir dir;
  DecoderHarness harness(WriteTinyModel({}, dir.File("tiny.gguf")), {.max_seq_len = 256});
  const std::vector<SequenceChunk> chunks = {{0, std::vector<TokenId>(40, 7)}};
  StepProfile profile;
  harness.decoder().SetProfile(&profile);
  const auto begin = std::chrono::steady_clock::now();
  harness.Forward(chunks);
  const double forward_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (size_t part = 0; part < kNumStepParts; ++part) {
    INFO(ToString(static_cast<StepPart>(part)));
    CHECK(profile.seconds(static_cast<StepPart>(part)) > 0);
  }
  const double sum = SumOf(profile);
  CHECK(sum <= forward_seconds);

  harness.decoder().SetProfile(nullptr);
  harness.Forward(chunks);
  CHECK(SumOf(profile) == sum);
  profile.Clear();
  CHECK(SumOf(profile) == 0);
}

}  // namespace quire::testing
