# Sleef::sleef, the vector math library. Debian's package has no CMake configuration of its own.

find_path(SLEEF_INCLUDE_DIR sleef.h)
find_library(SLEEF_LIBRARY sleef)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Sleef REQUIRED_VARS SLEEF_LIBRARY SLEEF_INCLUDE_DIR)
mark_as_advanced(SLEEF_LIBRARY SLEEF_INCLUDE_DIR)

if(Sleef_FOUND AND NOT TARGET Sleef::sleef)
  add_library(Sleef::sleef UNKNOWN IMPORTED)
  set_target_properties(Sleef::sleef PROPERTIES
    IMPORTED_LOCATION "${SLEEF_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${SLEEF_INCLUDE_DIR}")
endif()
