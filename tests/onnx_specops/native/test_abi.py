"""The hand-written ort_abi.h, compared with ONNX Runtime's C header (recorded in tests/data) and its library."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import onnxruntime as ort
import pytest

from onnx_specops.runtime.library import has_library, library_path
from tests.data.make_onnxruntime_api import HEADER, NATIVE, OURS, OUTPUT, SLOTS, custom_op_fields, enumerators, layout

KERNELS = Path(__file__).with_name("test_kernels.py")
REAL = json.loads(OUTPUT.read_text(encoding="utf-8"))


def test_the_record_covers_the_header() -> None:
    assert len(SLOTS) == HEADER.count("\n  SLOT(") >= 30
    assert len(custom_op_fields()) == 21
    assert custom_op_fields()[-1] == "GetEndVersion"
    assert {"ORT_INVALID_ARGUMENT", "ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16"} <= set(enumerators())


def test_function_slots_match_the_header() -> None:
    assert {name: place for name, (place, _) in REAL["functions"].items()} == SLOTS


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_sizes_fields_and_values_match_the_header() -> None:
    ours = layout(OURS, NATIVE)
    assert ours["custom_op"] == REAL["custom_op"]
    assert ours["values"] == REAL["values"]
    assert {name: sizes for name, (_, sizes) in ours["functions"].items()} == {
        name: sizes for name, (_, sizes) in REAL["functions"].items()
    }


class Table:
    """ONNX Runtime's table of functions, with the numbers of ort_abi.h."""

    def __init__(self) -> None:
        class Base(ctypes.Structure):
            _fields_ = [
                ("GetApi", ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)),
                ("GetVersionString", ctypes.CFUNCTYPE(ctypes.c_char_p)),
            ]

        version = re.search(r"api_version = (\d+)", HEADER)
        assert version is not None
        get_base = _exporting("OrtGetApiBase").OrtGetApiBase
        get_base.restype = ctypes.POINTER(Base)
        self.base = get_base().contents
        self.slots = self.base.GetApi(int(version[1]))

    def call(self, name: str, *arguments: object, result: object = ctypes.c_void_p) -> object:
        address = self.slots[SLOTS[name]]
        return ctypes.CFUNCTYPE(result, *[type(a) for a in arguments])(address)(*arguments)

    def checked(self, name: str, *arguments: object) -> None:
        status = self.call(name, *arguments)
        assert status is None, name


def _exporting(symbol: str) -> ctypes.CDLL:
    folder = Path(ort.__file__).parent / "capi"
    libraries: Sequence[Path] = sorted(folder.glob("*onnxruntime*.so*")) + sorted(folder.glob("*onnxruntime*.dylib"))
    for path in libraries:
        library = ctypes.CDLL(str(path))
        if hasattr(library, symbol):
            return library
    pytest.skip(f"this onnxruntime exports no {symbol}")


def test_the_api_base_matches_the_header() -> None:
    assert Table().base.GetVersionString().decode() == ort.__version__


def test_a_status_keeps_its_message() -> None:
    table = Table()
    status = ctypes.c_void_p(table.call("CreateStatus", ctypes.c_int(2), ctypes.c_char_p(b"indices[3] = 17")))
    assert table.call("GetErrorMessage", status, result=ctypes.c_char_p) == b"indices[3] = 17"
    table.call("ReleaseStatus", status, result=None)


def test_a_type_and_shape_keeps_its_values() -> None:
    table = Table()
    info, kind, rank = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_size_t()
    dimensions, names = (ctypes.c_int64 * 3)(2, -1, 5), (ctypes.c_char_p * 3)(b"", b"batch", b"")
    read, read_names = (ctypes.c_int64 * 3)(), (ctypes.c_char_p * 3)()
    three = ctypes.c_size_t(3)

    table.checked("CreateTensorTypeAndShapeInfo", ctypes.pointer(info))
    table.checked("SetTensorElementType", info, ctypes.c_int(16))
    table.checked("SetDimensions", info, dimensions, three)
    table.checked("SetSymbolicDimensions", info, names, three)
    table.checked("GetTensorElementType", info, ctypes.pointer(kind))
    table.checked("GetDimensionsCount", info, ctypes.pointer(rank))
    table.checked("GetDimensions", info, read, three)
    table.checked("GetSymbolicDimensions", info, read_names, three)
    assert (kind.value, rank.value, list(read), list(read_names)) == (16, 3, [2, -1, 5], [b"", b"batch", b""])
    table.call("ReleaseTensorTypeAndShapeInfo", info, result=None)


def test_a_domain_can_be_created() -> None:
    domain = ctypes.c_void_p()
    Table().checked("CreateCustomOpDomain", ctypes.c_char_p(b"test"), ctypes.pointer(domain))
    assert domain.value


# Forwards everything, but reports the oldest supported version of ONNX Runtime.
OLDER = """
#include "ort_abi.h"

#include <dlfcn.h>

using namespace specops::abi;

namespace {
const OrtApiBase* real;
}

extern "C" OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  real = base;
  static const OrtApiBase older = {[](std::uint32_t version) { return real->GetApi(version); },
                                   [] { return "1.17.3"; }};
  void* library = dlopen(LIBRARY, RTLD_NOW);
  return reinterpret_cast<decltype(&RegisterCustomOps)>(dlsym(library, "RegisterCustomOps"))(options, &older);
}
"""
# The first report to the library is valid for all sessions of a process.
TESTED = """
import sys
import onnxruntime as ort
import pytest

ort.SessionOptions().register_custom_ops_library(sys.argv[1])
sys.exit(pytest.main(sys.argv[2:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs dlopen")
@pytest.mark.skipif(not has_library() or shutil.which("c++") is None, reason="needs the native library, a C++ compiler")
def test_kernels_run_with_the_oldest_api_version(tmp_path: Path) -> None:
    (tmp_path / "older.cc").write_text(OLDER)
    library = tmp_path / "older.so"
    compiled = ["c++", "-std=c++17", "-shared", "-fPIC", f"-I{NATIVE}", f'-DLIBRARY="{library_path()}"']
    subprocess.run([*compiled, tmp_path / "older.cc", "-o", library, "-ldl"], check=True)
    tests = ["-q", "-p", "no:cacheprovider", "-k", "embedding_bags or mean or 16_bit", KERNELS]
    done = subprocess.run([sys.executable, "-c", TESTED, library, *tests], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
