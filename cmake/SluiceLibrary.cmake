# libsluice: the C ABI and nothing else is exported. Installed with a CMake package (sluice::sluice) and a pkg-config file.
include(CMakePackageConfigHelpers)

# Not named sluice: Ninja would take that for the program, build/<preset>/sluice.
add_library(sluice_shared SHARED)
add_library(sluice::sluice ALIAS sluice_shared)
set(exports "${PROJECT_SOURCE_DIR}/src/capi/exports.map")
target_sources(sluice_shared PRIVATE "${exports}")
target_link_libraries(sluice_shared PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,sluice_capi>" ${CMAKE_DL_LIBS})
# libstdc++ templates instantiated here stay local too: the version script names the C ABI alone.
target_link_options(sluice_shared PRIVATE "-Wl,--version-script=${exports}")
if(NOT SLUICE_SANITIZE)  # a sanitizer's run-time library is found in the executable
  target_link_options(sluice_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(sluice_shared PROPERTIES
  OUTPUT_NAME sluice EXPORT_NAME sluice
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX LINK_DEPENDS "${exports}")
target_include_directories(sluice_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# ---- install: `cmake --install build --component library` ----
install(TARGETS sluice_shared EXPORT sluice-targets COMPONENT library
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/sluice" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/sluice")
install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION "${package_dir}" COMPONENT library)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/sluice-config.cmake.in"
  "${PROJECT_BINARY_DIR}/sluice-config.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may break the ABI.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/sluice-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/sluice-config.cmake" "${PROJECT_BINARY_DIR}/sluice-config-version.cmake"
  DESTINATION "${package_dir}" COMPONENT library)

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/sluice.pc.in" "${PROJECT_BINARY_DIR}/sluice.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/sluice.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT library)
