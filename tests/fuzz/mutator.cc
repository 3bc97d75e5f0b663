#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "engine/base/check.h"
#include "engine/sampling/rng.h"

namespace quire::testing {
namespace {

// Numbers that code gets wrong, cut to the width they are written in.
constexpr uint64_t kIntegers[] = {0,
                                  1,
                                  2,
                                  16,
                                  127,
                                  128,
                                  255,
                                  256,
                                  0x7FFF,
                                  0x8000,
                                  0xFFFF,
                                  0x10000,
                                  0x7FFFFFFF,
                                  0x80000000,
                                  0xFFFFFFFF,
                                  1ULL << 32,
                                  (1ULL << 63) - 1,
                                  1ULL << 63,
                                  ~0ULL,
                                  ~0ULL - 1,
                                  1ULL << 40,
                                  1ULL << 62};

constexpr std::string_view kNumbers[] = {"0",
                                         "-0",
                                         "1",
                                         "-1",
                                         "0.5",
                                         "1e-999",
                                         "1e999",
                                         "-1e308",
                                         "65535",
                                         "2147483647",
                                         "2147483648",
                                         "-2147483649",
                                         "4294967296",
                                         "9007199254740993",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "-9223372036854775808",
                                         "18446744073709551615",
                                         "18446744073709551616",
                                         "99999999999999999999999999"};

// One input on its way, and the random numbers that it is made with.
class Mutation {
 public:
  Mutation(std::string bytes, uint64_t seed, uint64_t index)
      : bytes_(std::move(bytes)), stream_(RandomBits(seed, index)) {}

  // In [0, end); `end` > 0.
  size_t Below(size_t end) { return RandomBits(stream_, count_++) % end; }

  void FlipBit() {
    if (!bytes_.empty()) bytes_[Below(bytes_.size())] ^= static_cast<char>(1U << Below(8));
  }
  void SetByte() {
    if (!bytes_.empty()) bytes_[Below(bytes_.size())] = static_cast<char>(Below(256));
  }
  void EraseRange() {
    const auto [begin, size] = Range();
    bytes_.erase(begin, size);
  }
  void CopyRange() {
    const auto [begin, size] = Range();
    Put(bytes_.substr(begin, size));
  }
  void SwapRanges() {
    const auto [begin, size] = Range();
    const std::string range = bytes_.substr(begin, size);
    bytes_.erase(begin, size);
    Put(range);
  }
  // Many times over, for what nests or grows.
  void RepeatRange() {
    auto [begin, size] = Range();
    size = std::min<size_t>(size, 1 + Below(16));
    const std::string range = bytes_.substr(begin, size);
    std::string repeated;
    const size_t num_bytes = size_t{1} << Below(17);
    while (!range.empty() && repeated.size() < num_bytes) repeated += range;
    bytes_.insert(begin, repeated);
  }
  void Splice(const std::string& other) {
    bytes_ = bytes_.substr(0, Below(bytes_.size() + 1)) + other.substr(Below(other.size() + 1));
  }
  void PutWord(std::string_view word) { Put(word); }
  // Little-endian, of 1, 2, 4 or 8 bytes: one of kIntegers, or about the input's own size.
  void SetInteger() {
    const size_t width = size_t{1} << Below(4);
    if (bytes_.size() < width) return;
    const size_t place = Below(bytes_.size() - width + 1);
    const uint64_t value =
        Below(4) == 0 ? bytes_.size() - place + Below(17) - 8 : kIntegers[Below(std::size(kIntegers))];
    std::memcpy(bytes_.data() + place, &value, width);
  }
  void ChangeNumber() {
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    if (bytes_.empty()) return;
    const auto begin =
        std::find_if(bytes_.begin() + static_cast<ptrdiff_t>(Below(bytes_.size())), bytes_.end(), is_digit);
    const auto end = std::find_if_not(begin, bytes_.end(), is_digit);
    if (begin != end) bytes_.replace(begin, end, kNumbers[Below(std::size(kNumbers))]);
  }

  std::string Take() {
    if (bytes_.size() > kMaxFuzzInputBytes) bytes_.resize(kMaxFuzzInputBytes);
    return std::move(bytes_);
  }

 private:
  // Begin and size of some bytes, mostly few.
  std::pair<size_t, size_t> Range() {
    const size_t begin = Below(bytes_.size() + 1);
    const size_t most = std::min(bytes_.size() - begin, size_t{1} << Below(13));
    return {begin, Below(most + 1)};
  }
  // Inserts, or writes over what is there.
  void Put(std::string_view text) {
    const size_t place = Below(bytes_.size() + 1);
    bytes_.replace(place, Below(2) == 0 ? 0 : std::min(text.size(), bytes_.size() - place), text);
  }

  std::string bytes_;
  const uint64_t stream_;
  uint64_t count_ = 0;
};

}  // namespace

Mutator::Mutator(std::vector<std::string> corpus, std::span<const std::string_view> words, uint64_t seed)
    : corpus_(std::move(corpus)), words_(words), seed_(seed) {
  QUIRE_CHECK(!corpus_.empty());
}

std::string Mutator::Input(uint64_t index) const {
  if (index < corpus_.size()) return corpus_[index];
  Mutation mutation(corpus_[RandomBits(seed_, index) % corpus_.size()], ~seed_, index);
  // Often a single one, which leaves most of a file as it was.
  const size_t num_steps = size_t{1} << (mutation.Below(2) * mutation.Below(5));
  for (size_t step = 0; step < num_steps; ++step) {
    switch (mutation.Below(words_.empty() ? 11 : 14)) {
      case 0: mutation.FlipBit(); break;
      case 1: mutation.SetByte(); break;
      case 2: mutation.EraseRange(); break;
      case 3: mutation.CopyRange(); break;
      case 4: mutation.SwapRanges(); break;
      case 5: mutation.RepeatRange(); break;
      case 6: mutation.Splice(corpus_[mutation.Below(corpus_.size())]); break;
      case 7:
      case 8: mutation.SetInteger(); break;
      case 9:
      case 10: mutation.ChangeNumber(); break;
      default: mutation.PutWord(words_[mutation.Below(words_.size())]); break;
    }
  }
  return mutation.Take();
}

}  // namespace quire::testing
