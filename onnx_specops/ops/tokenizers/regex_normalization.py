"""RegexNormalization: replaces the matches of a regular expression in strings."""

from __future__ import annotations

import re
from typing import Annotated

from onnx_specops.domain import Limits, operator
from onnx_specops.ops.tokenizers._patterns import Pattern, PatternError, compiled
from onnx_specops.ops.tokenizers._strings import NO_BODY, STRINGS, pack, skips_of, unpack

_REFERENCE = re.compile(rb"\$(?:(\$)|([0-9]{1,3})|\{([0-9]{1,3})\})")


@operator(inputs={**STRINGS, "skips": "tensor(bool)"}, outputs=STRINGS, no_body=NO_BODY)
def RegexNormalization(
    begins,
    ends,
    symbols,
    skips=None,
    *,
    pattern: str,
    replacement: str = "",
    global_replace: Annotated[int, Limits(0, 1)] = 1,
):
    """Replaces the matches of a regular expression in strings.

    Inputs:
        begins, ends, symbols: strings, of any shape.
        skips: boolean ``[n]``, the strings that are copied unchanged. If omitted, none.

    Attributes:
        pattern: a regular expression of PCRE2, compiled with UTF and UCP.
        replacement: the replacement of a match. ``$1`` or ``${1}`` is the text of the first group, ``$$`` a dollar.
        global_replace: whether all matches are replaced. If not, only the first is.

    Outputs: strings, of the shape of ``begins``. A string is copied unchanged if the replacement names a group that did
    not participate in a match. It is also copied unchanged if the result would be longer than ``4 * (len(string) +
    (group + 1) * len(replacement))`` bytes, where ``group`` is the number of the last group in the first match. Bytes
    that are not valid UTF-8 match nothing.

    Source: openvino_tokenizers, RegexNormalization.
    """
    name = "RegexNormalization"
    texts = unpack(name, begins, ends, symbols)
    search = _compiled(name, pattern)
    skipped = skips_of(name, skips, len(texts))
    parts = _parts(name, replacement, search)
    replaced = [
        text if skip else _substitute(search, text, parts, len(replacement.encode()), bool(global_replace))
        for text, skip in zip(texts, skipped, strict=True)
    ]
    return pack(name, replaced, begins.shape)


@RegexNormalization.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


def _compiled(name: str, pattern: str) -> Pattern:
    try:
        return compiled(pattern)
    except PatternError as error:
        raise PatternError(f"{name}: {error}") from None


def _parts(name: str, replacement: str, pattern: Pattern) -> list[bytes | int]:
    """Split the replacement into literal bytes and group numbers."""
    text, at = replacement.encode(), 0
    parts: list[bytes | int] = []
    literals = []
    for reference in _REFERENCE.finditer(text):
        literals.append(text[at : reference.start()])
        group = reference[2] or reference[3]
        parts += [literals[-1], b"$" if group is None else int(group)]
        at = reference.end()
    literals.append(text[at:])
    parts.append(literals[-1])
    if any(b"$" in part for part in literals) or any(isinstance(p, int) and p > pattern.groups for p in parts):
        raise PatternError(f"{name}: replacement {replacement!r} refers to no group of the pattern")
    return [part for part in parts if part != b""]


def _substitute(pattern: Pattern, text: bytes, parts: list[bytes | int], length: int, everywhere: bool) -> bytes:
    subject = pattern.subject(text)
    out: list[bytes] = []
    at, most = 0, None
    match = subject.search(0)
    while match is not None:
        first, last = match[0]
        if most is None:
            taken = 1 + max((group for group in range(1, len(match)) if match[group][0] >= 0), default=0)
            most = 4 * (len(text) + taken * length)
        out.append(text[at:first])
        for part in parts:
            if isinstance(part, bytes):
                out.append(part)
            elif match[part][0] < 0:
                return text
            else:
                out.append(text[slice(*match[part])])
        at = last
        # After an empty match, search for a non-empty match at the same position, then from the next character on.
        match = subject.search_after(match[0]) if everywhere else None
    if most is None:
        return text
    out.append(text[at:])
    result = b"".join(out)
    return result if len(result) < most else text
