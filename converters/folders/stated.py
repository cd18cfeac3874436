"""Values in the JSON files of a model, which are checked when they are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from converters.folders.path_errors import path_error

_REMEDY = "use the {} of the model"


@dataclass(frozen=True)
class Stated:
    """The values of a JSON object.

    Attributes:
        path: the file.
        values: the object.
        place: the place of the object in the file, as ``vision_config.``; empty for the whole file.
    """

    path: Path
    values: Mapping[str, Any]
    place: str = ""

    def section(self, name: str) -> Stated:
        """Return the values of an object in the object.

        Raises:
            ConversionError: it is missing, or is not an object.
        """
        found = self.values.get(name)
        if found is None:
            raise path_error(self.path, f"it has no {self.place}{name}", _REMEDY.format(self.path.name))
        if not isinstance(found, dict):
            raise self.invalid(name, "an object")
        return Stated(self.path, found, f"{self.place}{name}.")

    def size(self, name: str, default: int) -> int:
        """Return a positive integer, or the default if the file states none or ``null``.

        Raises:
            ConversionError: the value is of another type.
        """
        found = self.values.get(name)
        if found is None:
            return default
        if not is_integer(found) or not 0 < found < 1 << 31:
            raise self.invalid(name, "a positive integer")
        return int(found)

    def number(self, name: str, default: float) -> float:
        """Return a finite number, or the default if the file states none or ``null``.

        Raises:
            ConversionError: the value is of another type.
        """
        found = self.values.get(name)
        if found is None:
            return default
        if not is_number(found):
            raise self.invalid(name, "a number")
        return float(found)

    def invalid(self, name: str, expected: str) -> Exception:
        """Return the error for a value of another type or range."""
        message = f"its {self.place}{name} is {shown(self.values[name])}; expected {expected}"
        return path_error(self.path, message, _REMEDY.format(self.path.name))


def is_integer(value: object) -> bool:
    """Return whether a value of a JSON file is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether a value of a JSON file is a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def shown(value: object) -> str:
    """Return a value as an error message shows it: its beginning, if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
