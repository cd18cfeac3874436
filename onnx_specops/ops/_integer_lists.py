"""Lists of integers in attributes, such as ``"2,2"``."""

from __future__ import annotations

from collections.abc import Iterable

_DIGITS = 6


def parse_integers(operator: str, name: str, text: str, count: int, otherwise: int) -> list[int]:
    """Return the ``count`` numbers of an attribute, of up to six digits each; ``otherwise`` for each if it is empty."""
    if not text.strip():
        return [otherwise] * count
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= _DIGITS for part in parts):
        raise ValueError(f"{operator}: {name} = {text!r} is not a list of integers")
    if len(parts) != count:
        raise ValueError(f"{operator}: {name} has {len(parts)} numbers instead of {count}")
    return [int(part) for part in parts]


def is_integer_list(numbers: Iterable[int]) -> bool:
    """Return whether an attribute can have these numbers."""
    return all(0 <= number < 10**_DIGITS for number in numbers)


def integer_list(numbers: Iterable[int]) -> str:
    """Return the attribute of these numbers."""
    return ",".join(map(str, numbers))
