"""Shapes in the attributes of an IR: "1,3,224,224", "?,1..5,3..", "..."."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from converters.errors import short
from converters.openvino.reader.xml import integer

Interval = tuple[int, int | None]
"""The minimum and maximum of a dimension; ``None`` for no maximum."""


@dataclass(frozen=True)
class PartialShape:
    """A shape in an attribute.

    Attributes:
        intervals: the bounds of each dimension; ``None`` for an unknown rank.
    """

    intervals: tuple[Interval, ...] | None

    @property
    def dims(self) -> tuple[int | None, ...] | None:
        """The dimensions, with ``None`` for dynamic ones; ``None`` for an unknown rank."""
        return None if self.intervals is None else tuple(known(interval) for interval in self.intervals)

    def __str__(self) -> str:
        return "[...]" if self.intervals is None else f"[{','.join(map(_shown, self.intervals))}]"

    @classmethod
    def parse(cls, text: str) -> PartialShape:
        """Parse a shape. Raise ``ValueError`` if the text is not a shape."""
        return cls(parse_partial_shape(text))


def parse_dimension(text: str) -> Interval | None:
    """Parse the bounds of one dimension: "3", "?", "-1", "1..5", "3..", "..7".

    Returns ``None`` if `text` is not a dimension.
    """
    if text in ("?", "-1"):
        return (0, None)
    low_text, dots, high_text = text.partition("..")
    if not dots:
        value = integer(text)
        return None if value is None or value < 0 else (value, value)
    low = integer(low_text) if low_text else 0
    high = integer(high_text) if high_text else None
    if low is None or low < 0 or (high_text and (high is None or high < low)):
        return None
    return (low, high)


def parse_partial_shape(text: str) -> tuple[Interval, ...] | None:
    """Parse the bounds of each dimension in a ``shape`` attribute; ``None`` for "...", a shape of unknown rank.

    Raises:
        ValueError: `text` is not a shape.
    """
    text = text.strip()
    if text[:1] == "[" and text[-1:] == "]":
        text = text[1:-1].strip()
    if text == "...":
        return None
    if not text:
        return ()
    shape = []
    for part in text.split(","):
        interval = parse_dimension(part.strip())
        if interval is None:
            raise ValueError(f'"{short(part)}" is not a valid dimension')
        shape.append(interval)
    return tuple(shape)


def _shown(interval: Interval) -> str:
    low, high = interval
    if low == high:
        return str(low)
    return "?" if interval == (0, None) else f"{low or ''}..{'' if high is None else high}"


def known(interval: Interval) -> int | None:
    """Return the only dimension in `interval`; ``None`` if there are several."""
    low, high = interval
    return low if low == high else None


def same_dims(a: Sequence[int | None], b: Sequence[int | None]) -> bool:
    """Return whether two shapes are compatible: of equal rank, with equal dimensions if both are known."""
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))
