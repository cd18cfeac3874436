"""Commands as typer makes them, but for what users of ``--json`` and readers of ``--help`` expect."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from converters.cli.failures import tell
from converters.errors import Problem

# What errors of usage have in common; newer releases of typer bring click's classes themselves.
_USAGE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class Command(TyperCommand):
    """A subcommand, whose ``--help`` is a flag like others."""

    def get_help_option(self, ctx: Any) -> Any:
        return _as_flag(super().get_help_option(ctx))


class Commands(TyperGroup):
    """All subcommands. With ``--json`` an error of usage, too, is one JSON object on standard output."""

    def get_help_option(self, ctx: Any) -> Any:
        return _as_flag(super().get_help_option(ctx))

    def main(self, args: Sequence[str] | None = None, *more: Any, standalone_mode: bool = True, **keywords: Any) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        if not standalone_mode or "--json" not in given:
            return super().main(given, *more, standalone_mode=standalone_mode, **keywords)
        try:
            code = super().main(given, *more, standalone_mode=False, **keywords)
        except _USAGE as error:
            tell([Problem(error.format_message())], as_json=True)
            code = error.exit_code
        sys.exit(code if isinstance(code, int) else 0)


def _as_flag(option: Any) -> Any:
    if option is not None:
        option.metavar = ""
    return option
