"""Write pcre2_interface.json: the declarations of PCRE2's header that native/pcre2_abi.h has by hand.

Run it with the real header: ``python -m tests.data.make_pcre2_interface /usr/include/pcre2.h``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

OUTPUT = Path(__file__).with_name("pcre2_interface.json")
HEADER = (Path(__file__).parents[2] / "onnx_specops" / "native" / "pcre2_abi.h").read_text(encoding="utf-8")

CONSTANTS = dict(re.findall(r"^constexpr [\w:]+ (\w+) = (.+);$", HEADER, re.MULTILINE))
_POINTER = re.compile(r"^  ([^/\n]+?) ?\(\*(\w+)\)\((.*)\);$", re.MULTILINE)
FUNCTIONS = {name: (result, parameters) for result, name, parameters in _POINTER.findall(HEADER)}
# PCRE2's type names -> those of native/pcre2_abi.h.
_TYPES = {
    "PCRE2_SPTR": "const unsigned char*",
    "PCRE2_UCHAR": "unsigned char",
    "PCRE2_SIZE": "std::size_t",
    "uint32_t": "std::uint32_t",
    "pcre2_jit_callback": "JitStack* (*)(void*)",
    "pcre2_code": "Code",
    "pcre2_match_data": "MatchData",
    "pcre2_match_context": "MatchContext",
    "pcre2_jit_stack": "JitStack",
    "pcre2_general_context": "GeneralContext",
    "pcre2_compile_context": "CompileContext",
}


def main(real: Path) -> None:
    text = real.read_text(encoding="utf-8")
    values = {name: re.search(rf"^#define PCRE2_{name}\s+(\S+)", text, re.M) for name in CONSTANTS}
    interface = {
        "constants": {name: found[1].strip("()") for name, found in values.items() if found},
        "functions": {name: _declared(text, name) for name in FUNCTIONS},
    }
    OUTPUT.write_text(json.dumps(interface, indent=1) + "\n", encoding="utf-8")


def _declared(text: str, name: str) -> list[str]:
    found = re.search(rf"PCRE2_EXP_DECL ([^;]*?)\bpcre2_{name}\(([^;]*)\);", text)
    assert found is not None, name
    return [_type(part.replace("PCRE2_CALL_CONVENTION", "").replace("\\", "")) for part in found.groups()]


def _type(text: str) -> str:
    text = re.sub(r"\w+", lambda word: _TYPES.get(word[0], word[0]), text)
    return re.sub(r"\s*\*\s*", "*", " ".join(text.split())).replace("*(*)", "* (*)").strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
