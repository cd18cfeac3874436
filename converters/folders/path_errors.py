"""Errors for a folder or its files."""

from __future__ import annotations

from pathlib import Path

from converters.errors import ConversionError, Fault, Problem

AS_WRITTEN = "specify the folder that optimum-intel wrote"
"""The remedy for a missing file."""


def path_error(path: Path, message: str, remedy: str) -> ConversionError:
    """Return the error for an invalid path."""
    return ConversionError.of(Problem(message, str(path), remedy=remedy, fault=Fault.UNSUPPORTED))
