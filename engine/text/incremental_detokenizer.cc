#include "engine/text/incremental_detokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/text/utf8.h"

namespace quire {
namespace {

struct StopMatch {
  size_t begin;
  size_t end;
};

// The stop string that is complete first; of those that end together, the longest.
std::optional<StopMatch> FindStop(std::string_view text, const std::vector<std::string>& stop_strings) {
  std::optional<StopMatch> first;
  for (const std::string& stop : stop_strings) {
    const size_t begin = text.find(stop);
    if (begin == std::string_view::npos) continue;
    const StopMatch match = {begin, begin + stop.size()};
    if (!first || match.end < first->end || (match.end == first->end && match.begin < first->begin)) first = match;
  }
  return first;
}

// The longest end of `text` with which a stop string begins.
size_t LengthToHold(std::string_view text, const std::vector<std::string>& stop_strings) {
  size_t held = 0;
  for (const std::string& stop : stop_strings) {
    for (size_t length = std::min(stop.size() - 1, text.size()); length > held; --length) {
      if (text.ends_with(std::string_view(stop).substr(0, length))) {
        held = length;
        break;
      }
    }
  }
  return held;
}

}  // namespace

IncrementalDetokenizer::IncrementalDetokenizer(const Tokenizer* tokenizer, std::vector<std::string> stop_strings)
    : tokenizer_(tokenizer), stop_strings_(std::move(stop_strings)) {
  std::erase_if(stop_strings_, [](const std::string& stop) { return stop.empty(); });
}

std::string IncrementalDetokenizer::Append(TokenId token) {
  if (stopped_ || tokenizer_->IsSpecial(token)) return "";
  bytes_ += tokenizer_->TokenBytes(token);
  return TakeCertain(/*is_last=*/false);
}

std::string IncrementalDetokenizer::Flush() {
  if (stopped_) return "";
  return TakeCertain(/*is_last=*/true);
}

std::string IncrementalDetokenizer::TakeCertain(bool is_last) {
  MoveUtf8(bytes_, is_last, text_);
  if (const std::optional<StopMatch> stop = FindStop(text_, stop_strings_)) {
    stopped_ = true;
    bytes_.clear();
    text_.resize(stop->begin);
    return std::exchange(text_, "");
  }
  // A stop string that begins inside a character would leave half of it: what is held begins at a whole one.
  size_t num_certain = is_last ? text_.size() : text_.size() - LengthToHold(text_, stop_strings_);
  while (num_certain > 0 && num_certain < text_.size() && (text_[num_certain] & 0xC0) == 0x80) --num_certain;
  std::string certain = text_.substr(0, num_certain);
  text_.erase(0, num_certain);
  return certain;
}

}  // namespace quire
