"""The hand-written pcre2_abi.h, compared with PCRE2's header (recorded in tests/data), and the search for the library."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onnx_specops.runtime.library import library_path
from tests.data.make_pcre2_interface import CONSTANTS, FUNCTIONS, OUTPUT
from tests.native import needs_library, needs_pcre2

REAL = json.loads(OUTPUT.read_text(encoding="utf-8"))
# Prints the description in the library of the first argument, and the PCRE2 that the process has loaded.
DESCRIBE = """
import ctypes, sys
describe = ctypes.CDLL(sys.argv[1]).OnnxSpecopsOperators
describe.restype = ctypes.c_char_p
print(describe().decode())
print({line.split()[-1] for line in open("/proc/self/maps") if "libpcre2-8" in line} or "{}")
"""
# Overrides the C library's dlopen.
WITHOUT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void* dlopen(const char* name, int flags) {
  static void* (*real)(const char*, int);
  if (real == 0) *(void**)&real = dlsym(RTLD_NEXT, "dlopen");
  return name != 0 && strstr(name, "pcre2") != 0 ? 0 : real(name, flags);
}
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="libraries have other names elsewhere")


def number(text: str) -> int | str:
    return int(text.rstrip("u"), 0) if re.fullmatch(r"-?\w+", text) else "all bits"


def test_constants_and_functions_match_the_header() -> None:
    assert len(CONSTANTS) == 12 and len(FUNCTIONS) == 15
    assert {name: number(value) for name, value in CONSTANTS.items()} == {
        name: number(value) for name, value in REAL["constants"].items()
    }
    assert {name: tuple(types) for name, types in REAL["functions"].items()} == FUNCTIONS


def described(library: Path, **environment: str) -> tuple[dict, str]:
    command = ["env", *(f"{name}={value}" for name, value in environment.items()), sys.executable, "-c", DESCRIBE, library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    description, loaded = done.stdout.splitlines()
    return json.loads(description), loaded


@linux
@needs_library
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_without_pcre2_all_other_kernels_are_available(tmp_path: Path) -> None:
    (tmp_path / "without.c").write_text(WITHOUT)
    shim = tmp_path / "without.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "without.c", "-o", shim, "-ldl"], check=True)
    description, _ = described(Path(library_path()), LD_PRELOAD=str(shim))
    assert description["regular_expressions"] == "PCRE2 (libpcre2-8.so.0) is not installed"
    names = {operator["name"] for operator in description["operators"]}
    assert "VocabularyTable" in names
    assert not names & {"RegexNormalization", "RegexSplit", "SpecialTokensSplit"}


@linux
@needs_pcre2
def test_a_library_next_to_the_kernels_comes_first(tmp_path: Path) -> None:
    kernels = shutil.copy(library_path(), tmp_path)
    _, loaded = described(Path(library_path()))
    (installed,) = re.findall(r"'([^']*)'", loaded)
    shutil.copyfile(installed, tmp_path / "libpcre2-8.so.0")
    description, loaded = described(Path(kernels))
    assert description["regular_expressions"].startswith("PCRE2 10.") and f"'{tmp_path}/libpcre2-8.so.0'" in loaded


@linux
@needs_pcre2
@pytest.mark.parametrize("content", ["another library", "no library"])
def test_other_libraries_are_ignored(content: str, tmp_path: Path) -> None:
    kernels = shutil.copy(library_path(), tmp_path)
    other = tmp_path / "libpcre2-8.so.0"
    if content == "another library":
        shutil.copyfile(kernels, other)
    else:
        other.write_text("INPUT(pcre2)")
    assert described(Path(kernels))[0]["regular_expressions"].startswith("PCRE2 10.")
