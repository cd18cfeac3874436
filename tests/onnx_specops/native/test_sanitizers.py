"""The tests of the native kernels with AddressSanitizer and UndefinedBehaviorSanitizer.

The library is built once, and again only if its sources change. The tests run in several processes, which pytest-xdist can
distribute. Each has a part of the tests and uses at most 2 GB. Every other part runs by default, and all of them with
``--conformance=all``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.onnx_specops.native.sanitizing import ASAN, ROOT, UBSAN, build, preloaded, runtime

TESTS = [
    "tests/onnx_specops/native/test_random_nodes.py",
    "tests/onnx_specops/native/test_random_layers.py",
    "tests/onnx_specops/native/test_winograd.py",
    "tests/onnx_specops/native/test_graphs.py",
    "tests/onnx_specops/native/test_hostile.py::test_the_native_kernels_in_this_process",
    "tests/onnx_specops/ops/test_strings.py",
    "tests/onnx_specops/ops/test_vocabulary_table.py",
    "tests/onnx_specops/ops/test_hashing.py",
]
PARTS = 8
MOST_RESIDENT = 2 * 10**9
# Prints the child's peak memory at the end.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(done.returncode)
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "part" in metafunc.fixturenames:
        whole = metafunc.config.getoption("--conformance") == "all"
        metafunc.parametrize("part", range(PARTS) if whole else range(0, PARTS, 4))


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the instrumented library, stored in pytest's cache if there is one."""
    cache = getattr(request.config, "cache", None)
    folder = tmp_path_factory.mktemp("sanitized") if cache is None else cache.mkdir("sanitized")
    built = build(folder)
    instrumented = built.read_bytes()
    assert b"__asan_report_load" in instrumented and b"__ubsan_handle" in instrumented
    return built


@pytest.mark.sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="the sanitizers are preloaded as on Linux")
@pytest.mark.skipif(runtime("libasan.so") is None, reason="no compiler with a shared AddressSanitizer (GCC has one)")
def test_the_kernels_under_sanitizers(part: int, library: Path, tmp_path: Path) -> None:
    sanitized = [
        f"LD_PRELOAD={preloaded()}",
        f"ASAN_OPTIONS={ASAN}:log_path={tmp_path}/report",
        f"UBSAN_OPTIONS={UBSAN}:log_path={tmp_path}/report",
        f"ONNX_SPECOPS_TEST_LIBRARY={library}",
        f"ONNX_SPECOPS_TEST_PART={part}/{PARTS}",
    ]
    command = [
        *(sys.executable, "-c", MEASURE, "env", *sanitized),
        *(
            sys.executable,
            "-c",
            f"import sys; sys.path.append({str(ROOT)!r}); import pytest; sys.exit(pytest.main(sys.argv[1:]))",
        ),
        *(
            "-p",
            "tests.onnx_specops.native.sanitized",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-q",
            "-x",
            "--no-header",
        ),
        *(*TESTS, "-k", "native and not memory and not instruction_set"),  # AddressSanitizer aborts if an allocation fails
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    reports = "".join(path.read_text() for path in sorted(tmp_path.glob("report*")))
    assert done.returncode == 0 and not reports, reports[:8000] + done.stdout[-8000:] + done.stderr[-8000:]
    assert "[100%]" in done.stdout
    assert int(done.stdout.split()[-1]) < MOST_RESIDENT
