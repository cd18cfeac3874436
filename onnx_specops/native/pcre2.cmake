# Finds PCRE2 (8-bit, 10.40 or later): the static library where it can be linked into a shared one, else the shared library.
# Sets SPECOPS_PCRE2_LIBRARY, SPECOPS_PCRE2_INCLUDE_DIR and SPECOPS_PCRE2_DEFINITIONS; the first to nothing without PCRE2.
include(CheckCXXSourceCompiles)

find_path(SPECOPS_PCRE2_INCLUDE_DIR pcre2.h)
find_library(SPECOPS_PCRE2_STATIC NAMES libpcre2-8.a pcre2-8-static)
find_library(SPECOPS_PCRE2_SHARED NAMES pcre2-8)
mark_as_advanced(SPECOPS_PCRE2_INCLUDE_DIR SPECOPS_PCRE2_STATIC SPECOPS_PCRE2_SHARED)

set(SPECOPS_PCRE2_PROGRAM "
  #define PCRE2_CODE_UNIT_WIDTH 8
  #include <pcre2.h>
  #if PCRE2_MAJOR < 10 || (PCRE2_MAJOR == 10 && PCRE2_MINOR < 40)
  #error too old
  #endif
  extern \"C\" pcre2_code* compile(const char* pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    return pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), 1, PCRE2_MATCH_INVALID_UTF, &error, &offset, nullptr);
  }")

# Whether a shared library can be linked with one of PCRE2's: ``found`` says.
function(specops_try_pcre2 library definitions found)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/pcre2-${found}")
  file(WRITE "${folder}/program.cc" "${SPECOPS_PCRE2_PROGRAM}")
  file(WRITE "${folder}/CMakeLists.txt" "
    cmake_minimum_required(VERSION 3.18)
    project(program LANGUAGES CXX)
    add_library(program SHARED program.cc)
    target_compile_definitions(program PRIVATE ${definitions})
    target_include_directories(program SYSTEM PRIVATE \"${SPECOPS_PCRE2_INCLUDE_DIR}\")
    target_link_libraries(program PRIVATE \"${library}\")
    if(UNIX AND NOT APPLE)
      target_link_options(program PRIVATE -Wl,-z,defs)
    endif()")
  try_compile(${found} "${folder}/build" "${folder}" program)
  set(${found} ${${found}} PARENT_SCOPE)
endfunction()

set(SPECOPS_PCRE2_LIBRARY "")
set(SPECOPS_PCRE2_DEFINITIONS "")
if(SPECOPS_PCRE2_INCLUDE_DIR AND SPECOPS_PCRE2_STATIC)
  specops_try_pcre2("${SPECOPS_PCRE2_STATIC}" PCRE2_STATIC SPECOPS_PCRE2_STATIC_WORKS)
  if(SPECOPS_PCRE2_STATIC_WORKS)
    set(SPECOPS_PCRE2_LIBRARY "${SPECOPS_PCRE2_STATIC}")
    set(SPECOPS_PCRE2_DEFINITIONS PCRE2_STATIC)
  endif()
endif()
if(NOT SPECOPS_PCRE2_LIBRARY AND SPECOPS_PCRE2_INCLUDE_DIR AND SPECOPS_PCRE2_SHARED)
  specops_try_pcre2("${SPECOPS_PCRE2_SHARED}" "" SPECOPS_PCRE2_SHARED_WORKS)
  if(SPECOPS_PCRE2_SHARED_WORKS)
    set(SPECOPS_PCRE2_LIBRARY "${SPECOPS_PCRE2_SHARED}")
  endif()
endif()
