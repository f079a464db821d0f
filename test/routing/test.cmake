# Shipped tables against their schemas; the Python of Debian's python3-jsonschema, whatever else is on PATH.
find_program(SLUICE_SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(SLUICE_SYSTEM_PYTHON)
  add_test(NAME routing_configs
           COMMAND ${SLUICE_SYSTEM_PYTHON} "${CMAKE_CURRENT_SOURCE_DIR}/routing/validate_configs.py" "${PROJECT_SOURCE_DIR}")
endif()
