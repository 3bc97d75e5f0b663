#pragma once

#include <string>
#include <string_view>

namespace quire {

// The key of the metadata or header that says which trace a call is part of.
inline constexpr std::string_view kTraceParentKey = "traceparent";

// The trace's id, 32 hexadecimal digits, in a W3C traceparent: https://www.w3.org/TR/trace-context/#traceparent-header.
// Empty if `traceparent` is none, as which a wrong one counts.
std::string TraceIdIn(std::string_view traceparent);

}  // namespace quire
