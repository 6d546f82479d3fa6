# fuzz/<name>_fuzz.cpp becomes bin/<name>_fuzz; its seeds, if any, are in fuzz/corpus/<name>/.

file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cpp")
list(FILTER fuzz_sources EXCLUDE REGEX "/(op|program|config)_fuzz\\.cpp$")  # programs of their own, see CalqueForkedFuzz
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(${name} "${source}")
  target_link_libraries(${name} PRIVATE calque calque_flags)
  target_include_directories(${name} PRIVATE src)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
