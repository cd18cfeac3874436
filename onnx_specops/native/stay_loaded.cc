#include "stay_loaded.h"

#if defined(_WIN32)
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#elif defined(__APPLE__)
#include <dlfcn.h>
#endif

namespace specops {

#if defined(_WIN32)
void stay_loaded() {
  HMODULE self = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                     reinterpret_cast<LPCWSTR>(&stay_loaded), &self);
}
#elif defined(__APPLE__)
void stay_loaded() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&stay_loaded), &self) != 0) dlopen(self.dli_fname, RTLD_LAZY | RTLD_NODELETE);
}
#else
void stay_loaded() {}
#endif

}  // namespace specops
