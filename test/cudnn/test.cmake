# The fake cuDNN, and one that lacks a symbol: shared libraries that the tests open by path.
foreach(variant cudnn cudnn_omit)
  add_library(fake_${variant} MODULE "${CMAKE_CURRENT_SOURCE_DIR}/cudnn/fake/fake_cudnn.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/cudnn/fake/fake_run.cpp")
  target_link_libraries(fake_${variant} PRIVATE sluice_reference)
  set_target_properties(fake_${variant} PROPERTIES OUTPUT_NAME ${variant}_fake)  # libcudnn*, as cuDNN's own are called
  sluice_compile_options(fake_${variant})
  if(SLUICE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)  # cuDNN has not our spelling of its types
    target_compile_options(fake_${variant} PRIVATE -fno-sanitize=function)
  endif()
  string(TOUPPER "FAKE_${variant}_PATH" macro)
  target_compile_definitions(test_cudnn PRIVATE "${macro}=\"$<TARGET_FILE:fake_${variant}>\"")
  add_dependencies(test_cudnn fake_${variant})
endforeach()
target_compile_definitions(fake_cudnn_omit PRIVATE FAKE_CUDNN_OMIT)

if(SLUICE_SANITIZE)  # what cuDNN itself leaks or does with threads is not ours to find
  target_compile_definitions(test_cudnn PRIVATE FAKE_CUDNN_ONLY)
endif()

# With a toolkit the tests also compare abi.hpp with cuDNN's header.
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  target_include_directories(test_cudnn SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
endif()
