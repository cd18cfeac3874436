"""PCRE2's regular expressions (with UTF and UCP) through the package ``regex``, for the Python kernels.

The syntax is largely the same. Constructs with another meaning or spelling are translated. Subjects and offsets are in
bytes. Invalid UTF-8 matches nothing, and no match spans it (PCRE2's ``MATCH_INVALID_UTF``).
"""

from __future__ import annotations

import bisect
import functools
import re
import sys
from collections.abc import Iterator
from typing import Any

from onnx_specops.runtime.errors import MissingExtraError

SPACES = r"\p{Z}\t-\r\x85\u180e"
WORDS = r"\p{L}\p{N}\p{Mn}\p{Pc}"
"""The word characters of PCRE2 10.43 and later with UCP."""

_HORIZONTAL = r"\t \xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_VERTICAL = r"\n-\r\x85\u2028\u2029"
_CLASSES = {
    "s": SPACES, "S": "^" + SPACES, "w": WORDS, "W": "^" + WORDS, "d": r"\p{Nd}", "D": r"^\p{Nd}",
    "h": _HORIZONTAL, "H": "^" + _HORIZONTAL, "v": _VERTICAL, "V": "^" + _VERTICAL, "N": r"^\n",
}  # fmt: skip
_BOUNDARY = f"(?:(?<=[{WORDS}])(?![{WORDS}])|(?<![{WORDS}])(?=[{WORDS}]))"
_NO_BOUNDARY = f"(?:(?<=[{WORDS}])(?=[{WORDS}])|(?<![{WORDS}])(?![{WORDS}]))"
_ASSERTIONS = {"b": _BOUNDARY, "B": _NO_BOUNDARY, "z": r"\Z", "Z": r"(?=\n?\Z)", "R": rf"(?>\r\n|[{_VERTICAL}])"}

_CODE_POINT = re.compile(r"\\x(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{0,2}))|\\o\{([0-7]+)\}")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|(.))")
_MULTILINE = re.compile(r"\(\?[a-z]*m")
_INLINE_FLAGS = re.compile(r"\(\?[a-zA-Z-]+\)")
_QUANTIFIER = re.compile(r"\{(?:(\d+)(?:,(\d*))?|,(\d+))\}")  # {3}, {3,}, {3,5}, {,5}
_MOST_TIMES = 65535
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_IN_POSIX = {
    "alpha": r"\p{L}", "lower": r"\p{Ll}", "upper": r"\p{Lu}", "digit": r"\p{Nd}", "alnum": r"\p{L}\p{N}", "word": WORDS,
    "space": SPACES, "blank": _HORIZONTAL, "cntrl": r"\p{Cc}", "ascii": r"\x00-\x7f", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
# A script name alone means the script's extensions in PCRE2 since 10.40, and the script itself in `regex`.
_GENERAL = re.compile(r"[CLMNPSZ][a-z]?\Z")
_SPECIAL = {
    "Any": r"\x00-\U0010ffff", "L&": r"\p{Lu}\p{Ll}\p{Lt}", "Xan": r"\p{L}\p{N}", "Xps": SPACES, "Xsp": SPACES, "Xwd": WORDS,
}  # fmt: skip
_SHARED = frozenset(("Common", "Inherited", "Zinh", "Zyyy"))
"""Scripts that PCRE2 also finds in characters with extensions."""

# Matches an escape, a class, a count or a character. The limit is the number of them in an expanded pattern.
_PART = re.compile(r"\\.|\[\^?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)
_LARGEST = 200_000


class PatternError(ValueError):
    """A pattern is invalid, or the Python kernels cannot translate it."""


def translate(pattern: str, *, ends: bool = True) -> str:
    """Translate PCRE2's ``pattern`` to the syntax of ``regex``; raise `PatternError` for constructs without a counterpart.

    ``ends``: whether the searched text ends where the subject ends; ``$`` does not match if more bytes follow.
    """
    out: list[str] = []
    no_end = "$(?=\\n)" if _MULTILINE.search(pattern) else "(?!)"
    at, in_class = 0, False
    while at < len(pattern):
        rest = pattern[at:]
        if in_class and (posix := _POSIX.match(pattern, at)):
            if posix[1] or posix[2] not in _IN_POSIX:
                raise PatternError(f"the class {posix[0]} is not supported")
            out.append(_IN_POSIX[posix[2]])
            at = posix.end()
        elif rest.startswith(r"\Q"):
            end = pattern.find(r"\E", at)
            end = len(pattern) if end < 0 else end
            out.append("".join(map(_literal, pattern[at + 2 : end])))
            at = end + 2
        elif rest[0] == "\\":
            text, length = _escape(pattern, at, in_class)
            out.append(text if ends or in_class or rest[1:2] not in ("z", "Z") else "(?!)")
            at += length
        elif in_class:
            if rest[0] == "]":
                in_class = False
                out.append("]")
            else:
                out.append(rest[0] if rest[0] == "-" else _literal(rest[0]))
            at += 1
        elif rest[0] == "[":
            head = "[^" if rest.startswith("[^") else "["
            out.append(head)
            at += len(head)
            in_class = True
            if pattern.startswith("]", at):  # the first one is a character of the class
                out.append(r"\]")
                at += 1
        else:
            if at and (flags := _INLINE_FLAGS.match(pattern, at)):
                raise PatternError(f"{flags[0]} in the middle is not supported")
            if (times := _QUANTIFIER.match(pattern, at)) and max(int(n) for n in times.groups() if n) > _MOST_TIMES:
                raise PatternError(f"{times[0]} is more than {_MOST_TIMES} times")
            out.append(rest[0] if ends or rest[0] != "$" else no_end)
            at += 1
    translated = "".join(out)
    _check_size(translated)
    return translated


def _check_size(translated: str) -> None:
    """Limit the expanded size, because ``regex`` expands counted groups, including nested ones, in memory."""
    sizes, last = [0], 0
    for part in _PART.findall(translated):
        if part == "(":
            sizes.append(0)
            last = 0
        elif part == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif count := _QUANTIFIER.fullmatch(part):
            times = max(1, *map(int, filter(None, count.groups())))
            sizes[-1] += last * (times - 1)
            last *= times
        else:
            last = 1
            sizes[-1] += 1
        if sizes[-1] > _LARGEST:
            raise PatternError(f"it repeats its parts more than {_LARGEST} times, which is not supported")


def _escape(pattern: str, at: int, in_class: bool) -> tuple[str, int]:
    """Translate the escape sequence at ``at``; return it and its length in the pattern."""
    if point := _CODE_POINT.match(pattern, at):
        number = int(point[3], 8) if point[3] else int(point[1] or point[2] or "0", 16)
        if number > 0x10FFFF:
            raise PatternError(f"{point[0]} is not a code point")
        return _literal(chr(number)), len(point[0])
    if prop := _PROPERTY.match(pattern, at):
        negated = (prop[1] == "P") != bool(prop[2])
        name = (prop[3] if prop[4] is None else prop[4]).strip()
        special = _SPECIAL.get(name)
        if special is not None:
            if in_class and negated:
                raise PatternError(f"{prop[0]} in a class is not supported")
            return special if in_class else f"[{'^' if negated else ''}{special}]", len(prop[0])
        if name in _SHARED:
            name = f"sc={name}"
        name = name if _GENERAL.match(name) or "=" in name or ":" in name else f"scx={name}"
        return rf"\{'P' if negated else 'p'}{{{name.replace('script_extensions:', 'scx=').replace(':', '=')}}}", len(prop[0])
    letter = pattern[at + 1 : at + 2]
    if not letter:
        raise PatternError("it ends with a backslash")
    if letter in _CLASSES:
        content = _CLASSES[letter]
        if not in_class:
            return f"[{content}]", 2
        if not content.startswith("^"):
            return content, 2
        return _negated_in_class(letter), 2
    if letter in _ASSERTIONS and not in_class:
        return _ASSERTIONS[letter], 2
    if letter == "b":
        return r"\x08", 2
    if letter == "e":
        return r"\x1b", 2
    if letter in "KXCGc":
        raise PatternError(rf"\{letter} is not supported")
    if letter.isascii() and letter.isalnum():  # \n, \r, \t, \f, \a, \A, references
        return "\\" + letter, 2
    return _literal(letter), 2


@functools.cache
def _negated_in_class(letter: str) -> str:
    """Return a class of all characters outside the letter's class, as ranges, for use within another class."""
    import regex

    inside = regex.compile(f"[{_CLASSES[letter.lower()] if letter != 'N' else chr(10)}]")
    ranges, first = [], 0
    for match in inside.finditer("".join(map(chr, range(sys.maxunicode + 1)))):
        if match.start() > first:
            ranges.append((first, match.start() - 1))
        first = match.end()
    ranges.append((first, sys.maxunicode))
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


def _literal(character: str) -> str:
    code = ord(character)
    if character.isalnum() and character.isascii():
        return character
    return f"\\U{code:08x}" if code > 0xFF else f"\\x{code:02x}"


class Pattern:
    """A compiled pattern over bytes."""

    def __init__(self, pattern: str) -> None:
        try:
            import regex
        except ImportError as error:
            raise MissingExtraError("regex", "Python kernels of tokenizers", "python-kernels") from error
        try:
            self.last = _Compiled(translate(pattern))
            self._pattern = pattern
        except (regex.error, PatternError) as error:
            raise PatternError(f"the pattern {pattern!r}: {error}") from None

    @functools.cached_property
    def inner(self) -> _Compiled:
        """The pattern for texts that end at invalid UTF-8."""
        return _Compiled(translate(self._pattern, ends=False))

    @property
    def groups(self) -> int:
        """The number of capture groups."""
        return self.last.anywhere.groups

    def subject(self, text: bytes) -> Subject:
        """Prepare ``text`` for searching."""
        return Subject(self, text)


class _Compiled:
    """A translated pattern, and its variant for non-empty matches."""

    def __init__(self, translated: str) -> None:
        import regex

        self.anywhere = regex.compile(translated, regex.VERSION0)
        # No non-empty match ends where a search begins.
        self.filled = regex.compile(rf"(?:{translated})(?!\G)", regex.VERSION0)


class Subject:
    """A text to search in."""

    def __init__(self, pattern: Pattern, text: bytes) -> None:
        self._pattern = pattern
        self._text = text.decode("utf-8", "surrogateescape")
        self._offsets: list[int] | None = None
        if len(self._text) != len(text):
            self._offsets = [0]
            for character in self._text:
                self._offsets.append(self._offsets[-1] + _width(character))
        self._ends = [m.start() for m in re.finditer("[\udc80-\udcff]", self._text)] + [len(self._text)]

    def search(self, start: int) -> tuple[tuple[int, int], ...] | None:
        """Find the first match from byte ``start`` on; return the spans of it and of each group, (-1, -1) for an unmatched
        group.
        """
        at = start if self._offsets is None else self._place(start)
        for end in self._ends:
            if end < at:
                continue
            if match := _matched(self._until(end).anywhere.search, self._text, at, end):
                return tuple(self._bytes(*span) for span in match.regs)
            at = end + 1
        return None

    def search_after(self, span: tuple[int, int]) -> tuple[tuple[int, int], ...] | None:
        """Find the match after the one at ``span`` in a global replacement, as in Perl."""
        first, last = span
        if first != last:
            return self.search(last)
        at = last if self._offsets is None else self._place(last)
        end = next(end for end in self._ends if end >= at)
        if match := _matched(self._until(end).filled.match, self._text, at, end):
            return tuple(self._bytes(*group) for group in match.regs)
        if at >= len(self._text):
            return None
        return self.search(at + 1 if self._offsets is None else self._offsets[at + 1])

    def _until(self, end: int) -> _Compiled:
        return self._pattern.last if end == len(self._text) else self._pattern.inner

    def _place(self, offset: int) -> int:
        assert self._offsets is not None
        return bisect.bisect_left(self._offsets, offset)

    def _bytes(self, first: int, last: int) -> tuple[int, int]:
        if self._offsets is None or first < 0:
            return first, last
        return self._offsets[first], self._offsets[last]

    def matches(self) -> Iterator[tuple[tuple[int, int], ...]]:
        """Iterate over consecutive matches, up to the first empty one."""
        start = 0
        while (match := self.search(start)) is not None and match[0][0] != match[0][1]:
            yield match
            start = match[0][1]


def _matched(find: Any, text: str, start: int, end: int) -> Any:
    """Return the match, if any; report infinite recursion of a pattern as an error instead of exhausting the memory."""
    try:
        return find(text, start, end)
    except (MemoryError, RecursionError):
        raise PatternError(f"the pattern {find.__self__.pattern!r} recurses too deeply in a string") from None


def _width(character: str) -> int:
    code = ord(character)
    if code < 0x80 or 0xDC80 <= code <= 0xDCFF:
        return 1
    return 2 if code < 0x800 else 3 if code < 0x10000 else 4


@functools.lru_cache(maxsize=256)
def compiled(pattern: str) -> Pattern:
    """Compile a pattern; raise `PatternError` if it is invalid, and `MissingExtraError` without ``regex``."""
    return Pattern(pattern)
