# fuzz/<name>_fuzz.cpp becomes bin/<name>_fuzz; its seeds, if any, are in fuzz/corpus/<name>/.

foreach(source IN LISTS calque_libfuzzer_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(${name} "${source}")
  target_link_libraries(${name} PRIVATE calque calque_flags)
  target_include_directories(${name} PRIVATE src)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
