# A room of src/ is one static library, sluice_<name>, made of every .cpp in it. Dependencies are the arrows of docs/architecture.md.

# The sanitizers' presets leave optimisation out: compiling costs more than running. Not so where the tests spend their time.
if(SLUICE_SANITIZE)
  set(hot core/*.cpp reference/*.cpp device/host/*.cpp jit/kernel_source.cpp schedules/common.cpp schedules/config.cpp
          routing/derive*.cpp routing/fit*.cpp routing/grow_tree.cpp)
  list(TRANSFORM hot PREPEND "${PROJECT_SOURCE_DIR}/src/")
  file(GLOB hot CONFIGURE_DEPENDS ${hot})
  set_source_files_properties(${hot} PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON)  # which has other flags
endif()

function(sluice_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion $<$<BOOL:${SLUICE_WERROR}>:-Werror>)
  # g++ 12 warns wrongly at "literal" + std::string under optimisation (GCC bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(SLUICE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND SLUICE_SANITIZE MATCHES "address")  # its second stack, for every fiber
      target_compile_options(${target} PRIVATE -fsanitize-address-use-after-return=never)
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # wrong inside <regex> and <functional> once they are instrumented
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
    target_link_options(${target} PUBLIC -fsanitize=${SLUICE_SANITIZE})
  endif()
endfunction()

# sluice_embed(<target> FUNCTION <name> ROOT <dir> GLOB <patterns>): compiles files into an object library that defines
#   std::span<const sl::EmbeddedFile> sl::<name>();  (core/embedded.hpp)
function(sluice_embed target)
  cmake_parse_arguments(E "" "FUNCTION;ROOT" "GLOB" ${ARGN})
  list(TRANSFORM E_GLOB PREPEND "${PROJECT_SOURCE_DIR}/${E_ROOT}/" OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${patterns})
  list(SORT files)
  set(output "${PROJECT_BINARY_DIR}/embedded/${target}.cpp")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" "-DROOT=${PROJECT_SOURCE_DIR}/${E_ROOT}" "-DFUNCTION=${E_FUNCTION}"
            "-DOUTPUT=${output}" -P "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    VERBATIM)
  add_library(${target} OBJECT "${output}")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
endfunction()

# sluice_room(<name> DEPENDS <rooms> SUBDIRS <dirs> EMBED <embedded targets>)
function(sluice_room name)
  cmake_parse_arguments(R "" "" "DEPENDS;SUBDIRS;EMBED" ${ARGN})
  set(patterns "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
  foreach(dir ${R_SUBDIRS})
    list(APPEND patterns "${PROJECT_SOURCE_DIR}/src/${name}/${dir}/*.cpp")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(NOT sources)
    file(WRITE "${PROJECT_BINARY_DIR}/empty.cpp" "")
    set(sources "${PROJECT_BINARY_DIR}/empty.cpp")
  endif()
  add_library(sluice_${name} STATIC ${sources})
  foreach(embed ${R_EMBED})
    target_sources(sluice_${name} PRIVATE $<TARGET_OBJECTS:${embed}>)
  endforeach()
  target_include_directories(sluice_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
  list(TRANSFORM R_DEPENDS PREPEND sluice_)
  target_link_libraries(sluice_${name} PUBLIC ${R_DEPENDS} Threads::Threads)
  sluice_compile_options(sluice_${name})
  set(local "${PROJECT_SOURCE_DIR}/src/${name}/room.cmake")  # what a room needs beyond that
  if(EXISTS "${local}")
    include("${local}")
  endif()
  sluice_precompile(library sluice_${name})
endfunction()
