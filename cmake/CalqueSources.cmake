# Which file belongs to which target. A new file in a room is picked up by itself.
#   src/<room>/**/*.cpp       the library        src/cli/**/*.cpp      the program
#   src/**/*.simd.cpp         once per ISA       src/op/gen/*.cpp      the operator generator (runs at build time)

file(STRINGS "${PROJECT_SOURCE_DIR}/cmake/rooms.txt" calque_rooms REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/rooms.txt")

# Files of a room are compiled in groups: what they include and the templates they share are the larger part of each. So a name
# in an anonymous namespace may be used once a room. The groups include them by relative paths, so that a compiler cache shares
# them between clones. Tests are grouped as well: each test file has a namespace of its own name. For work on a room,
# -DCALQUE_GROUPS=OFF compiles its files one by one.
option(CALQUE_GROUPS "Compile the files of a room in groups" ON)
set(calque_group_bytes 160000)        # about so much source in a group: 5 to 10 seconds, and less than 1 GB
set(calque_dense_group_bytes 80000)   # of code that compiles for longer: kernels, tests
set(calque_simd_group_bytes 45000)    # of code that compiles once per instruction set
# Folders that are grouped apart from their room.
set(calque_parts op/aten text/jinja text/legacy graph/draw)
# Rooms and parts that nobody waits for: they say what operators do, or write and read small texts. A quarter less code than at -O1,
# and less to compile than at -O2.
set(calque_patient zoo cli task hub text/jinja text/legacy graph/draw)

# Rooms and parts without public headers: their functions are the library's alone, so the program does not export them to the
# operators that a user loads.
set(calque_private cli zoo kernel kernel/simd media/simd op/aten)

# calque_part(FILE RESULT): the part or the room of src that a file belongs to, or its folder elsewhere.
function(calque_part file result)
  cmake_path(GET file PARENT_PATH folder)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/src" OUTPUT_VARIABLE part)
  if(NOT part MATCHES "^\\.\\./")
    foreach(candidate IN LISTS calque_parts)
      if("${part}/" MATCHES "^${candidate}/")
        set(${result} "${candidate}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
    string(REGEX REPLACE "/.*" "" part "${part}")
    if(file MATCHES "\\.simd\\.cpp$")
      string(APPEND part "/simd")
    endif()
  endif()
  set(${result} "${part}" PARENT_SCOPE)
endfunction()

# calque_write_group(NAME MEMBERS RESULT): one source that includes the members; appends it to RESULT.
function(calque_write_group name members result)
  set(text "// Made by CMake: files that are compiled together.\n")
  if(NOT name MATCHES "^op_aten" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ takes them for headers, where a member of a type of this file alone would be a mistake.
    string(APPEND text "#pragma GCC diagnostic ignored \"-Wsubobject-linkage\"\n")
  endif()
  foreach(member IN LISTS members)
    cmake_path(RELATIVE_PATH member BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    string(REGEX REPLACE "^src/" "" member "${member}")
    string(APPEND text "#include \"${member}\"\n")
  endforeach()
  set(file "${PROJECT_BINARY_DIR}/generated/src/${name}.cpp")
  file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
  set(${result} ${${result}} "${file}" PARENT_SCOPE)
endfunction()

# calque_group(FILES RESULT): the groups of these files, which are sorted by path; those of src/op/aten become op_aten_0, ...
function(calque_group files result)
  set(groups)
  if(NOT CALQUE_GROUPS)
    set(groups ${files})
    list(FILTER groups EXCLUDE REGEX "/src/op/aten/")  # stanzas are always grouped: the generator knows them by file
    list(FILTER files INCLUDE REGEX "/src/op/aten/")
  endif()
  set(parts)
  foreach(file IN LISTS files)
    calque_part("${file}" part)
    list(APPEND parts "${part}")
    string(MAKE_C_IDENTIFIER "${part}" name)
    list(APPEND files_of_${name} "${file}")
  endforeach()
  list(REMOVE_DUPLICATES parts)
  foreach(part IN LISTS parts)
    string(MAKE_C_IDENTIFIER "${part}" name)
    set(here ${files_of_${name}})
    string(REPLACE "../" "" name "${part}")
    string(REPLACE "/" "_" name "${name}")
    set(limit ${calque_group_bytes})
    if(part MATCHES "/simd$")
      set(limit ${calque_simd_group_bytes})
    elseif(name MATCHES "^(kernel|tests)")
      set(limit ${calque_dense_group_bytes})
    endif()
    set(total 0)
    foreach(file IN LISTS here)
      file(SIZE "${file}" size)
      math(EXPR total "${total} + ${size}")
    endforeach()
    math(EXPR count "${total} / ${limit} + 1")  # of about the same size each
    set(number 0)
    set(bytes 0)
    set(members)
    foreach(file IN LISTS here)
      file(SIZE "${file}" size)
      math(EXPR bytes "${bytes} + ${size}")
      list(APPEND members "${file}")
      math(EXPR end "${total} * (${number} + 1) / ${count}")
      if(bytes GREATER_EQUAL end)
        calque_write_group(${name}_${number} "${members}" groups)
        list(GET groups -1 group)
        if(part IN_LIST calque_patient)
          set_property(SOURCE "${group}" APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>")
        endif()
        if(part IN_LIST calque_private AND NOT BUILD_SHARED_LIBS)  # a shared library's tests call them
          set_property(SOURCE "${group}" APPEND PROPERTY COMPILE_OPTIONS -fvisibility=hidden)
        endif()
        math(EXPR number "${number} + 1")
        set(members)
      endif()
    endforeach()
  endforeach()
  set(${result} ${groups} PARENT_SCOPE)
endfunction()

# Every file of src/zoo, parts that families share apart, is a namespace and registers its architectures: bert.cpp has
# bert::register_models.
function(calque_list_zoo result)
  file(GLOB_RECURSE families CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/zoo/*.cpp")
  list(FILTER families EXCLUDE REGEX "/src/zoo/(blocks|heads)/")
  list(SORT families)
  set(declarations)
  set(calls)
  foreach(family IN LISTS families)
    cmake_path(GET family STEM name)
    string(APPEND declarations "namespace ${name} {\nvoid register_models(ModelRegistry&);\n}\n")
    string(APPEND calls "  ${name}::register_models(registry);\n")
  endforeach()
  set(file "${PROJECT_BINARY_DIR}/generated/src/zoo.cpp")
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT "// Made by CMake from the names of the files in src/zoo.
#include \"calque/hub/registry.h\"
namespace calque {
${declarations}void register_zoo(ModelRegistry& registry);
void register_zoo([[maybe_unused]] ModelRegistry& registry) {
${calls}}
}  // namespace calque
")
  set(${result} "${file}" PARENT_SCOPE)
endfunction()

# Style and script of a page, src/<folder>/page.css and page.js, as texts in the program, which page.h beside them declares.
function(calque_embed_page result folder namespace)
  set(source "${PROJECT_SOURCE_DIR}/src/${folder}")
  file(READ "${source}/page.css" style)
  file(READ "${source}/page.js" script)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}/page.css" "${source}/page.js")
  set(file "${PROJECT_BINARY_DIR}/generated/src/${namespace}_page.cpp")
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT "// Made by CMake from src/${folder}/page.css and page.js.
#include \"${folder}/page.h\"
namespace calque::${namespace} {
constinit const std::string_view page_style = R\"page(${style})page\";
constinit const std::string_view page_script = R\"page(${script})page\";
}  // namespace calque::${namespace}
")
  set(${result} "${file}" PARENT_SCOPE)
endfunction()

function(calque_collect_sources)
  set(simd)
  foreach(room IN LISTS calque_rooms)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${room}/*.cpp")
    list(SORT found)
    set(room_simd ${found})
    list(FILTER room_simd INCLUDE REGEX "\\.simd\\.cpp$")
    list(APPEND simd ${room_simd})
    list(FILTER found EXCLUDE REGEX "\\.simd\\.cpp$|/src/op/gen/|/src/base/version\\.cpp$|/src/op/operator_library\\.cpp$")
    if(room STREQUAL "op")
      set(stanzas ${found})
      list(FILTER stanzas INCLUDE REGEX "/src/op/aten/")
    endif()
    if(room STREQUAL "media")
      list(FILTER found EXCLUDE REGEX "${calque_media_unused}")
    endif()
    calque_group("${found}" found)
    if(room MATCHES "^(kernel|media)$")
      set_property(SOURCE ${found} APPEND PROPERTY COMPILE_OPTIONS ${calque_kernel_options})
    endif()
    if(room MATCHES "^(base|sym|tensor)$")
      list(APPEND core ${found})
    elseif(room MATCHES "^(kernel|op)$")
      list(APPEND operators ${found})
    elseif(room MATCHES "^(cli|serve)$")
      list(APPEND program ${found})
    else()
      list(APPEND library ${found})
    endif()
  endforeach()
  # Each has a definition of its own.
  list(APPEND core "${PROJECT_SOURCE_DIR}/src/base/version.cpp")
  list(APPEND operators "${PROJECT_SOURCE_DIR}/src/op/operator_library.cpp")
  file(GLOB opgen CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/op/gen/*.cpp")
  calque_list_zoo(zoo)
  calque_embed_page(graph_page graph/draw draw)
  calque_embed_page(profile_page compile/page profile)
  list(APPEND library ${zoo} ${graph_page} ${profile_page})
  set(calque_sources ${library} PARENT_SCOPE)
  set(calque_core_sources ${core} PARENT_SCOPE)
  set(calque_operator_sources ${operators} PARENT_SCOPE)
  set(calque_cli_sources ${program} PARENT_SCOPE)
  calque_group("${simd}" simd)
  set(calque_simd_sources ${simd} PARENT_SCOPE)
  set(calque_opgen_sources ${opgen} PARENT_SCOPE)
  set(calque_stanza_sources ${stanzas} PARENT_SCOPE)
endfunction()
