"""Commands as typer makes them, but for what users of ``--json`` and readers of ``--help`` expect."""

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

# What errors of usage have in common; newer releases of typer bring click's classes themselves.
_USAGE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class Command(TyperCommand):
    """A subcommand whose help shows flags as flags."""

    def get_params(self, ctx: Any) -> Any:
        return _flags_shown(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _USAGE as error:
            error.message = _plain(error.message)
            raise


class Commands(TyperGroup):
    """All subcommands. With ``--json`` an error of usage, too, is one JSON object on standard output."""

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
    """What typer says of a value, without the words of the library that it asks, and with what was probably meant."""
    message = message.removeprefix("Value error, ")
    found = re.fullmatch(r"'(.*)' is not one of ('.*?')\.?", message)
    meant = did_you_mean(found[1], re.findall(r"'([^']*)'", found[2])) if found else ""
    return f"{message.removesuffix('.')}: {meant}" if meant else message


def _flags_shown(parameters: Sequence[Any]) -> Sequence[Any]:
    """The parameters, of which those that take no value say so: typer would show the type of one."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters
