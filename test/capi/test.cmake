# The library as its users meet it, and nothing of its inside but the reference to check results with and a graph to edit.
target_sources(test_capi PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/dispatch/counted.cpp")
set_target_properties(test_capi PROPERTIES ENABLE_EXPORTS ON)
target_link_libraries(test_capi PRIVATE sluice_reference sluice_graph ${CMAKE_DL_LIBS})

add_test(NAME capi_exports
  COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/capi/exports.sh" "$<TARGET_FILE:sluice::sluice>" "${PROJECT_SOURCE_DIR}/include/sluice/sluice.h")
if(NOT SLUICE_SANITIZE)  # a consumer would need the sanitizer's run-time library first
  set(consume "${CMAKE_CURRENT_SOURCE_DIR}/capi/consume/run.sh")
  add_test(NAME capi_consume_package COMMAND "${consume}" package "${PROJECT_BINARY_DIR}" "${PROJECT_BINARY_DIR}/consume/package")
  # Builds the whole library again: a minute or more without a compiler cache.
  add_test(NAME capi_consume_subdirectory
    COMMAND "${consume}" subdirectory "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/consume/subdirectory" "${CMAKE_CXX_COMPILER_LAUNCHER}")
  set_tests_properties(capi_consume_package capi_consume_subdirectory PROPERTIES TIMEOUT 1200 LABELS consume)
endif()
