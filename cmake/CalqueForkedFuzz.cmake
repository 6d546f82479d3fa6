# The fuzzers whose inputs are numbers (fuzz/forked.h): no libFuzzer. bin/op_fuzz calls every operator with hostile arguments and
# needs only the rooms up to op/; bin/program_fuzz loads and runs changed programs, bin/config_fuzz models of changed
# configurations.

# Where the tree is, for tests and fuzzers: the only object that depends on it.
add_library(calque_paths OBJECT "${PROJECT_SOURCE_DIR}/tests/support/paths.cpp")
target_link_libraries(calque_paths PRIVATE calque_flags)
target_include_directories(calque_paths PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_compile_definitions(calque_paths PRIVATE
  CALQUE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" CALQUE_TEST_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")

set(calque_forked_fuzzers op_fuzz program_fuzz config_fuzz)
# All other fuzz/<name>_fuzz.cpp are libFuzzer's: bin/<name>_fuzz with clang (CalqueFuzz); bin/<name>_fuzz_replay runs the
# seeds and changes them, with any compiler.
file(GLOB calque_libfuzzer_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cpp")
foreach(name IN LISTS calque_forked_fuzzers)
  add_executable(${name} "${PROJECT_SOURCE_DIR}/fuzz/${name}.cpp")
  list(REMOVE_ITEM calque_libfuzzer_sources "${PROJECT_SOURCE_DIR}/fuzz/${name}.cpp")
  target_link_libraries(${name} PRIVATE calque_flags fmt::fmt nlohmann_json::nlohmann_json)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:calque_paths>)
endforeach()
add_library(calque_fuzz_arguments OBJECT "${PROJECT_SOURCE_DIR}/tests/op/opcheck_arguments_support.cpp")
target_link_libraries(calque_fuzz_arguments PRIVATE calque_operators_archive calque_flags fmt::fmt nlohmann_json::nlohmann_json)
target_include_directories(calque_fuzz_arguments PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
target_sources(op_fuzz PRIVATE
  "${PROJECT_SOURCE_DIR}/tests/op/hostile_calls_support.cpp" $<TARGET_OBJECTS:calque_fuzz_arguments>)
target_sources(program_fuzz PRIVATE $<TARGET_OBJECTS:calque_fuzz_arguments>)
target_link_libraries(op_fuzz PRIVATE calque_operators_archive)
target_link_libraries(program_fuzz PRIVATE calque)
target_link_libraries(config_fuzz PRIVATE calque)
