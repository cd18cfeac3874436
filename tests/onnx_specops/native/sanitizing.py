"""The native kernels with AddressSanitizer and UndefinedBehaviorSanitizer, and the environment for loading them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from tests.locking import locked

ROOT = Path(__file__).parents[3]
# NumPy and ONNX Runtime keep memory until the process ends. Freed memory is quarantined, to detect later uses.
ASAN = "detect_leaks=0:quarantine_size_mb=64:exitcode=86"
UBSAN = "print_stacktrace=1:exitcode=86"


def runtime(name: str) -> str | None:
    """Return the path of one of the compiler's runtime libraries."""
    if shutil.which("c++") is None:
        return None
    found = subprocess.run(["c++", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    return found if os.path.isabs(found) and os.path.exists(found) else None


def preloaded() -> str:
    """Return the libraries to preload, including the C++ library, because AddressSanitizer wraps its exceptions."""
    return " ".join(filter(None, [runtime("libasan.so"), runtime("libstdc++.so.6")]))


def build(folder: Path) -> Path:
    """Build the instrumented library in a folder if it is missing or its sources have changed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path}
    configure = [
        *("cmake", "-S", ROOT / "onnx_specops" / "native", "-B", folder / "build"),
        *("-DONNX_SPECOPS_SANITIZE=ON", "-DONNX_SPECOPS_EVEX=ON", f"-DONNX_SPECOPS_OUTPUT_DIRECTORY={folder}"),
        *(["-G", "Ninja"] if shutil.which("ninja", path=path) else []),
    ]
    with locked(folder / "lock"):
        # The cache may name Ninja in a removed environment.
        (folder / "build" / "CMakeCache.txt").unlink(missing_ok=True)
        for command in (configure, ["cmake", "--build", folder / "build", "--parallel", "2"]):
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder / "libonnx_specops.so"


def environment(folder: Path | None = None) -> dict[str, str]:
    """Return the environment of a process that loads the library, which is built if necessary. Reports go to standard error.

    Raises:
        RuntimeError: the compiler has no shared AddressSanitizer (GCC has one).
    """
    if sys.platform != "linux" or runtime("libasan.so") is None:
        raise RuntimeError("no compiler with a shared AddressSanitizer")
    checkout = f"{zlib.crc32(str(ROOT).encode()):08x}"  # CMake does not build the sources of another checkout in a folder
    folder = folder or Path(tempfile.gettempdir()) / f"onnx-specops-sanitized-{os.getuid()}-{checkout}"
    folder.mkdir(exist_ok=True)
    return {
        "LD_PRELOAD": preloaded(),
        "ASAN_OPTIONS": ASAN + ":allocator_may_return_null=1",
        "UBSAN_OPTIONS": UBSAN + ":halt_on_error=1",
        "ONNX_SPECOPS_TEST_LIBRARY": str(build(folder)),
    }
