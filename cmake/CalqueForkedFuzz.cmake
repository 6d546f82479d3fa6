# The fuzzers whose inputs are numbers (fuzz/forked.h): no libFuzzer. bin/op_fuzz calls every operator with hostile arguments and needs only
# the rooms up to op/.

add_executable(op_fuzz "${PROJECT_SOURCE_DIR}/fuzz/op_fuzz.cpp" "${PROJECT_SOURCE_DIR}/tests/op/hostile_calls_support.cpp"
  "${PROJECT_SOURCE_DIR}/tests/op/opcheck_arguments_support.cpp")
target_link_libraries(op_fuzz PRIVATE calque_operators_archive calque_flags fmt::fmt nlohmann_json::nlohmann_json)
target_include_directories(op_fuzz PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
target_compile_definitions(op_fuzz PRIVATE CALQUE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# bin/program_fuzz loads and runs changed programs, likewise.
add_executable(program_fuzz "${PROJECT_SOURCE_DIR}/fuzz/program_fuzz.cpp"
  "${PROJECT_SOURCE_DIR}/tests/op/opcheck_arguments_support.cpp")
target_link_libraries(program_fuzz PRIVATE calque calque_flags fmt::fmt nlohmann_json::nlohmann_json)
target_include_directories(program_fuzz PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
target_compile_definitions(program_fuzz PRIVATE CALQUE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
