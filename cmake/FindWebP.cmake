# Finds libwebpdemux (Debian's package has no file for CMake) and defines the target WebP::demux.

find_path(WebP_INCLUDE_DIR webp/demux.h)
find_library(WebP_LIBRARY webpdemux)
find_library(WebP_webp_LIBRARY webp)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(WebP REQUIRED_VARS WebP_LIBRARY WebP_webp_LIBRARY WebP_INCLUDE_DIR)

if(WebP_FOUND AND NOT TARGET WebP::demux)
  add_library(WebP::demux UNKNOWN IMPORTED)
  set_target_properties(WebP::demux PROPERTIES
    IMPORTED_LOCATION "${WebP_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${WebP_webp_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${WebP_INCLUDE_DIR}")
endif()
mark_as_advanced(WebP_INCLUDE_DIR WebP_LIBRARY WebP_webp_LIBRARY)
