"""Regular expressions in the form of older PCRE2 releases, their groups, and the replacements of their matches."""

from __future__ import annotations

import pytest

from converters.errors import Unsupported
from converters.openvino.rules._patterns import groups_of, portable, replacement_of

WORD = r"\p{L}\p{N}\p{Mn}\p{Pc}"
NO_WORD = r"\p{Mc}\p{Me}\p{Pd}\p{Pe}\p{Pf}\p{Pi}\p{Po}\p{Ps}\p{S}\p{Z}\p{C}"


@pytest.mark.parametrize(
    ("pattern", "adapted"),
    [
        (r"\w\W", f"[{WORD}][^{WORD}]"),
        (r"[\w-][^\W\d]", f"[{WORD}-][^{NO_WORD}\\d]"),
        (r"\\w\Q\w\E", r"\\w\Q\w\E"),
        (r"[]\w][^]\w]", f"[]{WORD}][^]{WORD}]"),
        (r"[\]\w]", f"[\\]{WORD}]"),
        (r"[[:word:]][[:^word:]x]", f"[{WORD}][{NO_WORD}x]"),
        (r"[[:alpha:]]", r"[[:alpha:]]"),
        (r"\p{Xwd}\P{Xwd}\p{^Xwd}[\p{Xwd}\P{X_wd}]", f"[{WORD}][^{WORD}][^{WORD}][{WORD}{NO_WORD}]"),
        (r"\p{Xan}", r"\p{Xan}"),
        ("a{,2}b{ 1 , 3 }c{2}d{2,}", "a{0,2}b{1,3}c{2}d{2,}"),
        (r"a{,}b{}[{,2}]\{,2}\x{41}", r"a{,}b{}[{,2}]\{,2}\x{41}"),
        (r"\p{Lu}(?i)\p{Lu}\P{Ll}\p{^Lt}\p{L}", r"\p{Lu}(?i)\p{L&}\P{L&}\P{L&}\p{L}"),
        (r"(?i:[\p{Lu}])[\p{Lu}]", r"(?i:[\p{L&}])[\p{Lu}]"),
        (r"(?i)(?-i:\p{Lu})\p{Lu}(?^)\p{Lu}", r"(?i)(?-i:\p{Lu})\p{L&}(?^)\p{Lu}"),
        (r"((?i)a|\p{Lu})\p{Lu}", r"((?i)a|\p{L&})\p{Lu}"),
        (r"(?m)\p{Lu}[(?i)]\(?i\)\p{Lu}", r"(?m)\p{Lu}[(?i)]\(?i\)\p{Lu}"),
    ],
)
def test_older_releases(pattern: str, adapted: str) -> None:
    assert portable(pattern) == adapted


def test_hexadecimal_digits_are_not_the_others() -> None:
    digits, others = portable("[[:xdigit:]]"), portable("[[:^xdigit:]]")
    assert digits == r"[0-9A-Fa-f\x{FF10}-\x{FF19}\x{FF21}-\x{FF26}\x{FF41}-\x{FF46}]"
    assert others == r"[\x{0}-/:-@G-`g-\x{FF0F}\x{FF1A}-\x{FF20}\x{FF27}-\x{FF40}\x{FF47}-\x{10FFFF}]"


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [
        ("ab", (0, {})),
        ("(a)(b(c))", (3, {})),
        (r"\((a)\)", (1, {})),
        ("[(](a)[^()]", (1, {})),
        ("(?:a)(?=b)(?!c)(?<=d)(?<!e)(?>f)(?i)(?i:g)(?i-m:h)(?#(i))(j)", (1, {})),
        (r"(?<name>a)(b)(?P<other>c)(?'last'd)", (4, {"name": 1, "other": 3, "last": 4})),
        (r"\Q(\E(a)", (1, {})),
        ("(?|(a)|(b))", None),
        ("(?x)(a) # (b)", None),
        ("(?n)(a)", None),
        ("(*UTF)(a)", None),
        ("(a)(?(1)b)", None),
    ],
)
def test_groups(pattern: str, groups: tuple[int, dict[str, int]] | None) -> None:
    assert groups_of(pattern) == groups


@pytest.mark.parametrize(
    ("replacement", "pattern", "by_number"),
    [
        ("<$1>", "(a)", "<$1>"),
        ("${1}$$", "(a)", "${1}$$"),
        ("$2", "(a)", None),
        ("$12", "(a)", None),
        ("$0001", "(a)", "${1}"),
        ("${00000000002}", "(a)", None),
        ("$&", "a", "${0}"),
        ("$", "a", None),
        ("a$ ", "a", None),
        ("${1", "(a)", None),
        ("${}", "(a)", None),
        ("$1}", "(a)", "$1}"),
        ("$n${n}$<n>", "(b)(?<n>a)", "${2}${2}${2}"),
        ("$nx", "(?<n>a)", None),
        ("$<1>", "(?<n>a)", None),
        ("$1", "(?|(a)|(b))", "$1"),
    ],
)
def test_replacements(replacement: str, pattern: str, by_number: str | None) -> None:
    assert replacement_of(replacement, pattern) == by_number


@pytest.mark.parametrize(
    ("replacement", "pattern"), [("$`", "a"), ("$_", "a"), ("${*MARK}", "a"), ("$n", "(?|(?<n>a)|(b))")]
)
def test_replacements_without_a_number(replacement: str, pattern: str) -> None:
    with pytest.raises(Unsupported):
        replacement_of(replacement, pattern)
