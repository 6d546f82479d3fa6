# `cmake --install`, and what find_package(calque) reads.

# The model that the program knows by name.
install(DIRECTORY assets/tiny-lm DESTINATION "${CMAKE_INSTALL_DATADIR}/calque/models" PATTERN reference.json EXCLUDE)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(CALQUE_STATIC)  # the program alone: its library lacks what the program links beside it
  return()
endif()

include(CMakePackageConfigHelpers)

install(TARGETS calque EXPORT calqueTargets ARCHIVE LIBRARY RUNTIME)
install(DIRECTORY include/calque DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
if(TARGET calque_generated)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/generated/include/calque" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()

set(calque_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/calque")
install(EXPORT calqueTargets NAMESPACE calque:: DESTINATION "${calque_config_dir}")
configure_package_config_file(cmake/calqueConfig.cmake.in calqueConfig.cmake INSTALL_DESTINATION "${calque_config_dir}")
write_basic_package_version_file(calqueConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/calqueConfig.cmake" "${PROJECT_BINARY_DIR}/calqueConfigVersion.cmake"
  cmake/FindSleef.cmake cmake/FindWebP.cmake cmake/FindSndFile.cmake cmake/FindFLAC.cmake
  DESTINATION "${calque_config_dir}")
# pkg-config: paths relative to the file, so that the prefix may be moved. A static archive names what it needs itself.
file(RELATIVE_PATH calque_pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" calque_pc_prefix "${calque_pc_prefix}")
set(calque_pc_libs "-lcalque")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND calque_pc_libs " -lfmt -lsleef${calque_media_pc} -lz -pthread")
endif()
configure_file(cmake/calque.pc.in calque.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/calque.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
