"""Typer commands with errors for ``--json`` and a readable ``--help``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from converters.cli.failures import report_problems
from converters.errors import Fault, Problem
from converters.suggestions import did_you_mean

# The base class of usage errors. Newer releases of typer include click's classes.
_USAGE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class Command(TyperCommand):
    """A subcommand whose help shows flags without a type."""

    def get_params(self, ctx: Any) -> Any:
        return _flags_shown(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _USAGE as error:
            error.message = _plain(error.message)
            raise


class Commands(TyperGroup):
    """All subcommands. With ``--json``, a usage error is one JSON object on standard output, too."""

    def get_params(self, ctx: Any) -> Any:
        return _flags_shown(super().get_params(ctx))

    def main(self, args: Sequence[str] | None = None, *more: Any, **keywords: Any) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        if "--json" not in given:
            return super().main(given, *more, **keywords)
        try:
            code = super().main(given, *more, **keywords | {"standalone_mode": False})
        except _USAGE as error:
            report_problems([Problem(error.format_message(), fault=Fault.USAGE)], as_json=True)
            code = error.exit_code
        sys.exit(code if isinstance(code, int) else 0)


def _plain(message: str) -> str:
    """Return typer's message about a value without internal terms, and with a suggestion."""
    message = message.removeprefix("Value error, ")
    found = re.fullmatch(r"'(.*)' is not one of ('.*?')\.?", message)
    meant = did_you_mean(found[1], re.findall(r"'([^']*)'", found[2])) if found else ""
    return f"{message.removesuffix('.')}: {meant}" if meant else message


def _flags_shown(parameters: Sequence[Any]) -> Sequence[Any]:
    """Return the parameters with flags marked, because typer would show a type for them."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters
