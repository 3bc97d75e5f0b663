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
  target_compile_options(quire_compile_options INTERFACE -fsanitize=${QUIRE_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
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
# The binary belongs to the targets quire_tests and quire_<name>_tests, and its cases bear the label <name>, for each
# <name> of its path below tests/: engine and runtime, or server.
function(quire_add_test name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LABELS" ${ARGN})
  quire_add_executable(${name} SRCS ${ARG_SRCS} DEPS ${ARG_DEPS} Catch2::Catch2WithMain)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE folder)
  string(REPLACE "/" ";" folder_names ${folder})
  quire_add_to_group(quire_tests ${name})
  foreach(folder_name IN LISTS folder_names)
    quire_add_to_group(quire_${folder_name}_tests ${name})
  endforeach()
  set(timeout_seconds 300)
  if(QUIRE_SANITIZE)
    set(timeout_seconds 1500)
  endif()
  # The cases are listed when ctest runs, not when the binary is linked: building runs nothing.
  catch_discover_tests(${name}
    TEST_PREFIX ${name}.
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DISCOVERY_MODE PRE_TEST
    PROPERTIES SKIP_RETURN_CODE 4 TIMEOUT ${timeout_seconds})
  quire_label_tests(${name} ${folder_names} ${ARG_LABELS})
endfunction()

# Makes `target` part of what building `group` builds.
function(quire_add_to_group group target)
  if(NOT TARGET ${group})
    add_custom_target(${group})
  endif()
  add_dependencies(${group} ${target})
endfunction()

# Labels the cases of a test binary once ctest knows them; catch_discover_tests can't pass on a list of labels.
function(quire_label_tests name)
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
  file(WRITE ${labels_file}
    "if(${name}_TESTS)\n  set_tests_properties(\${${name}_TESTS} PROPERTIES LABELS \"${ARGN}\")\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
endfunction()
