# The typed operators are derived from the stanzas: calque-opgen reads the stanza files and writes
#   generated/include/calque/op/aten/<family>.h, ops.h and tensor_methods.inc            (public, installed)
#   generated/src/ops_front_{0..2}.cpp, ops_register.cpp                                (compiled into the library)
# It leaves a file alone whose text has not changed, so touching a stanza's body rebuilds that stanza only.

if(NOT calque_opgen_sources)
  return()
endif()

add_executable(calque-opgen ${calque_opgen_sources} src/op/schema_text.cpp src/op/derived_schema.cpp)
target_link_libraries(calque-opgen PRIVATE calque_flags)
target_include_directories(calque-opgen PRIVATE include src)
set_target_properties(calque-opgen PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O0>")  # it runs for a tenth of a second

set(calque_generated_dir "${PROJECT_BINARY_DIR}/generated")
set(calque_generated_headers
  "${calque_generated_dir}/include/calque/op/ops.h"
  "${calque_generated_dir}/include/calque/op/tensor_methods.inc")
foreach(stanza IN LISTS calque_stanza_sources)
  cmake_path(GET stanza STEM family)
  list(APPEND calque_generated_headers "${calque_generated_dir}/include/calque/op/aten/${family}.h")
endforeach()
set(calque_generated_sources "${calque_generated_dir}/src/ops_register.cpp")
foreach(part RANGE 2)
  list(APPEND calque_generated_sources "${calque_generated_dir}/src/ops_front_${part}.cpp")
endforeach()

set(calque_tensor_base "${PROJECT_SOURCE_DIR}/include/calque/tensor/tensor_base.h")
add_custom_command(
  OUTPUT ${calque_generated_headers} ${calque_generated_sources}
  COMMAND calque-opgen --base "${calque_tensor_base}" --stanzas ${calque_stanza_sources} --out-dir "${calque_generated_dir}"
  DEPENDS calque-opgen "${calque_tensor_base}" ${calque_stanza_sources}
  COMMENT "Deriving the typed operators from the stanzas"
  VERBATIM)
add_custom_target(calque_generated DEPENDS ${calque_generated_headers} ${calque_generated_sources})
target_sources(calque_operators PRIVATE ${calque_generated_sources})
add_dependencies(calque_operators calque_generated)
add_dependencies(calque calque_generated)
