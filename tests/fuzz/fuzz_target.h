#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace quire::testing {

// A way into the program for bytes that nobody vouches for.
class FuzzTarget {
 public:
  virtual ~FuzzTarget() = default;

  // Takes the input as the program would and returns how many of its kind's stages it passed. What the program promises
  // of every input is checked with QUIRE_CHECK, which ends the process.
  virtual size_t Run(std::string_view input) = 0;
};

inline constexpr size_t kMaxFuzzStages = 4;

struct FuzzTargetKind {
  std::string_view name;                     // also of its folder in corpus/
  std::span<const std::string_view> stages;  // how far an input can get, in order; at most kMaxFuzzStages
  std::span<const std::string_view> words;   // that mutations put into inputs
  std::function<std::unique_ptr<FuzzTarget>()> make;
};

// One for each file *_target.cc.
FuzzTargetKind ApiKeysTarget();
FuzzTargetKind ChatTemplateTarget();
FuzzTargetKind ConfigTarget();
FuzzTargetKind GgufTarget();
FuzzTargetKind GrpcTarget();
FuzzTargetKind HttpTarget();
FuzzTargetKind OpenAiTarget();
FuzzTargetKind TokenizerTarget();
FuzzTargetKind VocabularyTarget();

}  // namespace quire::testing
