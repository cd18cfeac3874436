"""Where the native kernels are."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

from onnx_specops.runtime.errors import MissingKernelError
from onnx_specops.runtime.installed import describe, installed_package

_NAMES = {"win32": "onnx_specops.dll", "darwin": "libonnx_specops.dylib"}
_PATH = Path(__file__).parent.parent / "native" / _NAMES.get(sys.platform, "libonnx_specops.so")


def library_path() -> str:
    """The shared library of the native kernels, for ``RegisterCustomOps`` from any language.

    A checkout that has not built its own takes that of an installation of the same version and the same operators.

    Returns:
        Its absolute path, for ``SessionOptions.register_custom_ops_library`` (Python),
        ``SessionOptions::RegisterCustomOpsLibrary`` (C++), ``RegisterCustomOpLibrary`` (C#), ``registerCustomOpLibrary``
        (Java) or Triton's ``op_library_filename``.

    Raises:
        MissingKernelError: if there is no library: the installation was made without a compiler, or a checkout is neither
            built nor installed.
    """
    package = _package()
    if package is None:
        raise MissingKernelError(f"the native kernels are not built ({_PATH} does not exist). {remedy()}")
    return str(_PATH if _PATH.is_file() else package / "native" / _PATH.name)


def has_library() -> bool:
    """Whether the native kernels are built."""
    return _package() is not None


def remedy() -> str:
    """What builds the native kernels where they are not built."""
    if (_PATH.parent / "CMakeLists.txt").is_file():
        return (
            f"This package is a checkout: `pip install .` in {_PATH.parent.parent.parent}, or `cmake -S onnx_specops/native "
            "-B build && cmake --build build` there, builds them (with a C++17 compiler)"
        )
    return (
        "Installing with a C++17 compiler at hand builds them: "
        "pip install --force-reinstall --no-deps --no-binary onnx-specops onnx-specops"
    )


def cmake_folder() -> Path:
    """The folder of the CMake package: beside the library where there is one, else this package's."""
    return (_package() or _PATH.parent.parent) / "cmake"


def _package() -> Path | None:
    """The folder of the package that holds the library: this one, or an installation of the same version."""
    own = _PATH.parent.parent
    return own if _PATH.is_file() else installed_package(own, f"native/{_PATH.name}")


def description() -> dict[str, Any]:
    """What the library says of its operators (description.h has the form); raises `MissingKernelError` as `library_path`."""
    return describe(Path(library_path()))


@functools.cache
def native_operators() -> frozenset[str]:
    """The operators that the library has kernels for; raises `MissingKernelError` as `library_path` does."""
    return frozenset(operator["name"] for operator in description()["operators"])
