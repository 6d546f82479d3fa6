# OneDNN::dnnl. Debian's own configuration demands the OpenCL headers and links libOpenCL, which we do not use.

find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(ONEDNN_LIBRARY dnnl)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS ONEDNN_LIBRARY ONEDNN_INCLUDE_DIR)
mark_as_advanced(ONEDNN_LIBRARY ONEDNN_INCLUDE_DIR)

if(OneDNN_FOUND AND NOT TARGET OneDNN::dnnl)
  add_library(OneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDNN::dnnl PROPERTIES
    IMPORTED_LOCATION "${ONEDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${ONEDNN_INCLUDE_DIR}")
endif()
