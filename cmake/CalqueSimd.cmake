# Every *.simd.cpp is compiled once per instruction set, with CALQUE_ISA naming it; the code puts itself in
# `namespace calque::CALQUE_ISA`, and kernel/ chooses at run time. Such a file must define nothing outside that namespace
# and emit no shared inline code (templates, std:: containers): the linker keeps one copy of those, and it could be the
# one for a machine that is newer than the user's. tests/layering checks it.

set(calque_isa_generic_flags "")
set(calque_isas generic)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND calque_isas avx2 avx512)
  set(calque_isa_avx2_flags -mavx2 -mfma -mf16c -mbmi2)
  # amx: for the intrinsics of attention_amx and gemm_bf16, which ask the machine first; a compiler does not use tiles by itself.
  set(calque_isa_avx512_flags -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mbmi2 -mprefer-vector-width=512
      -mamx-tile -mamx-bf16)
  target_compile_definitions(calque_flags INTERFACE CALQUE_HAVE_ISA_AVX2=1 CALQUE_HAVE_ISA_AVX512=1)
endif()

if(NOT calque_simd_sources)
  return()
endif()

foreach(isa IN LISTS calque_isas)
  set(target calque_simd_${isa})
  add_library(${target} OBJECT ${calque_simd_sources})
  target_link_libraries(${target} PRIVATE calque_flags ${calque_sleef})
  target_compile_definitions(${target} PRIVATE CALQUE_ISA=${isa} CALQUE_ISA_${isa}=1)
  target_compile_options(${target} PRIVATE ${calque_kernel_options} ${calque_isa_${isa}_flags})
  if(isa STREQUAL "generic" AND NOT calque_isas STREQUAL "generic")  # for machines of before 2013: not worth a third more time
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
  target_include_directories(${target} PRIVATE include "${PROJECT_BINARY_DIR}/generated/include" src)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(TARGET calque_generated)
    add_dependencies(${target} calque_generated)
  endif()
  target_sources(calque PRIVATE $<TARGET_OBJECTS:${target}>)
  target_sources(calque_operators_archive PRIVATE $<TARGET_OBJECTS:${target}>)
endforeach()
