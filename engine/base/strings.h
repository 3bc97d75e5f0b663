#pragma once

#include <concepts>
#include <format>
#include <iterator>
#include <string>
#include <string_view>

namespace quire {

// The arguments as text, one after the other: strings as they are, numbers as std::format prints them. (absl::StrCat
// may be built with a string_view of its own, which does not take the standard one.)
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::string text;
  const auto append = [&text](const auto& arg) {
    if constexpr (std::convertible_to<decltype(arg), std::string_view>) {
      text += std::string_view(arg);
    } else {
      std::format_to(std::back_inserter(text), "{}", arg);
    }
  };
  (append(args), ...);
  return text;
}

}  // namespace quire
