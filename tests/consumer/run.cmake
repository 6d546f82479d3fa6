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
