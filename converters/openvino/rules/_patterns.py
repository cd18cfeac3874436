"""Regular expressions of PCRE2, and the replacements of their matches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from converters.errors import Unsupported

_WORD = r"\p{L}\p{N}\p{Mn}\p{Pc}"
_NO_WORD = r"\p{Mc}\p{Me}\p{Pd}\p{Pe}\p{Pf}\p{Pi}\p{Po}\p{Ps}\p{S}\p{Z}\p{C}"
_OUTSIDE = {
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\b": f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))",
    r"\B": f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))",
}
_IN_CLASS = {
    r"\w": _WORD,
    r"\W": _NO_WORD,
    "[:word:]": _WORD,
    "[:^word:]": _NO_WORD,
    "[:xdigit:]": r"0-9A-Fa-f\x{FF10}-\x{FF19}\x{FF21}-\x{FF26}\x{FF41}-\x{FF46}",
    "[:^xdigit:]": r"\x{0}-/:-@G-`g-\x{FF0F}\x{FF1A}-\x{FF20}\x{FF27}-\x{FF40}\x{FF47}-\x{10FFFF}",
}

_EVERYWHERE = r"\\Q.*?(?:\\E|\Z)|\\(?P<sign>[pP])\{(?P<property>[^}]*)\}|\\."
_TOKEN = re.compile(
    rf"""{_EVERYWHERE} | (?P<opening>\[\^?\]?)
    | \(\?\#[^)]*\)? | \(\?(?P<flags>\^?[a-zA-Z]*(?:-[a-zA-Z]*)?)(?P<last>[:)])
    | (?P<times>\{{[ \t]*(?P<least>\d*)[ \t]*(?:,[ \t]*(?P<most>\d*)[ \t]*)?\}})
    | [^\\\[(){{]+ | .""",
    re.DOTALL | re.VERBOSE,
)
_TOKEN_IN_CLASS = re.compile(rf"{_EVERYWHERE} | \[:\^?[a-z]+:\] | (?P<closing>\]) | [^\\\[\]]+ | .", re.DOTALL | re.VERBOSE)


def _tokens(pattern: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Iterate over the tokens of a pattern: each one, and whether it is in a class of characters."""
    at, in_class = 0, False
    while at < len(pattern):
        token = (_TOKEN_IN_CLASS if in_class else _TOKEN).match(pattern, at)
        assert token is not None
        yield token, in_class
        in_class = token["closing"] is None if in_class else token["opening"] is not None
        at = token.end()


def portable(pattern: str) -> str:
    """Adapt a pattern to older releases of PCRE2.

    OpenVINO's release (10.43 or later) differs in words, in hexadecimal digits, in {,2}, and in the letters of one case
    if the case is ignored.
    """
    out = []
    ignores_case = False
    outer: list[bool] = []  # of the groups around
    for token, in_class in _tokens(pattern):
        text = token[0]
        if token["property"] is not None:
            out.append(_property(token, in_class, ignores_case))
            continue
        if in_class:
            out.append(_IN_CLASS.get(text, text))
            continue
        if text == "(" or token["last"] == ":":
            outer.append(ignores_case)
        elif text == ")":
            ignores_case = outer.pop() if outer else False
        if token["flags"] is not None:
            ignores_case = _ignores_case(token["flags"], ignores_case)
        if token["times"] is not None and token["most"] is not None and (token["least"] or token["most"]):
            text = f"{{{token['least'] or 0},{token['most']}}}"
        out.append(_OUTSIDE.get(text, text))
    return "".join(out)


def _ignores_case(flags: str, before: bool) -> bool:
    on, _, off = flags.partition("-")
    return "i" not in off and ("i" in on or (before and not flags.startswith("^")))


def _property(token: re.Match[str], in_class: bool, ignores_case: bool) -> str:
    name = re.sub(r"[\s_-]", "", token["property"]).lower()
    negated = (token["sign"] == "P") != name.startswith("^")
    name = name.removeprefix("^")
    if ignores_case and name in ("lu", "ll", "lt"):
        return rf"\{'P' if negated else 'p'}{{L&}}"
    if name == "xwd":
        if in_class:
            return _NO_WORD if negated else _WORD
        return f"[{'^' if negated else ''}{_WORD}]"
    return token[0]


# -- groups and replacements ----------------------------------------------------------------------------------------------


class Groups(NamedTuple):
    """The groups of a pattern: how many there are, and the numbers of those with names."""

    number: int
    names: Mapping[str, int]


_KIND = re.compile(r"(?:<?[=!]|>)|(?:P?<|')([A-Za-z_]\w*)[>']")


def groups_of(pattern: str) -> Groups | None:
    """Return the groups of a pattern; ``None`` if it has branch resets, verbs, conditions, or flags that change groups."""
    count, names = 0, dict[str, int]()
    for token, in_class in _tokens(pattern):
        if in_class or not token[0].startswith("("):
            continue
        if token["flags"] is not None:
            if not set(token["flags"]) <= set("ims^-"):
                return None
        elif token[0] == "(":
            at = token.end()
            if pattern.startswith("*", at):
                return None
            if not pattern.startswith("?", at):
                count += 1
            elif (kind := _KIND.match(pattern, at + 1)) is None:
                return None
            elif kind[1] is not None:
                count += 1
                names.setdefault(kind[1], count)
    return Groups(count, names)


_NAME = r"[A-Za-z_]\w*"
_REFERENCE = re.compile(
    rf"""\$(?: (?P<literal>\$) | (?P<whole>&) | (?P<other>[`'+_*]|\{{\*)
    | (?P<digits>[0-9]+) | \{{(?P<braced>[0-9]+)\}} | (?P<name>{_NAME}) | \{{(?P<inner>{_NAME})\}} | <(?P<angled>{_NAME})>
    | (?P<wrong>) )""",
    re.VERBOSE,
)


def replacement_of(text: str, pattern: str) -> str | None:
    """Return a replacement with references by number, as kernels support them.

    Returns ``None`` if the text is not a valid replacement, or refers to a group that the pattern does not have. PCRE2
    reports an error then, and openvino_tokenizers copies the strings unchanged.
    """
    groups = groups_of(pattern)
    out, at = "", 0
    for reference in _REFERENCE.finditer(text):
        out += text[at : reference.start()]
        at = reference.end()
        if reference["wrong"] is not None:
            return None
        if reference["literal"]:
            out += "$$"
            continue
        if reference["other"]:
            raise Unsupported(f"its replacement {text!r} has {reference[0]!r}", "refer to groups by their numbers")
        number = _number(reference, groups)
        if number is None or (groups is not None and number > groups.number):
            return None
        digits = reference["digits"] or reference["braced"]
        # The length of the replacement limits that of the result.
        out += reference[0] if digits and len(digits) <= 3 else f"${{{number}}}"
    return out + text[at:]


def _number(reference: re.Match[str], groups: Groups | None) -> int | None:
    if reference["whole"]:
        return 0
    if digits := reference["digits"] or reference["braced"]:
        return int(digits.lstrip("0")[:9] or 0)
    if groups is None:
        raise Unsupported(f"its replacement refers to {reference[0]!r}", "refer to groups by their numbers")
    return groups.names.get(reference["name"] or reference["inner"] or reference["angled"])
