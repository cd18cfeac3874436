"""ONNX Runtime's C++ headers and library on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import onnxruntime as ort

_SYSTEM = ("/usr/include/onnxruntime", "/usr/local/include/onnxruntime", "/usr/local/include")
_API = "onnxruntime_cxx_api.h"


def headers() -> Path | None:
    """Return the folder of the headers: in ``ONNXRUNTIME_ROOT``, or the system's."""
    root = os.environ.get("ONNXRUNTIME_ROOT")
    given = [Path(root) / "include", Path(root) / "include" / "onnxruntime"] if root else []
    return next((folder for folder in [*given, *map(Path, _SYSTEM)] if (folder / _API).is_file()), None)


def library() -> Path | None:
    """Return the library in the installed wheel of onnxruntime, from 1.20 on."""
    pattern = {"darwin": "libonnxruntime*.dylib", "win32": "onnxruntime.dll"}.get(sys.platform, "libonnxruntime.so.*")
    return next(iter(sorted((Path(ort.__file__).parent / "capi").glob(pattern))), None)


def make_root(folder: Path) -> Path:
    """Create a folder with the layout of an ONNX Runtime release from `headers` and `library`.

    Raises:
        LookupError: a part is missing.
    """
    found, shared = headers(), library()
    if found is None:
        raise LookupError(
            "ONNX Runtime's C++ headers are not here: apt-get install libonnxruntime-dev, or ONNXRUNTIME_ROOT=..."
        )
    if shared is None or sys.platform != "linux":
        raise LookupError("the wheel of onnxruntime contains no library that a program can link here")
    (folder / "lib").mkdir(parents=True)
    (folder / "include").symlink_to(found.resolve(), target_is_directory=True)
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (folder / "lib" / name).symlink_to(shared.resolve())
    return folder
