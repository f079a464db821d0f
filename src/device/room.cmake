# The host device runs the threads of a block as fibers. Boost.Context goes in statically: machines that run Sluice need
# not have it. Only its assembly parts are pulled in, which are position-independent, so it can go into a shared library.
find_path(SLUICE_BOOST_INCLUDE boost/context/fiber.hpp REQUIRED)
find_library(SLUICE_BOOST_CONTEXT NAMES libboost_context.a REQUIRED)
target_include_directories(sluice_${name} SYSTEM PRIVATE "${SLUICE_BOOST_INCLUDE}")
target_link_libraries(sluice_${name} PUBLIC "${SLUICE_BOOST_CONTEXT}" ${CMAKE_DL_LIBS})

# ThreadSanitizer follows one call stack a thread and would take a switch of fibers for a broken one; its own fiber
# support is too slow for a fiber a GPU thread. What runs on fibers stays uninstrumented.
if(SLUICE_SANITIZE MATCHES "thread")
  set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/device/host/fiber.cpp" "${PROJECT_SOURCE_DIR}/src/device/host/block_runner.cpp"
               APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=thread)
endif()
