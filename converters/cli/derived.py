"""The command line of `converters.options`: the parameters of a command, and parsing into `Options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from converters.cli.values import pairs, shapes
from converters.options import Option, OptionError, Options, find, in_command, in_help, options, plain


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace ``**options`` of a command by a parameter per option, before the keyword-only parameters."""
    types = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters.values()
    before = [one for one in own if one.kind is one.POSITIONAL_OR_KEYWORD]
    after = [one for one in own if one.kind is one.KEYWORD_ONLY]
    typed = [[one.replace(kind=one.KEYWORD_ONLY, annotation=types[one.name]) for one in part] for part in (before, after)]
    found = [*typed[0], *parameters(), *typed[1]]

    def whole(**given: Any) -> None:
        command(**given)

    whole.__name__, whole.__doc__ = command.__name__, command.__doc__
    # Releases of typer differ in which of the two they read.
    whole.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
    whole.__annotations__ = {one.name: one.annotation for one in found}
    return whole


def parameters() -> list[inspect.Parameter]:
    """Return the parameters of a command that takes all options."""
    return [parameter for one in options() if one.description.in_command for parameter in _parameters(one)]


def typer_option(name: str) -> Any:
    """Return typer's declaration of an option of `Options`."""
    one = find(name)
    assert one is not None
    return _description(one)


def parsed(given: Mapping[str, Any]) -> Options:
    """Parse the values of a command's `parameters`.

    Raises:
        typer.BadParameter: a value is not allowed.
    """
    try:
        return Options(**{one.name: _value(one, given) for one in options() if one.description.in_command})
    except OptionError as error:
        raise bad(error) from error


def bad(error: OptionError) -> typer.BadParameter:
    """Return an error as the command reports it."""
    own = f"{{{error.option}}} "
    template = f"it {error.template.removeprefix(own)}" if error.template.startswith(own) else error.template
    return typer.BadParameter(plain(template, in_command), param_hint=in_command(error.option, ""))


def _parameters(one: Option) -> list[inspect.Parameter]:
    if one.description.flags:
        return [
            _parameter(_name(flag), Annotated[bool, typer.Option(flag, help=plain(help, in_command))], False)
            for flag, help in one.description.flags.values()
        ]
    return [_parameter(one.name, Annotated[_type(one), _description(one)], _default(one))]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _description(one: Option) -> Any:
    more: dict[str, Any] = {}
    if one.description.metavar:
        more["metavar"] = one.description.metavar
    if one.description.least is not None:
        more["min"] = one.description.least
    if one.default is None or one.default == ():
        more["show_default"] = False
    spelled = f"{one.flag}/--no-{one.flag[2:]}" if one.default is True else one.flag
    return typer.Option(spelled, help=in_help(one), **more)


def _type(one: Option) -> Any:
    """Return the type of the typed text: several texts, a path, a number or a text."""
    if one.choices:
        return _choices(one) | None if one.is_optional else _choices(one)
    if isinstance(one.default, bool):
        return bool
    kinds = [kind for kind in get_args(one.type) or (one.type,) if isinstance(kind, type)]
    if Path in kinds:
        return Path | None
    if int in kinds:
        return int | None if one.is_optional else int
    if str in kinds and type(None) in kinds:
        return str | None
    return list[str] | None


def _choices(one: Option) -> Any:
    return _enumeration(one.name, one.choices)


@cache
def _enumeration(name: str, choices: tuple[str, ...]) -> Any:
    return StrEnum(name, {choice: choice for choice in choices})


def _default(one: Option) -> Any:
    if one.choices and one.default is not None:
        return _choices(one)(one.default)
    return one.default if isinstance(one.default, bool | int) else None


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _value(one: Option, given: Mapping[str, Any]) -> Any:
    """Convert the typed value of an option."""
    if one.description.flags:
        chosen = [(value, flag) for value, (flag, _) in one.description.flags.items() if given[_name(flag)]]
        if len(chosen) > 1:
            raise typer.BadParameter(f"it cannot be combined with {chosen[1][1]}", param_hint=chosen[0][1])
        return chosen[0][0] if chosen else one.default
    value = given[one.name]
    if isinstance(value, StrEnum):
        return value.value
    kinds = get_args(one.type)
    if Mapping[str, Sequence[int]] in kinds:
        return shapes(value, one.flag, with_open=True)
    if Mapping[str, str] in kinds:
        return pairs(value, one.flag)
    return one.default if value is None else value
