#include "server/generation/trace_context.h"

#include <algorithm>

namespace quire {
namespace {

// VERSION-TRACE-PARENT-FLAGS, of 2, 32, 16 and 2 lower-case hexadecimal digits; later versions may have more behind.
constexpr size_t kVersionEnd = 2;
constexpr size_t kTraceBegin = 3;
constexpr size_t kTraceEnd = 35;
constexpr size_t kParentEnd = 52;
constexpr size_t kFlagsEnd = 55;

bool IsHex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

bool IsZero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

std::string TraceIdIn(std::string_view traceparent) {
  if (traceparent.size() < kFlagsEnd) return "";
  for (const size_t dash : {kVersionEnd, kTraceEnd, kParentEnd}) {
    if (traceparent[dash] != '-') return "";
  }
  const std::string_view version = traceparent.substr(0, kVersionEnd);
  const std::string_view trace = traceparent.substr(kTraceBegin, kTraceEnd - kTraceBegin);
  const std::string_view parent = traceparent.substr(kTraceEnd + 1, kParentEnd - kTraceEnd - 1);
  const std::string_view flags = traceparent.substr(kParentEnd + 1, kFlagsEnd - kParentEnd - 1);
  const bool is_all_hex = IsHex(version) && IsHex(trace) && IsHex(parent) && IsHex(flags);
  if (!is_all_hex || version == "ff" || IsZero(trace) || IsZero(parent)) return "";
  const std::string_view rest = traceparent.substr(kFlagsEnd);
  const bool may_have_rest = version != "00" && rest.starts_with('-');
  return rest.empty() || may_have_rest ? std::string(trace) : "";
}

}  // namespace quire
