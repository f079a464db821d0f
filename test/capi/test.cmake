# The library as its users meet it, and nothing of its inside but the reference to check results with and a graph to edit.
target_sources(test_capi PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/dispatch/counted.cpp")
set_target_properties(test_capi PROPERTIES ENABLE_EXPORTS ON)
target_link_libraries(test_capi PRIVATE sluice_reference sluice_graph ${CMAKE_DL_LIBS})
target_compile_definitions(test_capi PRIVATE "FAKE_CUDA=\"$<TARGET_FILE:fake_cuda>\"")
add_dependencies(test_capi fake_cuda)

add_test(NAME capi_exports
  COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/capi/exports.sh" "$<TARGET_FILE:sluice::sluice>" "${PROJECT_SOURCE_DIR}/include/sluice/sluice.h")
if(NOT SLUICE_SANITIZE)  # a consumer would need the sanitizer's run-time library first
  set(consume "${CMAKE_CURRENT_SOURCE_DIR}/capi/consume/run.sh")
  add_test(NAME capi_consume_package COMMAND "${consume}" package "${PROJECT_BINARY_DIR}" "${PROJECT_BINARY_DIR}/consume/package")
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  # Builds the whole library again: minutes without a compiler cache, seconds from what this build has left in one.
  add_test(NAME capi_consume_subdirectory
    COMMAND "${consume}" subdirectory "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/consume/subdirectory" "${CMAKE_CXX_COMPILER_LAUNCHER}"
            "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")
  set_tests_properties(capi_consume_package capi_consume_subdirectory PROPERTIES TIMEOUT 1200 LABELS consume)
  set_tests_properties(capi_consume_subdirectory PROPERTIES COST 60)  # among the long ones, should there be no cache
endif()

# What the C ABI's hot path is made of, from the inside, on a device that counts.
file(GLOB inside CONFIGURE_DEPENDS capi/inside/*.cpp)
add_executable(test_capi_inside ${inside} capi/call_builder.cpp dispatch/counted.cpp dispatch/fakes.cpp)
target_include_directories(test_capi_inside PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/test")
target_link_libraries(test_capi_inside PRIVATE sluice_test_support sluice_capi GTest::gtest GTest::gtest_main
                                               ${RAPIDCHECK_LIBRARY} ${CMAKE_DL_LIBS})
sluice_compile_options(test_capi_inside)
sluice_precompile(test test_capi_inside)
add_test(NAME capi_inside COMMAND test_capi_inside)
# The property that compares the short way with the long one needs many disturbed calls to meet every check. That is the
# release build's to do; the sanitizers look at what those calls touch.
set(disturbed_calls 20000)
if(SLUICE_SANITIZE)
  set(disturbed_calls 4000)
endif()
set_tests_properties(capi_inside PROPERTIES ENVIRONMENT "RC_PARAMS=seed=20250607 max_success=${disturbed_calls}")
