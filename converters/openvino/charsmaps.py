"""Unicode normalization and case folding in the character maps of SentencePiece, which openvino_tokenizers uses.

Such a map replaces the longest key at each position of a text. This differs from Unicode normalization, because it does not
reorder marks, but it agrees with OpenVINO. The maps are those of Unicode 14.
"""

from __future__ import annotations

import functools
import itertools
import struct
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np

FORMS = ("identity", "nfc", "nfd", "nfkc", "nfkd")

# Characters that got decompositions or cases in Unicode 15 or later. Python's tables may be newer than version 14.
_NEWER = (
    (0x1C89, 0x1C8A), (0xA7CB, 0xA7CF), (0xA7D2, 0xA7D2), (0xA7D4, 0xA7D4), (0xA7DA, 0xA7DF), (0xA7F1, 0xA7F1),
    (0x105C0, 0x105FF), (0x10D40, 0x10D8F), (0x11380, 0x113FF), (0x16100, 0x1613F), (0x16D40, 0x16D7F),
    (0x16EA0, 0x16EDF), (0x1CC00, 0x1CCFF), (0x1E030, 0x1E06D),
)  # fmt: skip
# The last character with a decomposition or a case.
_LAST = 0x2FA1D
# Simple case foldings of later versions.
_LATER_FOLDED = (0x1FD3, 0x1FE3, 0xFB05)


@functools.cache
def charsmap(form: str, case_fold: bool) -> bytes:
    """Return the character map in SentencePiece's format. Raise ``ValueError`` if OpenVINO has none.

    Args:
        form: one of `FORMS`, in any case.
        case_fold: whether to fold case, too.
    """
    form = form.lower()
    if form not in FORMS or (form == "identity" and not case_fold):
        raise ValueError(f"no character map has the name {form!r}" + (" with case folding" if case_fold else ""))
    mapping = {} if form == "identity" else _normalization(form.upper())
    return compile_map(_folding(mapping) if case_fold else mapping)


@functools.cache
def _characters() -> tuple[str, ...]:
    """Return the characters of Unicode 14 with decompositions or cases."""
    newer = {code for low, high in _NEWER for code in range(low, high + 1)}
    characters = (chr(code) for code in range(1, _LAST + 1) if not 0xD800 <= code < 0xE000 and code not in newer)
    return tuple(
        c
        for c in characters
        if unicodedata.decomposition(c) or "\uac00" <= c <= "\ud7a3" or c.casefold() != c or c.lower() != c
    )


def _normalization(form: str) -> dict[str, str]:
    singles = {c: changed for c in _characters() if (changed := unicodedata.normalize(form, c)) != c}  # type: ignore[arg-type]
    if form in ("NFD", "NFKD"):
        return singles
    compose: Callable[[str], str] = functools.partial(unicodedata.normalize, form)  # type: ignore[arg-type]
    decompose: Callable[[str], str] = functools.partial(unicodedata.normalize, form.replace("C", "D"))  # type: ignore[arg-type]
    mapping, origins, sequences = dict(singles), defaultdict(list), set()
    for character in _characters():
        parts = decompose(character)
        if len(parts) == 1:
            if parts != character:
                origins[parts].append(character)
        else:
            sequences.add(parts)
    for parts in sorted(sequences):
        if (composed := compose(parts)) != parts:
            spellings = map("".join, itertools.product(*([*origins.get(part, ()), part] for part in parts)))
            mapping |= {spelling: composed for spelling in spellings if spelling != composed}
    return _without_redundant(mapping)


def _folding(mapping: Mapping[str, str]) -> dict[str, str]:
    folded = {key: "".join(map(_fold, value)) for key, value in mapping.items()}
    for character in _characters():
        if character not in folded and (small := _fold(character)) != character:
            folded[character] = small
    return _without_redundant(folded)


@functools.cache
def _fold(character: str) -> str:
    """Apply simple case folding, which maps one character to one."""
    if ord(character) in _LATER_FOLDED:
        return character
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded
    return character


def _without_redundant(mapping: dict[str, str]) -> dict[str, str]:
    """Remove the keys that shorter keys already cover, because they would match more of a text."""
    kept = {key: value for key, value in mapping.items() if len(key) == 1}
    by_length = defaultdict(list)
    for key in mapping:
        by_length[len(key)].append(key)
    for length in sorted(by_length)[1:] if 1 in by_length else sorted(by_length):
        added = {key: mapping[key] for key in by_length[length] if _replaced(kept, key, length - 1) != mapping[key]}
        kept |= added
    return kept


def _replaced(mapping: Mapping[str, str], text: str, longest: int) -> str:
    out, at = "", 0
    while at < len(text):
        for length in range(min(longest, len(text) - at), 0, -1):
            if (value := mapping.get(text[at : at + length])) is not None:
                out += value
                at += length
                break
        else:
            out += text[at]
            at += 1
    return out


# -- SentencePiece's form: a double array (Darts) over the keys' bytes, and the values it points to -----------------------


def compile_map(mapping: Mapping[str, str]) -> bytes:
    """Compile a character map to SentencePiece's format."""
    values, places = bytearray(), {}
    for value in sorted(set(mapping.values())):
        places[value] = len(values)
        values += value.encode() + b"\0"
    units = _double_array(sorted((key.encode(), places[value]) for key, value in mapping.items()))
    return struct.pack("<I", units.nbytes) + units.tobytes() + bytes(values)


# The flag of a unit with a value, and of an unused unit. No label equals it.
_LEAF = 1 << 31
# The distance to search back for free units.
_WINDOW = 1024


def _double_array(entries: list[tuple[bytes, int]]) -> np.ndarray:
    """Return the units of a double array for the values of sorted keys.

    A unit's children are at its position xor its offset xor their label. The child with label 0 has a value.
    """
    size = 1 << 10
    units, used = [_LEAF] * size, bytearray(size)
    used[0] = 1
    bases: set[int] = set()
    frontier = 1
    # Ranges of keys with a common prefix, its length, and the position of its unit.
    pending = [(0, len(entries), 0, 0)]
    units[0] = 0
    while pending:
        first, last, depth, place = pending.pop()
        children: list[tuple[int, int, int]] = []
        for i in range(first, last):
            key = entries[i][0]
            label = key[depth] if depth < len(key) else 0
            if children and children[-1][0] == label:
                children[-1] = (label, children[-1][1], i + 1)
            else:
                children.append((label, i, i + 1))
        labels = [label for label, _, _ in children]
        candidate = max(1, frontier - _WINDOW)
        while True:
            if (candidate := used.find(0, candidate)) < 0 or candidate + 256 >= size:
                candidate = size if candidate < 0 else candidate
                units += [_LEAF] * size
                used += bytearray(size)
                size *= 2
            base = candidate ^ labels[0]
            if base not in bases and not any(used[base ^ label] for label in labels):
                break
            candidate += 1
        bases.add(base)
        has_leaf = len(entries[first][0]) == depth
        units[place] |= (place ^ base) << 10 | has_leaf << 8
        for label, begin, end in children:
            child = base ^ label
            used[child] = 1
            frontier = max(frontier, child)
            if label == 0 and has_leaf:
                units[child] = _LEAF | entries[begin][1]
            else:
                units[child] = label
                pending.append((begin, end, depth + 1, child))
    return np.array(units[: (frontier | 255) + 1], np.uint32)
