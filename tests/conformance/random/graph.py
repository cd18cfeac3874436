"""A random graph under construction: its values, and how the families of layers select them."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from converters.openvino import rules as _rules  # noqa: F401  (importing it registers the rules)
from converters.openvino.rule import find_rule
from tests.conformance.operation_models import TYPES
from tests.conformance.random.recipe import Dims, Layer, Leaf, Recipe, Ref, layer, leaf

FLOATS = ("f32", "f16", "bf16", "f64")
SIGNED = ("i32", "i64", "i8", "i16")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ANY = (*NUMBERS, "boolean")

# The probability weights of new values' types; other types have the weight of the last one.
_WEIGHTS = {"f32": 24.0, "i32": 4.0, "i64": 4.0, "boolean": 2.0, "f16": 2.0, "bf16": 0.4, "f64": 0.4, "u8": 0.8, "i8": 0.8}
MOST_ELEMENTS = 4000

MAKERS: list[Callable[[Graph], Any]] = []
"""The makers of the families; each adds a layer (or a few) to the graph."""


def maker(weight: int = 1) -> Callable[[Callable[[Graph], Any]], Callable[[Graph], Any]]:
    """Register a maker with a relative frequency of ``weight``."""

    def register(function: Callable[[Graph], Any]) -> Callable[[Graph], Any]:
        MAKERS.extend([function] * weight)
        return function

    return register


class Unfit(Exception):
    """The layer cannot be created from the available values."""


@dataclass(frozen=True)
class Value:
    """A value of the graph, with the known facts about it.

    Attributes:
        ref: its producer.
        type: its element type.
        shape: its shape; ``None`` for a dimension, or a shape, that depends on data.
    """

    ref: Ref
    type: str
    shape: tuple[int | None, ...] | None

    @property
    def rank(self) -> int:
        if self.shape is None:
            raise Unfit("its rank depends on data")
        return len(self.shape)

    @property
    def dims(self) -> tuple[int, ...]:
        """Return the shape, which must be known."""
        if self.shape is None or None in self.shape:
            raise Unfit("its shape depends on data")
        return typing.cast(tuple[int, ...], self.shape)


class Graph:
    """A graph under construction, with shapes inferred by OpenVINO.

    Args:
        rng: the source of all choices.
        inputs: for a body, the type and shape of each Parameter.
    """

    def __init__(self, rng: np.random.Generator, inputs: Sequence[tuple[str, Sequence[int]]] = (), depth: int = 0) -> None:
        self.rng, self.depth = rng, depth
        self.static = False  # set by layers that require known dimensions
        self.nodes: list[Leaf | Layer] = []
        self.values: list[Value] = []
        self._outputs: list[Sequence[Any]] = []
        self._used: set[Ref] = set()
        self._in_body = bool(depth)
        self.parameters = [self._add_leaf(Leaf(type_, None, tuple(shape))) for type_, shape in inputs]

    # -- choices -----------------------------------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def int(self, least: int, most: int) -> int:
        """Return an integer from ``least`` to ``most``."""
        return int(self.rng.integers(least, most + 1))

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def float(self, least: float, most: float) -> float:
        """Return a float with few digits."""
        return round(float(self.rng.uniform(least, most)) * 8) / 8

    def some(self, options: Sequence[Any], least: int = 0, most: int | None = None) -> list[Any]:
        """Return some of the options, in any order."""
        count = self.int(least, len(options) if most is None else min(most, len(options)))
        return [options[k] for k in self.rng.permutation(len(options))[:count]]

    def type(self, types: Sequence[str]) -> str:
        weights = np.array([_WEIGHTS.get(name, 0.1) for name in types])
        return str(self.rng.choice(np.array(types), p=weights / weights.sum()))

    def shape(self, rank: int, most: int = 6) -> tuple[int, ...]:
        """Return small dimensions, some of them 1, few of them 0."""
        dims = [1 if self.chance(0.15) else self.int(2, most) for _ in range(rank)]
        if rank and self.chance(0.02):
            dims[self.int(0, rank - 1)] = 0
        return tuple(dims)

    def axis(self, value: Value, least: int = 0) -> int:
        """Return an axis of the value, from ``least`` on, counted from either end."""
        if value.rank <= least:
            raise Unfit("too few axes")
        axis = self.int(least, value.rank - 1)
        return axis - value.rank if self.chance(0.3) else axis

    def signed(self, axes: Sequence[int], rank: int) -> list[int]:
        """Return the axes, some of them counted from the end."""
        return [axis - rank if self.chance(0.3) else axis for axis in axes]

    # -- values ------------------------------------------------------------------------------------------------------------

    def array(self, type_: str, shape: Sequence[int], low: float = -4, high: float = 4) -> np.ndarray:
        """Return multiples of 1/8, or integers, few of them at the ends of the range."""
        if type_ == "boolean":
            return self.rng.integers(0, 2, shape).astype(bool)
        if type_ in INTEGERS:
            least = max(low, 0) if type_ in UNSIGNED else low
            return self.rng.integers(int(np.ceil(least)), max(int(high), int(np.ceil(least))) + 1, shape).astype(
                TYPES[type_]
            )
        return (np.round(self.rng.uniform(low, high, shape) * 8) / 8).astype(TYPES[type_])

    def leaf(self, array: np.ndarray, constant: float = 0.3) -> Value:
        """Return a new value: a Constant with the probability ``constant``, else a Parameter (in bodies always an input)."""
        fixed = self._in_body or self.chance(constant)
        return self._add_leaf(Leaf(type_name(array), np.asarray(array), np.shape(array), fixed))

    def const(self, array: Any) -> Value:
        return self.leaf(np.asarray(array), 1.0)

    def index(self, numbers: Any, constant: float = 0.8, types: Sequence[str] = ("i64", "i32")) -> Value:
        """Return integers, usually as a Constant."""
        return self.leaf(np.asarray(numbers).astype(TYPES[self.pick(*types)]), constant)

    def fresh(
        self, types: Sequence[str], shape: Sequence[int], constant: float = 0.3, low: float = -4, high: float = 4
    ) -> Value:
        """Return a new value of one of the types."""
        return self.leaf(self.array(self.type(types), shape, low, high), constant)

    def value(
        self,
        types: Sequence[str] = NUMBERS,
        rank: tuple[int, int] = (0, 5),
        *,
        known: bool = True,
        where: Callable[[Value], bool] = lambda value: True,
        fresh: float = 0.2,
    ) -> Value:
        """Return an existing value or a new one.

        Args:
            types: its types.
            rank: its minimum and maximum rank.
            known: whether its shape must be known.
            where: a further condition for existing values.
            fresh: the probability of a new value if there are suitable ones.
        """
        found = [v for v in self.values if v.type in types and self._fits(v, rank, known) and where(v)]
        if found and not self.chance(fresh):
            unused = [value for value in found if value.ref not in self._used]
            return self.pick(*(unused if unused and self.chance(0.7) else found))
        made = self.fresh(types, self.shape(self.int(*rank)), 0.1)
        if not where(made):
            raise Unfit("no value fits")
        return made

    @staticmethod
    def _fits(value: Value, rank: tuple[int, int], known: bool) -> bool:
        if value.shape is None:
            return not known
        return rank[0] <= len(value.shape) <= rank[1] and not (known and None in value.shape)

    def of_shape(self, type_: str, shape: Sequence[int], constant: float = 0.3, low: float = -4, high: float = 4) -> Value:
        """Return an existing or new value of the type and shape."""
        found = [value for value in self.values if value.type == type_ and value.shape == tuple(shape)]
        if found and self.chance(0.5):
            return self.pick(*found)
        return self.leaf(self.array(type_, shape, low, high), constant)

    def broadcasting(self, value: Value, constant: float = 0.4, low: float = -4, high: float = 4) -> Value:
        """Return a value of the same type whose shape broadcasts with the given one."""
        found = [
            other
            for other in self.values
            if other.type == value.type and other is not value and _broadcast(other.shape, value.shape)
        ]
        if found and self.chance(0.5):
            return self.pick(*found)
        dims = [1 if self.chance(0.3) else d for d in value.dims]
        dims = dims[self.int(0, len(dims)) :] if self.chance(0.4) else dims
        return self.leaf(self.array(value.type, dims, low, high), constant)

    # -- growth ------------------------------------------------------------------------------------------------------------

    def layer(self, operation: str, opset: str, *inputs: Value, **attributes: Any) -> list[Value]:
        """Add a layer; flags and attributes with a fixed set of words are drawn unless given.

        Raises:
            Unfit: OpenVINO rejects it, or its outputs are too large.
        """
        return self.add(Layer(operation, opset, tuple(v.ref for v in inputs), self._drawn(operation, opset, attributes)))

    def add(self, node: Layer) -> list[Value]:
        """Add a layer unchanged; raise `Unfit` like `layer`."""
        try:
            outputs = layer(node, [self._outputs[source][index] for source, index in node.inputs])
            known = [(output.get_element_type(), output.get_partial_shape()) for output in outputs]
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            raise Unfit(str(error)) from error
        made = []
        for index, (kind, partial) in enumerate(known):
            shape = tuple(d.get_length() if d.is_static else None for d in partial) if partial.rank.is_static else None
            made.append(Value((len(self.nodes), index), kind.get_type_name(), shape))
            if shape is not None and np.prod([1 if d is None else d for d in shape], dtype=float) > MOST_ELEMENTS:
                raise Unfit("it gives too much")
        self.nodes.append(node)
        self._outputs.append(outputs)
        self._used |= set(node.inputs)
        # Types that NumPy lacks have no further consumers.
        self.values += [value for value in made if value.type in TYPES]
        return made

    def _drawn(self, operation: str, opset: str, given: dict[str, Any]) -> dict[str, Any]:
        drawn = dict(given)
        for name, attribute in find_rule(operation, opset).attributes.items():
            if name in given or not (attribute.required or self.chance(0.5)):
                continue
            if typing.get_origin(attribute.annotation) is Literal:
                drawn[name] = self.pick(*typing.get_args(attribute.annotation))
            elif attribute.annotation is bool:
                drawn[name] = self.chance(0.5)
        return {name: value for name, value in drawn.items() if value is not None}

    def _add_leaf(self, node: Leaf) -> Value:
        self._outputs.append(leaf(node))
        self.nodes.append(node)
        value = Value((len(self.nodes) - 1, 0), node.type, tuple(node.dims or ()))
        self.values.append(value)
        return value

    def grow(self, layers: int) -> None:
        """Add about the given number of layers."""
        for _ in range(layers):
            for _ in range(20):
                kept = len(self.nodes), len(self.values), set(self._used)
                try:
                    self.pick(*MAKERS)(self)
                    break
                except Unfit:
                    self._cut(*kept)

    def _cut(self, nodes: int, values: int, used: set[Ref]) -> None:
        """Remove everything that was added later."""
        del self.nodes[nodes:], self._outputs[nodes:], self.values[values:]
        self._used = used

    def unused(self) -> list[Value]:
        """Return the layers' values without consumers."""
        return [v for v in self.values if v.ref not in self._used and isinstance(self.nodes[v.ref[0]], Layer)]

    def recipe(self, results: Sequence[Value], keep_parameters: bool = False) -> Recipe:
        """Return the nodes that the results depend on."""
        return Recipe(tuple(self.nodes), tuple(value.ref for value in results)).pruned(keep_parameters)


def type_name(array: np.ndarray) -> str:
    """Return OpenVINO's name for an array's type."""
    return next(name for name, dtype in TYPES.items() if np.dtype(dtype) == np.asarray(array).dtype)


def _broadcast(one: tuple[int | None, ...] | None, other: tuple[int | None, ...] | None) -> bool:
    if one is None or other is None:
        return False
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


def with_dims(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    """Return the recipe with unknown dimensions for some, all or none of its Parameters, or with unknown ranks."""
    mode = rng.choice(["static", "some", "all", "rank"], p=[0.45, 0.3, 0.2, 0.05])

    def opened(node: Leaf | Layer) -> Leaf | Layer:
        if not isinstance(node, Leaf) or node.constant or node.array is None or mode == "static":
            return node
        if mode == "rank" and rng.random() < 0.5:
            return replace(node, dims=None)
        return replace(node, dims=tuple(_opened(d, rng, 1.0 if mode == "all" else 0.5) for d in node.array.shape))

    return replace(recipe, nodes=tuple(opened(node) for node in recipe.nodes))


def _opened(dim: int, rng: np.random.Generator, share: float) -> Any:
    if rng.random() >= share:
        return dim
    return (int(rng.integers(0, dim + 1)), dim + int(rng.integers(0, 9))) if rng.random() < 0.15 else -1


__all__ = [
    "ANY",
    "FLOATS",
    "INTEGERS",
    "NUMBERS",
    "SIGNED",
    "UNSIGNED",
    "Dims",
    "Graph",
    "Unfit",
    "Value",
    "maker",
    "with_dims",
]
