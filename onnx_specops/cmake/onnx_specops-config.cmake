# The native kernels, for programs that link ONNX Runtime:
#
#     find_package(onnx_specops)   # cmake -Donnx_specops_DIR="$(python -m onnx_specops --cmake-dir)"
#
# sets onnx_specops_LIBRARY to the path of the shared library, for RegisterCustomOpsLibrary, and defines the imported target
# onnx_specops::onnx_specops. A program loads the library at run time and does not link it.
set(_onnx_specops_name libonnx_specops.so)
if(WIN32)
  set(_onnx_specops_name onnx_specops.dll)
elseif(APPLE)
  set(_onnx_specops_name libonnx_specops.dylib)
endif()
get_filename_component(onnx_specops_LIBRARY "${CMAKE_CURRENT_LIST_DIR}/../native/${_onnx_specops_name}" ABSOLUTE)
unset(_onnx_specops_name)

if(NOT EXISTS "${onnx_specops_LIBRARY}")
  set(onnx_specops_FOUND FALSE)
  set(onnx_specops_NOT_FOUND_MESSAGE
      "this installation has no native kernels (${onnx_specops_LIBRARY} does not exist): it was made without a compiler")
elseif(NOT TARGET onnx_specops::onnx_specops)
  add_library(onnx_specops::onnx_specops MODULE IMPORTED)
  set_target_properties(onnx_specops::onnx_specops PROPERTIES IMPORTED_LOCATION "${onnx_specops_LIBRARY}")
endif()
