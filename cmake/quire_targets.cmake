# How every target of quire is made: one place for the language level, warnings and sanitizers.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

find_program(QUIRE_CCACHE ccache)
if(QUIRE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${QUIRE_CCACHE})
endif()

add_library(quire_compile_options INTERFACE)
target_include_directories(quire_compile_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(quire_compile_options INTERFACE -Wall -Wextra)
if(QUIRE_WARNINGS_AS_ERRORS)
  target_compile_options(quire_compile_options INTERFACE -Werror)
endif()
if(QUIRE_SANITIZE)
  target_compile_options(quire_compile_options INTERFACE -fsanitize=${QUIRE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(quire_compile_options INTERFACE -fsanitize=${QUIRE_SANITIZE})
endif()

# quire_add_library(NAME SRCS file... DEPS target...)
# A folder's library, `quire_<folder>`. DEPS are exactly the folders it may include, and its packages.
function(quire_add_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  target_link_libraries(${name} PUBLIC quire_compile_options ${ARG_DEPS})
endfunction()

# quire_add_executable(NAME SRCS file... DEPS target...)
function(quire_add_executable name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE quire_compile_options ${ARG_DEPS})
endfunction()

# quire_add_test(NAME SRCS file... DEPS target... [LABELS label...])
# A Catch2 binary whose test cases become ctest tests named NAME.<case>. A skipped case is reported as skipped.
function(quire_add_test name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LABELS" ${ARGN})
  quire_add_executable(${name} SRCS ${ARG_SRCS} DEPS ${ARG_DEPS} Catch2::Catch2WithMain)
  set(properties SKIP_RETURN_CODE 4 TIMEOUT 300)
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  catch_discover_tests(${name}
    TEST_PREFIX ${name}.
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DISCOVERY_MODE PRE_TEST
    PROPERTIES ${properties})
endfunction()
