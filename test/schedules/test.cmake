# The NVRTC space is a program of its own, so that ctest runs it beside the host device's tests.
get_target_property(sources test_schedules SOURCES)
list(FILTER sources EXCLUDE REGEX "nvrtc_space_test")
set_target_properties(test_schedules PROPERTIES SOURCES "${sources}")

if(NOT SLUICE_SANITIZE)  # NVRTC is not ours, and what chooses from the space is seen by the pure tests
  add_executable(test_schedule_space schedules/nvrtc_space_test.cpp)
  target_link_libraries(test_schedule_space PRIVATE sluice_test_support sluice_schedules GTest::gtest GTest::gtest_main)
  sluice_compile_options(test_schedule_space)
  add_test(NAME schedule_space COMMAND test_schedule_space)
  set_tests_properties(schedule_space PROPERTIES TIMEOUT 1800 COST 250)
endif()
