// ONNX Runtime loads this library for each session's options, and unloads it with them. The registration (registration.cc)
// is never freed, because sessions refer to it, so each load would leak one.
#pragma once

namespace specops {

// Keeps the library loaded until the process ends, unless the linker did so (-z nodelete for ELF).
void stay_loaded();

}  // namespace specops
