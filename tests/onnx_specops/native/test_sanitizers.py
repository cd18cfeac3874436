"""The native kernels' tests again, against a build with AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TESTS = [
    "tests/onnx_specops/native/test_random_nodes.py",
    "tests/onnx_specops/native/test_random_layers.py",
    "tests/onnx_specops/native/test_graphs.py",
    "tests/onnx_specops/ops/test_strings.py",
    "tests/onnx_specops/ops/test_vocabulary_table.py",
    "tests/onnx_specops/ops/test_hashing.py",
]
# NumPy and ONNX Runtime keep memory until the process ends.
ASAN = "detect_leaks=0:exitcode=86"
UBSAN = "print_stacktrace=1:exitcode=86"


def runtime(name: str) -> str | None:
    """The path of one of the compiler's runtime libraries."""
    if shutil.which("c++") is None:
        return None
    found = subprocess.run(["c++", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    return found if os.path.isabs(found) and os.path.exists(found) else None


def build(folder: Path) -> Path:
    """The instrumented library."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path}
    configure = [
        "cmake",
        "-S",
        ROOT / "onnx_specops" / "native",
        "-B",
        folder / "build",
        "-DONNX_SPECOPS_SANITIZE=ON",
    ]
    configure += [
        f"-DONNX_SPECOPS_OUTPUT_DIRECTORY={folder}",
        *(["-G", "Ninja"] if shutil.which("ninja", path=path) else []),
    ]
    for command in (configure, ["cmake", "--build", folder / "build", "--parallel", "2"]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "libonnx_specops.so"


@pytest.mark.sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="the sanitizers are preloaded as on Linux")
@pytest.mark.skipif(runtime("libasan.so") is None, reason="no compiler with a shared AddressSanitizer (GCC has one)")
def test_the_kernels_under_sanitizers(tmp_path: Path) -> None:
    library = build(tmp_path)
    instrumented = library.read_bytes()
    assert b"__asan_report_load" in instrumented and b"__ubsan_handle" in instrumented
    # The C++ library goes first, for AddressSanitizer wraps how it throws.
    preloaded = " ".join(filter(None, [runtime("libasan.so"), runtime("libstdc++.so.6")]))
    environment = {
        **os.environ,
        "LD_PRELOAD": preloaded,
        "ASAN_OPTIONS": f"{ASAN}:log_path={tmp_path}/report",
        "UBSAN_OPTIONS": f"{UBSAN}:log_path={tmp_path}/report",
        "ONNX_SPECOPS_TEST_LIBRARY": str(library),
    }
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.append({str(ROOT)!r}); import pytest; sys.exit(pytest.main(sys.argv[1:]))",
        "-p",
        "tests.onnx_specops.native.sanitized",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-p", "no:xdist", "-q", "-x", "--no-header", *TESTS]
    command += ["-k", "native and not memory"]  # AddressSanitizer ends the process where an allocation fails
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    reports = "".join(path.read_text() for path in sorted(tmp_path.glob("report*")))
    assert done.returncode == 0 and not reports, reports[:8000] + done.stdout[-8000:] + done.stderr[-8000:]
    assert "[100%]" in done.stdout
