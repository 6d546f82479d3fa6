# Operators that a user loads from a shared library resolve against the program, so it exports the library's functions and types.

if(APPLE OR NOT UNIX)
  set_target_properties(calque_cli PROPERTIES ENABLE_EXPORTS ON)
  return()
endif()

set(calque_exports "${PROJECT_SOURCE_DIR}/cmake/program.exports")
target_link_options(calque_cli PRIVATE "-Wl,--dynamic-list=${calque_exports}")
set_target_properties(calque_cli PROPERTIES LINK_DEPENDS "${calque_exports}")

# A megabyte less, where the C library that runs the program can read it (glibc 2.36).
if(NOT CMAKE_CROSSCOMPILING)
  include(CheckCXXSourceRuns)
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
  check_cxx_source_runs("int main() { return 0; }" CALQUE_PACKS_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(CALQUE_PACKS_RELOCATIONS)
    target_link_options(calque_cli PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
endif()
