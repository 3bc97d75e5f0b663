#include "server/kserve/text_tensor.h"

#include "engine/base/status.h"

namespace quire {
namespace {

constexpr size_t kLengthBytes = 4;

}  // namespace

absl::StatusOr<std::string> TextOfRaw(std::string_view field, std::string_view raw) {
  if (raw.size() < kLengthBytes) {
    return InvalidArgument(field, StrCat(raw.size(), " bytes"), "a length in 4 bytes, and the text");
  }
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= size_t{static_cast<unsigned char>(raw[i])} << (8 * i);
  const std::string_view text = raw.substr(kLengthBytes);
  if (length != text.size()) {
    return InvalidArgument(field, StrCat("a length of ", length, " and ", text.size(), " bytes"),
                           "one element, with its own length");
  }
  return std::string(text);
}

std::string RawOfText(std::string_view text) {
  std::string raw;
  for (size_t i = 0; i < kLengthBytes; ++i) raw += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return raw.append(text);
}

}  // namespace quire
