"""Forms that tract computes: sizes that are unknown before a model runs, and integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.spellings.slices import StatedSlice
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, attributes_of, computed_before, constant_array
from onnx_specops.naming import Names


class UnnamedDimensions(InPlacePass):
    """Remove the names of the unknown dimensions of computed tensors.

    tract (0.23) assigns its own name to the number of elements that NonZero finds, and rejects a different name in the file.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [
            value
            for node in all_nodes(model.graph)
            for value in node.outputs
            if value.shape is not None and any(isinstance(dim, ir.SymbolicDim) and dim.value for dim in value.shape)
        ]
        for value in found:
            assert value.shape is not None
            value.shape = ir.Shape([dim if isinstance(dim, int) else None for dim in value.shape])
        return PassResult(model, modified=bool(found))


class WideSizes(Workaround):
    """Compute dimensions in 64 bits if a few nodes compute them in 32 bits and a Cast follows.

    tract (0.23) supports arithmetic on unknown dimensions in 64 bits only. The values fit in 32 bits, so the results do not
    change.
    """

    operators = frozenset(("Cast",))
    equal = False

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or x.dtype != ir.DataType.INT32 or node.outputs[0].dtype != ir.DataType.INT64:
            return None
        values = None if constant_array(x) is not None else computed_before(x, _terms_of_size, _MAX_SIZES)
        if values is None:
            return None
        wide: dict[ir.Value, Value] = {}
        for value in values:
            wide[value] = _in_64_bits(op, value, wide)
        return [wide[x]]


_MOVED = frozenset(("Concat", "Gather", "Reshape", "Slice", "Squeeze", "Unsqueeze"))
"""Operators that do not change the numbers of their first input."""

_MAX_SIZES = 64
"""The number of values that `WideSizes` computes again."""


def _terms(node: ir.Node) -> Sequence[ir.Value | None]:
    """Return the inputs that contain numbers."""
    return node.inputs if node.op_type in ("Add", "Concat", "Sub") else node.inputs[:1]


def _terms_of_size(value: ir.Value) -> list[ir.Value] | None:
    """Return the values from which a size is computed: none for a dimension or a constant; ``None`` if the value may not be
    a size.
    """
    if value.dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        return None
    if constant_array(value) is not None:
        return []
    node = value.producer()
    if node is None or node.domain:
        return None
    if node.op_type in ("Shape", "Size"):
        return []
    if node.op_type not in (*_MOVED, "Add", "Cast", "Sub"):
        return None
    terms = _terms(node)
    return None if None in terms else [term for term in terms if term is not None]


def _in_64_bits(op: Builder, value: ir.Value, wide: Mapping[ir.Value, Value]) -> Value:
    """Return the same numbers as 64-bit integers; ``wide`` has those that they are computed from."""
    if (known := constant_array(value)) is not None:
        return op.const(known.astype(np.int64))
    node = value.producer()
    assert node is not None and isinstance(value, Value)
    if value.dtype == ir.DataType.INT64:
        return value
    terms = [wide[term] for term in _terms(node) if term is not None]
    if node.op_type == "Cast":
        return terms[0]
    result: Value = op.node(node.op_type, *terms, *node.inputs[len(terms) :], **attributes_of(node))
    return result


class CountedSlices(Workaround):
    """Replace the starts and ends of a Slice along an unknown dimension by numbers between 0 and the dimension.

    tract (0.23) raises an error at run time for a position beyond the dimension, for example for the first 20 boxes if there
    are fewer. It supports only 2**63 - 1 and 2**31 - 1 as the end of an axis. Conditions: constant positions, and steps of
    1.
    """

    operators = frozenset(("Slice",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        stated = StatedSlice.of(node)
        if stated is None or any(step != 1 for step in stated.steps):
            return None
        places: list[tuple[int | Value, int | Value]] = []
        for start, end, axis in zip(stated.starts, stated.ends, stated.axes, strict=True):
            is_open = end >= _OPEN_END
            if stated.dims[axis] is not None or (start == 0 and is_open):
                places.append((start, end))
                continue
            size = op.Gather(op.Shape(stated.x), [axis % len(stated.dims)], axis=0)
            begin = start and _within(op, start, size)
            close = _END if is_open else _within(op, end, size)
            if start and not is_open and ((start < 0) != (end < 0) or end < start):  # the start may be after the end
                close = op.Max(close, begin)
            places.append((begin, close))
        if places == list(zip(stated.starts, stated.ends, strict=True)):
            return None
        return [op.Slice(stated.x, *(_joined(op, one) for one in zip(*places, strict=True)), *node.inputs[3:])]


_OPEN_END = 2**31 - 1
"""The smallest number that represents the end of an axis."""
_END = 2**63 - 1


def _within(op: Builder, place: int, size: Value) -> Value:
    """Return a place from the beginning of an axis, which is not beyond it, as one element."""
    return cast(Value, op.Min([place], size) if place >= 0 else op.Max(op.Add(size, [place]), [0]))


def _joined(op: Builder, places: Sequence[int | Value]) -> Value:
    """Return numbers and single elements as one vector."""
    parts = [place if isinstance(place, Value) else op.const(np.array([place], np.int64)) for place in places]
    return parts[0] if len(parts) == 1 else cast(Value, op.Concat(*parts, axis=0))


class CountedOutputs(InPlacePass):
    """Compute an output of 64-bit integers from its absolute values and signs.

    tract (0.23) stores such integers as symbolic expressions, except for absolute values, and its API cannot return symbolic
    expressions.
    """

    def call(self, model: ir.Model) -> PassResult:
        graph = model.graph
        found = [index for index, value in enumerate(graph.outputs) if value.producer() and _may_be_size(value)]
        names, op = (Names.of(graph), Builder.of_existing(graph)) if found else (Names(), None)
        for index in found:
            value = graph.outputs[index]
            assert op is not None and value.name is not None
            name, value.name = value.name, names.unique(f"{value.name}_sizes")
            zero = op.const([0] if value.shape else 0)
            size = op.Abs(value)
            result = op.place(op.Where(op.Less(value, zero), op.Neg(size), size))
            result.name, result.shape = name, value.shape
            graph.outputs[index] = result
        return PassResult(model, modified=bool(found))


def _may_be_size(value: ir.Value) -> bool:
    """Return whether 64-bit integers are computed from casts to 64 bits, or from shapes."""
    if value.dtype != ir.DataType.INT64 or constant_array(value) is not None:
        return False
    pending, seen = [value], {value}
    while pending:
        node = pending.pop().producer()
        if node is None:
            continue
        if node.op_type in ("Cast", "Shape", "Size"):
            return True
        more = [one for one in node.inputs if one is not None and one.dtype == ir.DataType.INT64 and one not in seen]
        pending += more
        seen |= set(more)
    return False
