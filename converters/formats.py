"""The registry of source formats. No other module names them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from converters.source import Format

_MODULES = ("converters.frontends.format", "converters.openvino.format")
"""Modules with a `Format` named ``FORMAT``. The first format that recognizes a model opens it; the last one is the fallback.
"""


def formats() -> Iterator[Format]:
    """Yield all formats."""
    for module in _MODULES:
        yield importlib.import_module(module).FORMAT


def recognized(model: object) -> Format | None:
    """Return the format that recognizes a model, if any."""
    return next((one for one in formats() if one.recognizes(model)), None)


def format_of(model: object) -> Format:
    """Return the format that opens a model. For an unknown model it is the one that raises the error."""
    found = recognized(model)
    if found is None:
        *_, found = formats()
    return found


def find_models(folder: Path) -> list[Path]:
    """Return the models in a folder and its subfolders, sorted by path."""
    found = {path for one in formats() for suffix in one.suffixes for path in folder.rglob(f"*{suffix}")}
    return sorted(path for path in found if recognized(path) is not None)
