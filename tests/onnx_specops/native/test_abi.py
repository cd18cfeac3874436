"""ort_abi.h, written by hand, against ONNX Runtime: its C header where that is installed, and the library itself."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import onnxruntime as ort
import pytest

SOURCES = Path(__file__).parents[3] / "onnx_specops" / "native"
HEADER = (SOURCES / "ort_abi.h").read_text()
SLOTS = {name: int(number) for number, name in re.findall(r"\bSLOT\((\d+),[^,]+, (\w+),", HEADER)}

PROGRAM = r"""
#include <onnxruntime_c_api.h>
#include <array>
#include "ort_abi.h"
namespace abi = specops::abi;

// What a compiled call depends on: how many parameters there are, their sizes, and the result's.
template <class R> constexpr std::size_t size_of() {
  if constexpr (std::is_void_v<R>) return 0; else return sizeof(R);
}
template <class R, class... P> constexpr auto form(R (SPECOPS_ORT_CALL*)(P...)) {
  return std::array<std::size_t, sizeof...(P) + 1>{size_of<R>(), sizeof(P)...};
}
template <class R, class... P> constexpr auto form(R (SPECOPS_ORT_CALL*)(P...) noexcept) {
  return std::array<std::size_t, sizeof...(P) + 1>{size_of<R>(), sizeof(P)...};
}
template <class A, class B> constexpr bool alike() {
  constexpr auto a = form(A{}), b = form(B{});
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) if (a[i] != b[i]) return false;
  return true;
}

#define CHECK_SLOT(number, result, name, parameters) \
  static_assert(offsetof(::OrtApi, name) == number * sizeof(void*), #name ": slot"); \
  static_assert(alike<decltype(::OrtApi::name), decltype(abi::Api::name)>(), #name ": parameters");
SPECOPS_ORT_FUNCTIONS(CHECK_SLOT)

#define CHECK_BASE(name) \
  static_assert(offsetof(::OrtApiBase, name) == offsetof(abi::OrtApiBase, name), #name);
CHECK_BASE(GetApi) CHECK_BASE(GetVersionString)

#define CHECK_FIELD(name) \
  static_assert(offsetof(::OrtCustomOp, name) == offsetof(abi::OrtCustomOp, name), #name ": place"); \
  static_assert(alike<decltype(::OrtCustomOp::name), decltype(abi::OrtCustomOp::name)>(), #name ": parameters");
static_assert(offsetof(::OrtCustomOp, version) == offsetof(abi::OrtCustomOp, version), "version");
static_assert(sizeof(::OrtCustomOp::version) == sizeof(abi::OrtCustomOp::version), "version");
%(fields)s

#define CHECK_VALUE(name) static_assert(static_cast<int>(::name) == static_cast<int>(abi::name), #name);
%(values)s

int main() {}
"""


def fields() -> list[str]:
    """The callbacks of OrtCustomOp in ort_abi.h, in order."""
    body = re.search(r"struct OrtCustomOp \{(.*?)\n\};", HEADER, re.DOTALL)
    assert body is not None
    return re.findall(r"SPECOPS_ORT_CALL\* (\w+)\)", body[1])


def enumerators() -> list[str]:
    """The names of all enumerators in ort_abi.h."""
    bodies = re.findall(r"enum \w+ : int \{(.*?)\}", HEADER, re.DOTALL)
    return [name for body in bodies for name in re.findall(r"(\w+) = \d+", body)]


def installed_header() -> Path | None:
    """The folder of onnxruntime_c_api.h, from ONNXRUNTIME_INCLUDE (it, or a folder above) or the system's folders."""
    given = os.environ.get("ONNXRUNTIME_INCLUDE")
    roots = [Path(given)] if given else [Path("/usr/include"), Path("/usr/local/include")]
    for root in roots:
        for folder in (
            root,
            root / "onnxruntime",
            root / "onnxruntime" / "core" / "session",
            root / "core" / "session",
        ):
            if (folder / "onnxruntime_c_api.h").is_file():
                return folder
    return None


def test_what_is_compared() -> None:
    assert len(SLOTS) == HEADER.count("\n  SLOT(") >= 30
    assert len(fields()) == 21
    assert fields()[-1] == "GetEndVersion"
    assert {"ORT_INVALID_ARGUMENT", "ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16"} <= set(enumerators())


@pytest.mark.skipif(
    installed_header() is None,
    reason="no onnxruntime_c_api.h (Debian: libonnxruntime-dev; ONNXRUNTIME_INCLUDE)",
)
@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_slots_fields_and_values_are_those_of_the_real_header(tmp_path: Path) -> None:
    source = tmp_path / "check.cc"
    source.write_text(
        PROGRAM
        % {
            "fields": "\n".join(f"CHECK_FIELD({name})" for name in fields()),
            "values": "\n".join(f"CHECK_VALUE({name})" for name in enumerators()),
        }
    )
    command = ["c++", "-std=c++17", "-fsyntax-only", f"-I{installed_header()}", f"-I{SOURCES}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Table:
    """ONNX Runtime's table of functions, as ort_abi.h numbers it."""

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


def test_the_base_is_where_the_header_says() -> None:
    assert Table().base.GetVersionString().decode() == ort.__version__


def test_a_status_keeps_its_message() -> None:
    table = Table()
    status = ctypes.c_void_p(table.call("CreateStatus", ctypes.c_int(2), ctypes.c_char_p(b"indices[3] = 17")))
    assert table.call("GetErrorMessage", status, result=ctypes.c_char_p) == b"indices[3] = 17"
    table.call("ReleaseStatus", status, result=None)


def test_a_type_and_shape_keeps_what_it_is_given() -> None:
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


def test_a_domain_can_be_made() -> None:
    domain = ctypes.c_void_p()
    Table().checked("CreateCustomOpDomain", ctypes.c_char_p(b"test"), ctypes.pointer(domain))
    assert domain.value
