"""Where the native kernels are."""

from __future__ import annotations

import ctypes
import functools
import json
import sys
from pathlib import Path
from typing import Any

from onnx_specops.runtime.errors import MissingKernelError

_NAMES = {"win32": "onnx_specops.dll", "darwin": "libonnx_specops.dylib"}
_PATH = Path(__file__).parent.parent / "native" / _NAMES.get(sys.platform, "libonnx_specops.so")


def library_path() -> str:
    """The shared library of the native kernels, for ``RegisterCustomOps`` from any language.

    Returns:
        Its absolute path, for ``SessionOptions.register_custom_ops_library`` (Python),
        ``SessionOptions::RegisterCustomOpsLibrary`` (C++), ``RegisterCustomOpLibrary`` (C#), ``registerCustomOpLibrary``
        (Java) or Triton's ``op_library_filename``.

    Raises:
        MissingKernelError: if this installation was made without a compiler and holds no library.
    """
    if not has_library():
        raise MissingKernelError(
            f"the native kernels are not built ({_PATH} does not exist). Installing with a C++17 compiler at hand builds "
            "them: pip install --force-reinstall --no-deps --no-binary onnx-specops onnx-specops; in a checkout: "
            "cmake -S onnx_specops/native -B build && cmake --build build"
        )
    return str(_PATH)


def has_library() -> bool:
    """Whether the native kernels are built."""
    return _PATH.is_file()


def description() -> dict[str, Any]:
    """What the library says of its operators (description.h has the form); raises `MissingKernelError` as `library_path`."""
    describe = ctypes.CDLL(library_path()).OnnxSpecopsOperators
    describe.restype = ctypes.c_char_p
    return json.loads(describe())


@functools.cache
def native_operators() -> frozenset[str]:
    """The operators that the library has kernels for; raises `MissingKernelError` as `library_path` does."""
    return frozenset(operator["name"] for operator in description()["operators"])
