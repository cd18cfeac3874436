"""docs/command.md: the arguments and options of the subcommands, from their help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, get_args, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

from converters.cli.app import app
from docs.parts.markdown import table

_COMMON = ("as_json", "debug")
"""The options of all subcommands, which the page describes at its beginning."""

_METAVARS = {int: "N", float: "X"}
"""Type -> the name of a value in the table, if the option does not specify it."""


def options_of(name: str) -> Callable[[], Iterator[str]]:
    """Return the part with the arguments and options of a subcommand."""

    def rows() -> Iterator[str]:
        (function,) = (one.callback for one in app.registered_commands if one.callback and one.callback.__name__ == name)
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
        yield from table(
            ("option", "meaning"), (_row(one, hints[one.name]) for one in parameters if one.name not in _COMMON)
        )

    return rows


def _row(parameter: inspect.Parameter, hint: Any) -> tuple[str, str]:
    """Return the cells of a parameter: its names and values, and its help with the default."""
    kind, about = _plain_type(hint.__origin__), hint.__metadata__[0]
    assert isinstance(about, (ArgumentInfo, OptionInfo))
    text = " ".join((about.help or "").split())
    if isinstance(about, ArgumentInfo):
        return f"`{about.metavar}`", text
    # In Annotated, typer's first declaration is the argument `default`.
    declared = (about.default, *(about.param_decls or ()))
    flags = [flag for one in declared if isinstance(one, str) for flag in one.split("/") if flag.startswith("-")]
    flags = sorted(flags or [f"--{parameter.name.replace('_', '-')}"], key=lambda flag: not flag.startswith("--"))
    choices = [one.value for one in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []
    value = "" if kind is bool or choices else f" {about.metavar or _METAVARS.get(kind, 'VALUE')}"
    names = ", ".join(f"`{flag}{value}`" for flag in flags)
    if choices:
        names += " " + ", ".join(f"`{choice}`" for choice in choices)
    text = re.sub(r"(?<![\w`-])(--[a-z-]+)", r"`\1`", text)
    default = getattr(parameter.default, "value", parameter.default)
    has_none = default is None or isinstance(default, bool) or default is parameter.empty
    if has_none or not about.show_default or "default" in text:
        return names, text
    return names, f"{text} The default is `{f'{default:g}' if isinstance(default, float) else default}`."


def _plain_type(hint: Any) -> Any:
    """Return a type without ``None``, and the type of the elements of a list."""
    kinds = [one for one in get_args(hint) if one is not type(None)] or [hint]
    return _plain_type(kinds[0]) if kinds[0] is not hint and get_args(kinds[0]) else kinds[0]
