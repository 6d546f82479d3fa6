# Finds libFLAC (Debian's package has no file for CMake) and defines the target FLAC::FLAC. Its archive needs libogg.

find_path(FLAC_INCLUDE_DIR FLAC/stream_decoder.h)
find_library(FLAC_LIBRARY FLAC)
find_library(FLAC_OGG_LIBRARY ogg)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(FLAC REQUIRED_VARS FLAC_LIBRARY FLAC_OGG_LIBRARY FLAC_INCLUDE_DIR)

if(FLAC_FOUND AND NOT TARGET FLAC::FLAC)
  add_library(FLAC::FLAC UNKNOWN IMPORTED)
  set_target_properties(FLAC::FLAC PROPERTIES
    IMPORTED_LOCATION "${FLAC_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${FLAC_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${FLAC_OGG_LIBRARY}")
endif()
mark_as_advanced(FLAC_INCLUDE_DIR FLAC_LIBRARY FLAC_OGG_LIBRARY)
