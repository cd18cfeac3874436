"""The attributes of an operator: types, defaults and limits.

Limits are properties of the operator. The NumPy kernel, the body and the native kernel reject the same nodes, regardless of
the file.
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
    """Return the ``AttributeProto.AttributeType`` of a schema's attribute type."""
    return type_.value  # type: ignore[attr-defined]


class LimitError(ValueError):
    """A valid node needs more work or memory than the operator's limits allow."""


@dataclass(frozen=True)
class Limits:
    """The range of an integer attribute: ``Annotated[int, Limits(0, 1000)]`` in a kernel's signature.

    Attributes:
        least: the smallest valid value.
        most: the largest value whose work and memory are allowed; ``None`` if the attribute does not determine them.
    """

    least: int
    most: int | None = None


@dataclass(frozen=True)
class Product:
    """A limit for the product of integer attributes that together determine the work."""

    factors: tuple[str, ...]
    most: int

    def check(self, operator: str, values: Mapping[str, Any]) -> None:
        """Raise `LimitError` if the product exceeds the limit."""
        if (product := math.prod(values[name] for name in self.factors)) > self.most:
            raise LimitError(f"{operator}: {' * '.join(self.factors)} = {product} is more than {self.most}")


@dataclass(frozen=True)
class Attribute:
    """One attribute of an operator.

    Attributes:
        name: its name.
        type: ``int``, ``float``, ``str``, ``tuple[int, ...]`` or ``tuple[float, ...]``.
        default: its default value; ``None`` if the attribute is required.
        limits: the range of an integer.
        choices: the valid values of a string; empty if every string is valid.
    """

    name: str
    type: Any
    default: Any = None
    limits: Limits | None = None
    choices: tuple[str, ...] = ()

    @classmethod
    def of(cls, parameter: inspect.Parameter, hint: Any) -> Attribute:
        """Return the attribute that a parameter of a kernel's signature declares; ``hint`` is its annotation."""
        default = None if parameter.default is inspect.Parameter.empty else parameter.default
        if typing.get_origin(hint) is typing.Literal:
            return cls(parameter.name, str, default, choices=typing.get_args(hint))
        if typing.get_origin(hint) is typing.Annotated:
            type_, limits = typing.get_args(hint)
            if type_ is not int or not isinstance(limits, Limits):
                raise TypeError(f"{parameter.name}: {hint} is not an integer with limits")
            return cls(parameter.name, type_, default, limits)
        return cls(parameter.name, hint, default)

    @property
    def required(self) -> bool:
        """Whether the attribute is required."""
        return self.default is None

    @property
    def kind(self) -> int:
        """The ``AttributeProto.AttributeType``."""
        return attribute_kind(KINDS[self.type])

    def check(self, operator: str, value: Any) -> None:
        """Raise ``ValueError`` if a value is invalid, and `LimitError` if it is too large."""
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
