# Compiler flags: calque_flags is what every target of ours is compiled with, calque_kernel_options what code that
# computes adds to it. Nothing here reaches a consumer of the installed library.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(calque_path_maps
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${PROJECT_BINARY_DIR}/=")

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CALQUE_CCACHE ccache)
  mark_as_advanced(CALQUE_CCACHE)
  if(CALQUE_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CALQUE_CCACHE}")
  endif()
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
  # Another clone or worktree of this tree finds what this one compiled: ccache makes paths below the base relative to the
  # build folder, and the map takes that prefix away as well.
  list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
       "CCACHE_IGNOREOPTIONS=--param=ggc*")
  file(RELATIVE_PATH to_source "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
  list(APPEND calque_path_maps "-ffile-prefix-map=${to_source}=")
endif()

add_library(calque_flags INTERFACE)
target_compile_options(calque_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion
  # A product and a sum are rounded separately unless the code says fma: results do not depend on the compiler's mood.
  -ffp-contract=off
  # Source locations end up in graphs and messages; files must not depend on where they were built.
  ${calque_path_maps}
  # Position independent code with the inlining of code that is not.
  -fno-semantic-interposition)

# The compiler cleans its memory up less often: a tenth of its time for 140 MB more.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(calque_flags INTERFACE --param=ggc-min-expand=300 --param=ggc-min-heapsize=524288)
endif()

if(CALQUE_SANITIZE)
  # A number that an integer type cannot hold becomes what the machine's conversion says, as in PyTorch. clang counts it among
  # undefined behaviour, g++ does not; no address depends on it unchecked.
  target_compile_options(calque_flags INTERFACE
    -fsanitize=${CALQUE_SANITIZE} -fno-sanitize=float-cast-overflow -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(calque_flags INTERFACE -fsanitize=${CALQUE_SANITIZE})
endif()

set(calque_kernel_options
  -fopenmp-simd -fno-math-errno -fno-trapping-math $<$<CONFIG:Release>:-O3>)
