# Fails on an #include that the dependency order does not allow.
# cmake [-D ROOT=DIR] -P tests/include_order_test.cmake
#
# The rows below are the order. A folder may always include itself, and what its row names; nothing else of quire.
cmake_minimum_required(VERSION 3.25)

if(NOT ROOT)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ROOT)
endif()

set(engine_folders
  engine/base engine/tensor engine/kv_cache engine/ops engine/checkpoint engine/text engine/sampling engine/model
  engine/scheduler engine/runtime)

set(may_include_engine/base "")
set(may_include_engine/tensor engine/base)
set(may_include_engine/kv_cache engine/base)
set(may_include_engine/ops engine/tensor engine/base)
set(may_include_engine/checkpoint engine/base)
set(may_include_engine/text engine/checkpoint engine/base)
set(may_include_engine/sampling engine/tensor engine/base)
set(may_include_engine/model engine/ops engine/checkpoint engine/tensor engine/base)
set(may_include_engine/scheduler engine/kv_cache engine/base)
set(may_include_engine/runtime
  engine/scheduler engine/model engine/sampling engine/kv_cache engine/tensor engine/base)
set(may_include_server proto engine/runtime engine/text engine/base)
set(may_include_client proto)
set(may_include_bench ${engine_folders})

# Single files that may include more than their folder: where a program or an engine is put together from its parts.
set(may_also_include_engine/runtime/engine_builder.h engine/checkpoint)
set(may_also_include_engine/runtime/engine_builder.cc engine/checkpoint)
set(may_also_include_server/main.cc engine/checkpoint)
set(may_also_include_server/server.cc engine/checkpoint)

# Packages with one home: a pattern of header names, and the folders that may include them.
set(packages onednn highway openmp grpc spdlog)
set(headers_onednn "^(oneapi/dnnl/|dnnl)")
set(homes_onednn engine/ops)
set(headers_highway "^hwy/")
set(homes_highway engine/ops)
set(headers_openmp "^omp\\.h$")
set(homes_openmp engine/ops)
set(headers_grpc "^(grpc|grpcpp|google/protobuf|google/rpc)/")
set(homes_grpc server client)
set(headers_spdlog "^spdlog/")
set(homes_spdlog engine/base)

set(violations "")
function(add_violation file text)
  list(APPEND violations "${file}: ${text}")
  set(violations "${violations}" PARENT_SCOPE)
endfunction()

# The folder of the order that a path belongs to, or "" for a path outside of it.
function(folder_of path result)
  if(path MATCHES "^engine/[^/]+/")
    string(REGEX MATCH "^engine/[^/]+" folder "${path}")
  elseif(path MATCHES "^(server|client|bench|tests)/")
    set(folder ${CMAKE_MATCH_1})
  elseif(path MATCHES "^(proto/)?(quire/v[0-9]+|inference)/")  # generated headers are included from below proto/
    set(folder proto)
  else()
    set(folder "")
  endif()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

function(check_include file folder header)
  folder_of("${header}" target)
  set(allowed ${may_include_${folder}} ${may_also_include_${file}})
  if(target AND NOT target STREQUAL folder AND NOT target IN_LIST allowed)
    list(JOIN allowed ", " allowed_text)
    add_violation("${file}" "${folder} may not include ${target} (\"${header}\"), only ${allowed_text}")
  endif()
  foreach(package IN LISTS packages)
    if(header MATCHES "${headers_${package}}" AND NOT folder IN_LIST homes_${package})
      list(JOIN homes_${package} ", " homes_text)
      add_violation("${file}" "${folder} may not include \"${header}\": ${package} belongs to ${homes_text}")
    endif()
  endforeach()
  set(violations "${violations}" PARENT_SCOPE)
endfunction()

function(check_file file)
  folder_of("${file}" folder)
  if(NOT DEFINED may_include_${folder})
    add_violation("${file}" "folder '${folder}' has no row in tests/include_order_test.cmake")
  else()
    file(STRINGS "${ROOT}/${file}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"].*" "\\1\\2" header "${line}")
      if(header MATCHES "^\"[^/]+$" OR header MATCHES "^\"\\.")
        add_violation("${file}" "${header}\" is relative: write the path from the repository's root")
      endif()
      string(SUBSTRING "${header}" 1 -1 header)
      check_include("${file}" "${folder}" "${header}")
    endforeach()
  endif()
  set(violations "${violations}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE "${ROOT}"
  "${ROOT}/engine/*.h" "${ROOT}/engine/*.cc" "${ROOT}/server/*.h" "${ROOT}/server/*.cc"
  "${ROOT}/client/*.h" "${ROOT}/client/*.cc" "${ROOT}/bench/*.h" "${ROOT}/bench/*.cc")
list(FILTER files EXCLUDE REGEX "/target/")  # cargo's output
list(LENGTH files num_files)
if(num_files EQUAL 0)
  message(FATAL_ERROR "no source files below ${ROOT}")
endif()
foreach(file IN LISTS files)
  check_file("${file}")
endforeach()

if(violations)
  list(JOIN violations "\n  " text)
  message(FATAL_ERROR "forbidden includes:\n  ${text}")
endif()
message(STATUS "${num_files} files keep the dependency order")
