"""The location of the native kernels."""

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
    """Return the path of the shared library of the native kernels, for ``RegisterCustomOps`` from any language.

    In a checkout without its own library, this is the library of an installed onnx-specops with the same version and
    operators.

    Returns:
        The absolute path, for ``SessionOptions.register_custom_ops_library`` (Python),
        ``SessionOptions::RegisterCustomOpsLibrary`` (C++), ``RegisterCustomOpLibrary`` (C#), ``registerCustomOpLibrary``
        (Java) or Triton's ``op_library_filename``.

    Raises:
        MissingKernelError: the library is not built, for example because no compiler was found during the installation.
    """
    package = _package()
    if package is None:
        raise MissingKernelError(f"the native kernels are not built ({_PATH} does not exist). {remedy()}")
    return str(_PATH if _PATH.is_file() else package / "native" / _PATH.name)


def has_library() -> bool:
    """Return whether the native kernels are built."""
    return _package() is not None


def remedy() -> str:
    """Return the instructions for building the native kernels."""
    if (_PATH.parent / "CMakeLists.txt").is_file():
        return (
            f"To build them with a C++17 compiler, run `pip install .` in {_PATH.parent.parent.parent}, or run `cmake -S "
            "onnx_specops/native -B build && cmake --build build` there"
        )
    return (
        "To build them, install a C++17 compiler and run "
        "pip install --force-reinstall --no-deps --no-binary onnx-specops onnx-specops"
    )


def cmake_folder() -> Path:
    """Return the folder of the CMake package: next to the library if there is one, otherwise in this package."""
    return (_package() or _PATH.parent.parent) / "cmake"


def _package() -> Path | None:
    """Return the folder of the package with the library: this one, or an installation of the same version."""
    own = _PATH.parent.parent
    return own if _PATH.is_file() else installed_package(own, f"native/{_PATH.name}")


def description() -> dict[str, Any]:
    """Return the library's operators (see description.h for the format); raise `MissingKernelError` like `library_path`."""
    return describe(Path(library_path()))


@functools.cache
def native_operators() -> frozenset[str]:
    """Return the operators with native kernels; raise `MissingKernelError` like `library_path`."""
    return frozenset(operator["name"] for operator in description()["operators"])


@functools.cache
def unregistered_operators() -> frozenset[str]:
    """Return the operators whose native kernels are not registered, because their bodies are faster on this processor.

    Raises:
        MissingKernelError: like `library_path`.
    """
    # Libraries of earlier builds register all operators, and do not say so.
    return frozenset(operator["name"] for operator in description()["operators"] if not operator.get("registered", True))


@functools.cache
def has_wide_vectors() -> bool:
    """Return whether the library uses AVX2 or newer instructions; raise `MissingKernelError` like `library_path`."""
    return bool(description()["products"] != "portable")
