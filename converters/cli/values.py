"""Parsing of option values: shapes and names."""

from __future__ import annotations

import re

import typer

_OPEN = re.compile(r"\?|-1|\d{0,9}\.\.\d{0,9}", re.ASCII)
_SIZE = re.compile(r"\d{1,9}", re.ASCII)


def shapes(texts: list[str] | None, option: str, *, with_open: bool = False) -> dict[str, list[int]]:
    """Parse shapes by name.

    Args:
        texts: each is ``NAME=DxD``; ``NAME=`` is a scalar.
        option: the option that an error names.
        with_open: whether a dimension may be dynamic: ``?``, ``-1``, or a range such as ``1..8``. The result has -1 for it.
    """
    found = {}
    form = "x=1x3x224x224" + (", with ? for a dynamic dimension" if with_open else "")
    for text in texts or ():
        name, equals, dims = text.rpartition("=")
        sizes = dims.split("x") if dims else []
        if (
            not equals
            or not name
            or not all(_SIZE.fullmatch(size) or (with_open and _OPEN.fullmatch(size)) for size in sizes)
        ):
            raise typer.BadParameter(f"{text!r} is not of the form {form}", param_hint=option)
        found[name] = [int(size) if _SIZE.fullmatch(size) else -1 for size in sizes]
    return found


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Parse ``OLD=NEW`` into old and new names."""
    found = {}
    for text in texts or ():
        old, equals, new = text.partition("=")
        if not (equals and old and new):
            raise typer.BadParameter(f"{text!r} is not of the form OLD=NEW", param_hint=option)
        found[old] = new
    return found
