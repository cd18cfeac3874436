"""How a folder, or a file in it, is refused."""

from __future__ import annotations

from pathlib import Path

from converters.errors import ConversionError, Fault, Problem

AS_WRITTEN = "give the folder that optimum-intel wrote"
"""The remedy where a file is missing."""


def path_error(path: Path, message: str, remedy: str) -> ConversionError:
    """The error of a path that is not what it has to be."""
    return ConversionError.of(Problem(message, str(path), remedy=remedy, fault=Fault.UNSUPPORTED))
