// The used part of PCRE2's C interface for 8-bit code units, declared by hand. Building needs no PCRE2 headers; the library
// is opened at run time.
//
// The interface is stable: libpcre2-8.so.0 has had these functions and numbers since 10.0, and MATCH_INVALID_UTF since
// 10.34. tests/onnx_specops/native/test_pcre2.py compares this file with the real header, as recorded in tests/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace specops::pcre2 {

// Opaque objects of PCRE2.
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

// The functions. Their names in the library have the prefix pcre2_ and the suffix _8.
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

// The result of the search for PCRE2.
struct Library {
  Functions functions{};
  bool found = false;
  // Its version, or the reason why it was not found.
  std::string description;
};

// PCRE2 10.40 or later, from the folder of this library or from the system. It is opened once and never closed.
const Library& library();

// The functions of `library()`, which must have been found.
inline const Functions& functions() { return library().functions; }

}  // namespace specops::pcre2
