"""PCRE2's regular expressions, in the library itself and as the package ``regex`` has them, at bytes that are no UTF-8."""

from __future__ import annotations

import numpy as np
import pytest

from tests.native import needs_pcre2
from tests.onnx_specops.ops.one_node import run

pytest.importorskip("regex")

# The pattern, the text, and what becomes of it where a match becomes "x": as PCRE2 with MATCH_INVALID_UTF has it.
REPLACED = [
    (r"a$", b"a\xffa", b"a\xffx"),  # the text ends where its bytes end, not where its characters do
    (r"a$", b"a\xff", b"a\xff"),
    (r"a\z", b"a\xffa", b"a\xffx"),
    (r"a\Z", b"a\xffa\n", b"a\xffx\n"),
    (r"a\Z", b"a\n\xff", b"a\n\xff"),
    (r"a$", b"a\n\xff", b"a\n\xff"),
    (r"(?m)a$", b"a\n\xffa\n", b"x\n\xffx\n"),
    (r"(?m)a$", b"a\xff\na", b"a\xff\nx"),
    (r"a[$]?", b"a$\xffa", b"x\xffx"),
    (r"a\$", b"a$\xff", b"x\xff"),
    (r"^a", b"a\xffa", b"x\xffa"),
    (r"a\b", b"a\xffab", b"x\xffab"),
    (r"a(?!b)", b"a\xffb", b"x\xffb"),
]


@pytest.mark.parametrize("form", ["numpy", pytest.param("native", marks=needs_pcre2)])
@pytest.mark.parametrize(("pattern", "text", "expected"), REPLACED)
def test_ends_at_bytes_that_are_no_utf8(pattern: str, text: bytes, expected: bytes, form: str) -> None:
    inputs = {"begins": np.int32([0]), "ends": np.int32([len(text)]), "symbols": np.frombuffer(text, np.uint8)}
    *_, symbols = run(form, "RegexNormalization", inputs, {"pattern": pattern, "replacement": "x"})
    assert np.asarray(symbols).tobytes() == expected
