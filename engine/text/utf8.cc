#include "engine/text/utf8.h"

#include <cstdint>

namespace quire {
namespace {

struct ByteRange {
  uint8_t first;
  uint8_t last;

  bool Contains(uint8_t byte) const { return byte >= first && byte <= last; }
};

// How long a character is that begins with `lead`, and what its second byte may be; 0 if nothing begins so.
struct LeadByte {
  size_t num_bytes;
  ByteRange second;
};

LeadByte ClassifyLead(uint8_t lead) {
  if (lead < 0x80) return {1, {0, 0}};
  if (lead < 0xC2) return {0, {0, 0}};
  if (lead < 0xE0) return {2, {0x80, 0xBF}};
  if (lead == 0xE0) return {3, {0xA0, 0xBF}};  // shorter forms exist
  if (lead == 0xED) return {3, {0x80, 0x9F}};  // surrogates
  if (lead < 0xF0) return {3, {0x80, 0xBF}};
  if (lead == 0xF0) return {4, {0x90, 0xBF}};
  if (lead < 0xF4) return {4, {0x80, 0xBF}};
  if (lead == 0xF4) return {4, {0x80, 0x8F}};  // beyond U+10FFFF
  return {0, {0, 0}};
}

}  // namespace

Utf8Unit NextUtf8Unit(std::string_view bytes) {
  const LeadByte lead = ClassifyLead(static_cast<uint8_t>(bytes[0]));
  if (lead.num_bytes == 0) return {Utf8Kind::kInvalid, 1};
  ByteRange accepted = lead.second;
  for (size_t i = 1; i < lead.num_bytes; ++i) {
    if (i == bytes.size()) return {Utf8Kind::kIncomplete, i};
    if (!accepted.Contains(static_cast<uint8_t>(bytes[i]))) return {Utf8Kind::kInvalid, i};
    accepted = {0x80, 0xBF};
  }
  return {Utf8Kind::kCharacter, lead.num_bytes};
}

size_t Utf8ValidPrefix(std::string_view bytes) {
  size_t offset = 0;
  while (offset < bytes.size()) {
    const Utf8Unit unit = NextUtf8Unit(bytes.substr(offset));
    if (unit.kind != Utf8Kind::kCharacter) break;
    offset += unit.num_bytes;
  }
  return offset;
}

void MoveUtf8(std::string& bytes, bool is_last, std::string& text) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const Utf8Unit unit = NextUtf8Unit(rest);
    if (unit.kind == Utf8Kind::kIncomplete && !is_last) break;
    text.append(unit.kind == Utf8Kind::kCharacter ? rest.substr(0, unit.num_bytes) : kReplacementCharacter);
    rest.remove_prefix(unit.num_bytes);
  }
  bytes.erase(0, bytes.size() - rest.size());
}

}  // namespace quire
