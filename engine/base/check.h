#pragma once

#include <sstream>
#include <string>

// QUIRE_CHECK(condition) and QUIRE_CHECK_EQ/LE/LT(a, b) guard against programmer errors only: what a
// user sends or a file holds is answered with a Status, never checked here. A failed check logs the
// place and both values and ends the process.

namespace quire::internal {

[[noreturn]] void CheckFailed(const char* file, int line, const std::string& what);

template <typename A, typename B>
[[noreturn]] void CheckOpFailed(const char* file, int line, const char* expression, const A& a, const B& b) {
  std::ostringstream what;
  what << expression << " (" << a << " vs " << b << ")";
  CheckFailed(file, line, what.str());
}

}  // namespace quire::internal

#define QUIRE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::quire::internal::CheckFailed(__FILE__, __LINE__, #condition))

#define QUIRE_CHECK_OP_(a, op, b)                                                                            \
  do {                                                                                                       \
    const auto& quire_check_a = (a);                                                                         \
    const auto& quire_check_b = (b);                                                                         \
    if (!(quire_check_a op quire_check_b)) {                                                                 \
      ::quire::internal::CheckOpFailed(__FILE__, __LINE__, #a " " #op " " #b, quire_check_a, quire_check_b); \
    }                                                                                                        \
  } while (false)

#define QUIRE_CHECK_EQ(a, b) QUIRE_CHECK_OP_(a, ==, b)
#define QUIRE_CHECK_LE(a, b) QUIRE_CHECK_OP_(a, <=, b)
#define QUIRE_CHECK_LT(a, b) QUIRE_CHECK_OP_(a, <, b)
#define QUIRE_CHECK_GE(a, b) QUIRE_CHECK_OP_(a, >=, b)

// Like QUIRE_CHECK, in Debug builds only: for checks that a step cannot afford.
#ifdef NDEBUG
#define QUIRE_DCHECK(condition) static_cast<void>(0)
#else
#define QUIRE_DCHECK(condition) QUIRE_CHECK(condition)
#endif
