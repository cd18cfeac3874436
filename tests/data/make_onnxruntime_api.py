"""Write onnxruntime_api.json: the layout of ONNX Runtime's C header for the declarations in native/ort_abi.h.

Run it with the folder of the real header: ``python -m tests.data.make_onnxruntime_api /usr/include/onnxruntime``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).with_name("onnxruntime_api.json")
NATIVE = Path(__file__).parents[2] / "onnx_specops" / "native"
HEADER = (NATIVE / "ort_abi.h").read_text(encoding="utf-8")

SLOTS = {name: int(number) for number, name in re.findall(r"\bSLOT\((\d+),[^,]+, (\w+),", HEADER)}
REAL = "#include <onnxruntime_c_api.h>\n#define API ::OrtApi\n#define SCOPE"
OURS = '#include "ort_abi.h"\n#define API specops::abi::Api\n#define SCOPE specops::abi'

PROGRAM = r"""
%(declarations)s
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <type_traits>

// What a compiled call depends on: the sizes of the result and of the parameters.
template <class R> constexpr std::size_t size_of() {
  if constexpr (std::is_void_v<R>) return 0; else return sizeof(R);
}
template <class R, class... P> void sizes() {
  std::printf("%%zu", size_of<R>());
  for (std::size_t size : {sizeof(P)...}) std::printf(", %%zu", size);
}
template <class R, class... P> void form(R (*)(P...)) { sizes<R, P...>(); }
template <class R, class... P> void form(R (*)(P...) noexcept) { sizes<R, P...>(); }

template <class F> void callback(const char* name, std::size_t place, F function) {
  std::printf("%%s\"%%s\": [%%zu, [", place ? ",\n" : "\n", name, place / sizeof(void*));
  form(function);
  std::printf("]]");
}

void value(const char* name, int number) {
  static const char* separator = "\n";
  std::printf("%%s\"%%s\": %%d", separator, name, number);
  separator = ",\n";
}

#define FUNCTION(name) callback(#name, offsetof(API, name), decltype(API::name){});
#define FIELD(name) callback(#name, offsetof(SCOPE::OrtCustomOp, name), decltype(SCOPE::OrtCustomOp::name){});
#define VALUE(name) value(#name, static_cast<int>(SCOPE::name));

int main() {
  std::printf("{\"functions\": {");
  %(functions)s
  std::printf("},\n\"custom_op\": {\"version\": [0, [%%zu]]", sizeof(SCOPE::OrtCustomOp::version));
  %(fields)s
  std::printf("},\n\"values\": {");
  %(values)s
  std::printf("}}\n");
}
"""


def custom_op_fields() -> list[str]:
    """Return the callbacks of OrtCustomOp in ort_abi.h, in order."""
    body = re.search(r"struct OrtCustomOp \{(.*?)\n\};", HEADER, re.DOTALL)
    assert body is not None
    return re.findall(r"SPECOPS_ORT_CALL\* (\w+)\)", body[1])


def enumerators() -> list[str]:
    """Return the names of all enumerators in ort_abi.h."""
    bodies = re.findall(r"enum \w+ : int \{(.*?)\}", HEADER, re.DOTALL)
    return [name for body in bodies for name in re.findall(r"(\w+) = \d+", body)]


def layout(declarations: str, include: Path) -> dict[str, Any]:
    """Return the layout of a header: positions and sizes of functions and callbacks, and the values of enumerators.

    Args:
        declarations: `REAL` or `OURS`.
        include: the header's folder.
    """
    parts = {"declarations": declarations, "functions": "", "fields": "", "values": ""}
    for part, macro, names in (
        ("functions", "FUNCTION", list(SLOTS)),
        ("fields", "FIELD", custom_op_fields()),
        ("values", "VALUE", enumerators()),
    ):
        parts[part] = "\n  ".join(f"{macro}({name})" for name in names)
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "layout.cc", Path(folder) / "layout"
        source.write_text(PROGRAM % parts, encoding="utf-8")
        subprocess.run(["c++", "-std=c++17", f"-I{include}", str(source), "-o", str(program)], check=True)
        return json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    found = layout(REAL, Path(sys.argv[1]))
    lines = [
        f"{json.dumps(part)}: {{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entries.items()) + "\n}"
        for part, entries in found.items()
    ]
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
