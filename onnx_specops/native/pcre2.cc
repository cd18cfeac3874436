// Opens PCRE2's shared library.
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "pcre2_abi.h"

#if defined(_WIN32)
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace specops::pcre2 {
namespace {

#if defined(_WIN32)

using Handle = HMODULE;

// The names in PCRE2's own build and vcpkg, in MSYS2, and in conda-forge.
constexpr const char* names[] = {"pcre2-8.dll", "libpcre2-8-0.dll", "libpcre2-8.dll"};
constexpr const char* folders[] = {""};

// Never from the current directory or PATH, which may contain untrusted libraries.
Handle open(const std::string& path, bool is_full) {
  const DWORD flags = is_full ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
                              : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
  return LoadLibraryExA(path.c_str(), nullptr, flags);
}

void* symbol(Handle handle, const char* name) { return reinterpret_cast<void*>(GetProcAddress(handle, name)); }

void close(Handle handle) { FreeLibrary(handle); }

std::string own_path() {
  HMODULE self = nullptr;
  char path[MAX_PATH];
  const bool known = GetModuleHandleExA(
      GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
      reinterpret_cast<LPCSTR>(&own_path), &self);
  const DWORD size = known ? GetModuleFileNameA(self, path, MAX_PATH) : 0;
  return size == 0 || size == MAX_PATH ? "" : std::string(path, size);
}

#else

using Handle = void*;

#if defined(__APPLE__)
constexpr const char* names[] = {"libpcre2-8.0.dylib", "libpcre2-8.dylib"};
// dlopen does not search the folders of Homebrew and MacPorts.
constexpr const char* folders[] = {"", "/opt/homebrew/lib/", "/usr/local/lib/", "/opt/local/lib/"};
#else
constexpr const char* names[] = {"libpcre2-8.so.0"};
constexpr const char* folders[] = {""};
#endif

Handle open(const std::string& path, bool) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

void* symbol(Handle handle, const char* name) { return dlsym(handle, name); }

void close(Handle handle) { dlclose(handle); }

std::string own_path() {
  Dl_info self;
  const bool known = dladdr(reinterpret_cast<const void*>(&own_path), &self) != 0 && self.dli_fname != nullptr;
  return known ? self.dli_fname : "";
}

#endif

template <class Function>
bool find(Handle handle, const char* name, Function& function) {
  void* const found = symbol(handle, name);
  std::memcpy(&function, &found, sizeof function);  // ISO C++ has no cast from an object pointer to a function pointer
  return found != nullptr;
}

bool find_all(Handle handle, Functions& to) {
#define SPECOPS_PCRE2_FIND(name) find(handle, "pcre2_" #name "_8", to.name)
  return SPECOPS_PCRE2_FIND(config) && SPECOPS_PCRE2_FIND(compile) && SPECOPS_PCRE2_FIND(code_free) &&
         SPECOPS_PCRE2_FIND(jit_compile) && SPECOPS_PCRE2_FIND(pattern_info) && SPECOPS_PCRE2_FIND(get_error_message) &&
         SPECOPS_PCRE2_FIND(match_data_create_from_pattern) && SPECOPS_PCRE2_FIND(match_data_free) &&
         SPECOPS_PCRE2_FIND(get_ovector_pointer) && SPECOPS_PCRE2_FIND(match_context_create) &&
         SPECOPS_PCRE2_FIND(match_context_free) && SPECOPS_PCRE2_FIND(jit_stack_create) &&
         SPECOPS_PCRE2_FIND(jit_stack_free) && SPECOPS_PCRE2_FIND(jit_stack_assign) && SPECOPS_PCRE2_FIND(match);
#undef SPECOPS_PCRE2_FIND
}

// Fills `to` if the library is suitable; otherwise returns the reason, without its folder, which may not be UTF-8.
bool use(Handle handle, const std::string& path, Library& to) {
  const std::string name = path.substr(path.find_last_of("/\\") + 1);
  if (!find_all(handle, to.functions)) {
    to.description = name + " lacks functions of PCRE2";
    return false;
  }
  char version[64] = "";
  unsigned major = 0, minor = 0;
  const int size = to.functions.config(CONFIG_VERSION, nullptr);
  if (size > 0 && static_cast<std::size_t>(size) <= sizeof version) to.functions.config(CONFIG_VERSION, version);
  // Script names include script extensions since 10.40.
  if (std::sscanf(version, "%u.%u", &major, &minor) != 2 || major < 10 || (major == 10 && minor < 40)) {
    to.description = name + " is PCRE2 " + version + ", which is older than 10.40";
    return false;
  }
  to.description = "PCRE2 " + std::string(version);
  return true;
}

Library load() {
  std::vector<std::pair<std::string, bool>> paths;
  const std::string own = own_path();
  const std::size_t slash = own.find_last_of("/\\");
  for (const char* const name : names) {
    if (slash != std::string::npos) paths.emplace_back(own.substr(0, slash + 1) + name, true);
  }
  for (const char* const folder : folders) {
    for (const char* const name : names) paths.emplace_back(std::string(folder) + name, folder[0] != '\0');
  }
  Library found;
  for (const auto& [path, is_full] : paths) {
    const Handle handle = open(path, is_full);
    if (handle == nullptr) continue;
    if ((found.found = use(handle, path, found))) return found;
    close(handle);
  }
  if (found.description.empty()) found.description = std::string("PCRE2 (") + names[0] + ") is not installed";
  return found;
}

}  // namespace

const Library& library() {
  static const Library& found = *new Library(load());  // never freed, because kernels refer to it
  return found;
}

}  // namespace specops::pcre2
