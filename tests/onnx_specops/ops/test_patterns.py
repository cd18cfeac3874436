"""PCRE2's regular expressions in the library and through the package ``regex``: invalid UTF-8, and properties."""

from __future__ import annotations

import numpy as np
import pytest

from tests.native import needs_pcre2
from tests.onnx_specops.ops.one_node import run

pytest.importorskip("regex")

# The pattern, the text, and the text after replacing matches by "x", as PCRE2 does with MATCH_INVALID_UTF.
REPLACED = [
    (r"a$", b"a\xffa", b"a\xffx"),  # the subject ends with its last byte, not where a run of valid characters ends
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

# Properties with another meaning in ``regex``, and near misses.
PROPERTIES = [
    (r"\p{L&}", "aªB日", "xªx日"),
    (r"[\p{L&}ª]", "aªB日", "xxx日"),
    (r"\P{L&}", "aªB日", "axBx"),
    (r"\p{L}", "aªB日", "xxxx"),
    (r"\p{Common}", "a·", "ax"),
    (r"\p{Inherited}", "e\u0301", "ex"),
    (r"\p{Script:Common}", "a·", "ax"),
]


@pytest.mark.parametrize("form", ["numpy", pytest.param("native", marks=needs_pcre2)])
@pytest.mark.parametrize(("pattern", "text", "expected"), REPLACED)
def test_anchors_at_invalid_utf8(pattern: str, text: bytes, expected: bytes, form: str) -> None:
    inputs = {"begins": np.int32([0]), "ends": np.int32([len(text)]), "symbols": np.frombuffer(text, np.uint8)}
    *_, symbols = run(form, "RegexNormalization", inputs, {"pattern": pattern, "replacement": "x"})
    assert np.asarray(symbols).tobytes() == expected


@pytest.mark.parametrize("form", ["numpy", pytest.param("native", marks=needs_pcre2)])
@pytest.mark.parametrize(("pattern", "text", "expected"), PROPERTIES)
def test_properties(pattern: str, text: str, expected: str, form: str) -> None:
    symbols = np.frombuffer(text.encode(), np.uint8)
    inputs = {"begins": np.int32([0]), "ends": np.int32([len(symbols)]), "symbols": symbols}
    *_, symbols = run(form, "RegexNormalization", inputs, {"pattern": pattern, "replacement": "x"})
    assert np.asarray(symbols).tobytes().decode() == expected


@pytest.mark.parametrize("form", ["numpy", pytest.param("native", marks=needs_pcre2)])
@pytest.mark.parametrize("replacement", ["$", "a$", "$$$", "$x"])
def test_a_dollar_without_a_group(replacement: str, form: str) -> None:
    inputs = {"begins": np.int32([0]), "ends": np.int32([1]), "symbols": np.frombuffer(b"a", np.uint8)}
    with pytest.raises(Exception, match="refers to no group"):
        run(form, "RegexNormalization", inputs, {"pattern": "a", "replacement": replacement})
