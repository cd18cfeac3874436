"""What an operator says of its attributes: kinds, defaults and limits.

Limits belong to the operator, not to who makes its nodes: whatever file a node comes from, the NumPy kernel, the body and
the native kernel refuse it alike.
"""

from __future__ import annotations

import inspect
import math
import numbers
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnx.defs import OpSchema

KINDS: dict[Any, OpSchema.AttrType] = {
    int: OpSchema.AttrType.INT,
    float: OpSchema.AttrType.FLOAT,
    str: OpSchema.AttrType.STRING,
    tuple[int, ...]: OpSchema.AttrType.INTS,
    tuple[float, ...]: OpSchema.AttrType.FLOATS,
}
_ARTICLES = {int: "an integer", float: "a float", str: "a string"}


def attribute_kind(type_: OpSchema.AttrType) -> int:
    """The ``AttributeProto.AttributeType`` of a schema's attribute type."""
    return type_.value  # type: ignore[attr-defined]


class LimitError(ValueError):
    """A node may mean what it says, but asks for more work or memory than any that is meant well: see the limits."""


@dataclass(frozen=True)
class Limits:
    """What an integer attribute may be: ``Annotated[int, Limits(0, 1000)]`` in a kernel's signature.

    Attributes:
        least: less has no meaning.
        most: more would take more work or memory than is allowed; None where the attribute asks for neither.
    """

    least: int
    most: int | None = None


@dataclass(frozen=True)
class Product:
    """The most that the product of some integer attributes may be, which ask for work together."""

    factors: tuple[str, ...]
    most: int

    def check(self, operator: str, values: Mapping[str, Any]) -> None:
        """Raises `LimitError` where it is more."""
        if (product := math.prod(values[name] for name in self.factors)) > self.most:
            raise LimitError(f"{operator}: {' * '.join(self.factors)} = {product} is more than {self.most}")


@dataclass(frozen=True)
class Attribute:
    """One attribute of an operator.

    Attributes:
        name: its name.
        type: ``int``, ``float``, ``str``, ``tuple[int, ...]`` or ``tuple[float, ...]``.
        default: its value where a node does not state it; None where every node must.
        limits: of an integer.
        choices: what a string may be; any where there are none.
    """

    name: str
    type: Any
    default: Any = None
    limits: Limits | None = None
    choices: tuple[str, ...] = ()

    @classmethod
    def of(cls, parameter: inspect.Parameter, hint: Any) -> Attribute:
        """What a parameter of a kernel's signature says, with its type."""
        default = None if parameter.default is inspect.Parameter.empty else parameter.default
        if typing.get_origin(hint) is typing.Literal:
            return cls(parameter.name, str, default, choices=typing.get_args(hint))
        if typing.get_origin(hint) is typing.Annotated:
            type_, limits = typing.get_args(hint)
            if type_ is not int or not isinstance(limits, Limits):
                raise TypeError(f"{parameter.name}: {hint} is no integer with limits")
            return cls(parameter.name, type_, default, limits)
        return cls(parameter.name, hint, default)

    @property
    def required(self) -> bool:
        """Whether every node must state it."""
        return self.default is None

    @property
    def kind(self) -> int:
        """The ``AttributeProto.AttributeType``."""
        return attribute_kind(KINDS[self.type])

    def check(self, operator: str, value: Any) -> None:
        """Raises ``ValueError`` for a value that has no meaning, `LimitError` for one that is too large."""
        name = f"{operator}: attribute {self.name}"
        if not self._is_of_type(value):
            raise ValueError(f"{name} is not {_ARTICLES.get(self.type, self.type)}")
        if self.limits is not None:
            if value < self.limits.least:
                raise ValueError(f"{name} = {value} is less than {self.limits.least}")
            if self.limits.most is not None and value > self.limits.most:
                raise LimitError(f"{name} = {value} is more than {self.limits.most}")
        if self.choices and value not in self.choices:
            raise ValueError(f"{name} = {value[:60]!r} is not one of {', '.join(self.choices)}")

    def _is_of_type(self, value: Any) -> bool:
        if self.type is int:
            return isinstance(value, numbers.Integral)
        if self.type is float:
            return isinstance(value, numbers.Real)
        return isinstance(value, str if self.type is str else (tuple, list))
