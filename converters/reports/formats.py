"""Formatting of numbers and names on pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from converters.validation.compare import Comparison

__all__ = ["difference", "dims", "duration", "errors", "number", "share", "shortened", "size", "sort_key"]

_LONGEST = 48


def number(value: float | None) -> str:
    """Format a number with two digits; an empty text for ``None``."""
    if value is None:
        return ""
    return "0" if value == 0 else str(value) if not math.isfinite(value) else f"{value:.2g}"


def share(value: float) -> str:
    """Format a fraction in percent; 100 % and 0 % only if exact."""
    text = f"{value:.1%}"
    if text == "100.0%" and value < 1:
        return "99.9%"
    return "0.1%" if text == "0.0%" and value > 0 else text


def errors(relative_l2: float | None, exact: float, *, name: str = "relative L2") -> str:
    """Format a relative L2 error, if there is one, and a fraction of exact elements."""
    told = f"{share(exact)} exact"
    return told if relative_l2 is None else f"{name} {number(relative_l2)}, {told}"


def difference(found: Comparison) -> str:
    """Format a comparison: its note, or else its errors."""
    return found.note or errors(found.relative_l2, found.exact)


def duration(seconds: float | None) -> str:
    """Format a time in a suitable unit."""
    if seconds is None:
        return ""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def size(count: float) -> str:
    """Format a number of bytes in a suitable unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"


def dims(shape: Sequence[int | None] | None) -> str:
    """Format a shape, with a question mark for a dynamic dimension."""
    if shape is None:
        return "any"
    return "\u00d7".join("?" if d is None else str(d) for d in shape) or "scalar"


def shortened(name: str, longest: int = _LONGEST) -> str:
    """Shorten a long name in the middle."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[: longest - 1 - half]}…{name[-half:]}"


def sort_key(value: float | None) -> str:
    """Format a number for the page's script; an empty text for ``None`` and NaN, which are not sorted."""
    if value is None or math.isnan(value):
        return ""
    return str(value).replace("inf", "Infinity")
