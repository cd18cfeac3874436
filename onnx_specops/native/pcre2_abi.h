// PCRE2's C interface for 8-bit code units, as far as this library uses it, declared by hand: building needs no headers of
// PCRE2, and the library is opened at run time.
//
// The interface is stable: libpcre2-8.so.0 has had these functions and numbers since 10.0, and MATCH_INVALID_UTF since 10.34.
// tests/onnx_specops/native/test_pcre2.py compares this file with what tests/data records of the real header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace specops::pcre2 {

// Objects that only PCRE2 looks into.
struct Code;
struct MatchData;
struct MatchContext;
struct JitStack;
struct GeneralContext;
struct CompileContext;

constexpr std::uint32_t ANCHORED = 0x80000000u;
constexpr std::uint32_t NO_UTF_CHECK = 0x40000000u;
constexpr std::uint32_t UCP = 0x00020000u;
constexpr std::uint32_t UTF = 0x00080000u;
constexpr std::uint32_t MATCH_INVALID_UTF = 0x04000000u;
constexpr std::uint32_t NOTEMPTY_ATSTART = 0x00000008u;
constexpr std::uint32_t JIT_COMPLETE = 0x00000001u;
constexpr std::uint32_t INFO_CAPTURECOUNT = 4;
constexpr std::uint32_t CONFIG_VERSION = 11;
constexpr int ERROR_NOMATCH = -1;
constexpr int ERROR_JIT_STACKLIMIT = -46;
constexpr std::size_t UNSET = ~static_cast<std::size_t>(0);

// The functions; their names in the library have the prefix pcre2_ and the suffix _8.
struct Functions {
  int (*config)(std::uint32_t, void*);
  Code* (*compile)(const unsigned char*, std::size_t, std::uint32_t, int*, std::size_t*, CompileContext*);
  void (*code_free)(Code*);
  int (*jit_compile)(Code*, std::uint32_t);
  int (*pattern_info)(const Code*, std::uint32_t, void*);
  int (*get_error_message)(int, unsigned char*, std::size_t);
  MatchData* (*match_data_create_from_pattern)(const Code*, GeneralContext*);
  void (*match_data_free)(MatchData*);
  std::size_t* (*get_ovector_pointer)(MatchData*);
  MatchContext* (*match_context_create)(GeneralContext*);
  void (*match_context_free)(MatchContext*);
  JitStack* (*jit_stack_create)(std::size_t, std::size_t, GeneralContext*);
  void (*jit_stack_free)(JitStack*);
  void (*jit_stack_assign)(MatchContext*, JitStack* (*)(void*), void*);
  int (*match)(const Code*, const unsigned char*, std::size_t, std::size_t, std::uint32_t, MatchData*, MatchContext*);
};

// What became of the search for PCRE2.
struct Library {
  Functions functions{};
  bool found = false;
  // Its version where it was found, else why it was not.
  std::string description;
};

// PCRE2 10.40 or later: from the folder of this library, else the system's. Opened once, and never closed.
const Library& library();

// The functions of `library()`, which must be found.
inline const Functions& functions() { return library().functions; }

}  // namespace specops::pcre2
