# libsluice: the C ABI and nothing else is exported.
add_library(sluice SHARED)
add_library(sluice::sluice ALIAS sluice)
target_sources(sluice PRIVATE "${PROJECT_SOURCE_DIR}/src/capi/exports.map")
target_link_libraries(sluice PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,sluice_capi>")
target_link_options(sluice PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/src/capi/exports.map" -Wl,--no-undefined)
set_target_properties(sluice PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX)
target_include_directories(sluice INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
