"""The source formats: the one place that names them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from converters.source import Format

_MODULES = ("converters.frontends.format", "converters.openvino.format")
"""Each has a `Format` as ``FORMAT``. The first that recognises a model takes it; what none recognises is the last one's."""


def formats() -> Iterator[Format]:
    """All formats."""
    for module in _MODULES:
        yield importlib.import_module(module).FORMAT


def recognised(model: object) -> Format | None:
    """The format that a model is of, if it is of any."""
    return next((one for one in formats() if one.recognises(model)), None)


def format_of(model: object) -> Format:
    """The format that opens a model; that of an unknown one raises what is wrong with it."""
    found = recognised(model)
    if found is None:
        *_, found = formats()
    return found


def find_models(folder: Path) -> list[Path]:
    """The models below a folder, in the order of their paths."""
    found = {path for one in formats() for suffix in one.suffixes for path in folder.rglob(f"*{suffix}")}
    return sorted(path for path in found if recognised(path) is not None)
