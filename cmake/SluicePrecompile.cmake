# Precompiled headers, for builds from nothing: parsing the standard library, nlohmann_json and GoogleTest costs clang, and g++ in
# tests and under a sanitizer, more than the rest of most files. Off unless asked for: they hide an #include that is missing. So
# g++ gets none for its `release` build outside the tests: that finds what src/, tuner/ and bench/ do not include.
option(SLUICE_PRECOMPILE "Precompile the headers that most files include" OFF)

# sluice_precompile(<kind> <target>...): the targets share one precompiled header, cmake/precompiled_<kind>.hpp. Compilers refuse
# one that was made with other flags (an error here): so there is one for each directory with its own, and one each for -fPIC
# and -fPIE.
function(sluice_precompile kind)
  if(NOT SLUICE_PRECOMPILE OR (CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT SLUICE_SANITIZE AND NOT kind STREQUAL test))
    return()
  endif()
  foreach(target ${ARGN})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      set(owner sluice_precompiled_${kind}_pie)
    else()
      set(owner sluice_precompiled_${kind}_pic)
    endif()
    if(NOT TARGET ${owner})
      file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "int main() {}\n")
      if(type STREQUAL EXECUTABLE)  # only an executable is compiled as one
        add_executable(${owner} "${PROJECT_BINARY_DIR}/precompiled.cpp")
      else()
        add_library(${owner} OBJECT "${PROJECT_BINARY_DIR}/precompiled.cpp")
      endif()
      target_link_libraries(${owner} PRIVATE nlohmann_json::nlohmann_json)
      if(kind STREQUAL test)
        target_link_libraries(${owner} PRIVATE GTest::gtest)
      endif()
      sluice_compile_options(${owner})
      target_precompile_headers(${owner} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled_${kind}.hpp")
      if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)  # a compiler cache cannot promise the times of files
        target_compile_options(${owner} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
      endif()
    endif()
    target_precompile_headers(${target} REUSE_FROM ${owner})
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # as ccache needs it
      target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
  endforeach()
endfunction()
