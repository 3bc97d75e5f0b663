#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire::testing {

inline constexpr size_t kMaxFuzzInputBytes = size_t{64} << 10;

// Makes inputs from the files of a corpus. Input `index` follows from corpus, words, seed and index alone, so that any
// of them can be made again without those before it.
class Mutator {
 public:
  // `corpus` must hold a file; `words` must outlive the mutator.
  Mutator(std::vector<std::string> corpus, std::span<const std::string_view> words, uint64_t seed);

  // The corpus' files as they are come first; then mutations of them, of at most kMaxFuzzInputBytes.
  std::string Input(uint64_t index) const;

 private:
  const std::vector<std::string> corpus_;
  const std::span<const std::string_view> words_;
  const uint64_t seed_;
};

}  // namespace quire::testing
