// ONNX Runtime loads this library for each session's options, and unloads it with them. What it is given (registration.cc)
// is kept for ever all the same, since sessions refer to it: each load would leave its own behind.
#pragma once

namespace specops {

// Keeps the library loaded for the life of the process, where the linker has not seen to that (-z nodelete does for ELF).
void stay_loaded();

}  // namespace specops
