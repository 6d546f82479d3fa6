# The typed fronts are derived from the operators' stanzas: calque-opgen reads the stanza files and writes
#   generated/include/calque/op/ops.h, generated/include/calque/tensor/tensor_methods.inc   (public, installed)
#   generated/src/ops_front_{0..3}.cpp                                                    (compiled into the library)
# It leaves a file alone whose text has not changed, so touching a stanza's body rebuilds that stanza only.

if(NOT calque_opgen_sources)
  return()
endif()

add_executable(calque-opgen ${calque_opgen_sources} $<TARGET_OBJECTS:calque_core>)
target_link_libraries(calque-opgen PRIVATE calque_flags fmt::fmt Threads::Threads)
target_include_directories(calque-opgen PRIVATE include src)
target_compile_definitions(calque-opgen PRIVATE CALQUE_NO_TENSOR_METHODS)

set(calque_generated_dir "${PROJECT_BINARY_DIR}/generated")
set(calque_generated_headers
  "${calque_generated_dir}/include/calque/op/ops.h"
  "${calque_generated_dir}/include/calque/tensor/tensor_methods.inc")
set(calque_generated_sources)
foreach(part RANGE 3)
  list(APPEND calque_generated_sources "${calque_generated_dir}/src/ops_front_${part}.cpp")
endforeach()

add_custom_command(
  OUTPUT ${calque_generated_headers} ${calque_generated_sources}
  COMMAND calque-opgen --stanzas ${calque_stanza_sources} --out-dir "${calque_generated_dir}"
  DEPENDS calque-opgen ${calque_stanza_sources}
  COMMENT "Deriving the typed operators from the stanzas"
  VERBATIM)
add_custom_target(calque_generated DEPENDS ${calque_generated_headers} ${calque_generated_sources})
target_sources(calque_operators PRIVATE ${calque_generated_sources})
add_dependencies(calque_operators calque_generated)
add_dependencies(calque calque_generated)
