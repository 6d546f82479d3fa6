# CALQUE_STATIC: the program `calque` as one file that needs nothing of the system it runs on, not even a C library. Operator libraries cannot
# be loaded into it. Debian's fmt and SLEEF are shared libraries only: stand-ins are compiled (cmake/static), unless CALQUE_STATIC_SLEEF names
# a libsleef.a, whose functions are several times as fast.

set(CALQUE_STATIC_SLEEF "" CACHE FILEPATH "libsleef.a, for CALQUE_STATIC")

add_library(calque_static_fmt STATIC cmake/static/fmt.cpp)
get_target_property(calque_fmt_definitions fmt::fmt INTERFACE_COMPILE_DEFINITIONS)
if(calque_fmt_definitions)
  target_compile_definitions(calque_static_fmt INTERFACE ${calque_fmt_definitions})
endif()
set_target_properties(calque_static_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)

if(CALQUE_STATIC_SLEEF)
  add_library(calque_static_sleef INTERFACE)
  target_link_libraries(calque_static_sleef INTERFACE "${CALQUE_STATIC_SLEEF}")
else()
  add_library(calque_static_sleef STATIC)
  foreach(isa IN LISTS calque_isas)
    add_library(calque_static_sleef_${isa} OBJECT cmake/static/sleef.cpp)
    target_compile_options(calque_static_sleef_${isa} PRIVATE ${calque_isa_${isa}_flags} -fno-math-errno -Wno-psabi)
    set_target_properties(calque_static_sleef_${isa} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_sources(calque_static_sleef PRIVATE $<TARGET_OBJECTS:calque_static_sleef_${isa}>)
  endforeach()
endif()
target_include_directories(calque_static_sleef INTERFACE $<TARGET_PROPERTY:Sleef::sleef,INTERFACE_INCLUDE_DIRECTORIES>)
