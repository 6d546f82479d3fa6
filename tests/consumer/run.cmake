# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DCXX=... -DCONFIG=... -P run.cmake
# Installs the build into a fresh prefix, builds the consumer against that prefix alone, and runs it.

function(step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
step("install" ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/prefix" --config "${CONFIG}")
step("configuring the consumer" ${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}/build" -G Ninja
  "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_BUILD_TYPE=${CONFIG}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
step("building the consumer" ${CMAKE_COMMAND} --build "${WORK}/build")
step("running the consumer" "${WORK}/build/consumer")
message(STATUS "${output}")

# By hand, through pkg-config, from a prefix that was moved; one file with the header that has everything.
find_program(pkg_config pkg-config)
if(NOT pkg_config)
  message(FATAL_ERROR "pkg-config is not installed")
endif()
file(RENAME "${WORK}/prefix" "${WORK}/moved")
file(GLOB_RECURSE pc "${WORK}/moved/*/calque.pc")
get_filename_component(pc "${pc}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${pc}")
step("asking pkg-config" "${pkg_config}" --cflags --libs calque)
separate_arguments(flags UNIX_COMMAND "${output}")
step("compiling by hand" "${CXX}" -std=c++20 "${SOURCE}/everything.cpp" ${flags} -o "${WORK}/everything")
step("running what was compiled by hand" "${WORK}/everything")
message(STATUS "${output}")

# A wrong list of arguments for a forward is one readable error, and the first.
execute_process(COMMAND "${CXX}" -std=c++20 -fsyntax-only "${SOURCE}/wrong_arguments.cpp" ${flags}
  RESULT_VARIABLE status ERROR_VARIABLE errors)
if(status EQUAL 0)
  message(FATAL_ERROR "wrong_arguments.cpp compiles")
endif()
string(REGEX MATCH "error: [^\n]*" first "${errors}")
if(NOT first MATCHES "forward\\(\\) does not take these arguments")
  message(FATAL_ERROR "the first error of wrong_arguments.cpp is not the readable one:\n${errors}")
endif()
