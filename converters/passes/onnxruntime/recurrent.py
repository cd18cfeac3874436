"""Recurrent nodes of empty batches and sequences, of NaN, and of infinite data.

ONNX Runtime (1.32) divides by the batch size in GRU and LSTM and crashes if it is 0. With no steps, GRU ends the process,
and the others return zeros as their last states instead of the initial states. The activations of GRU and LSTM give a number
for NaN, so a NaN in the data or in a state gives numbers, and so do infinite data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array


class EmptySequences(Workaround):
    """Return the initial states with an If for recurrent nodes whose batch or number of steps may be 0."""

    operators = frozenset(("GRU", "LSTM", "RNN"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = cast(Value, node.inputs[0])
        axes = [axis for axis in range(1 if node.op_type == "RNN" else 2) if x.dims is None or not x.dims[axis]]
        if not axes:
            return None
        attributes = attributes_of(node)
        directions = 2 if attributes.get("direction") == "bidirectional" else 1

        def unchanged(op: Builder) -> list[Value]:
            state = op.Concat([directions], op.Shape(x, start=1, end=2), [attributes["hidden_size"]], axis=0)
            every = op.Concat(op.Shape(x, end=1), state, axis=0)
            given = [*node.inputs[5:7], None, None]
            zero = op.const(0, x.dtype)
            states = [op.Expand(zero if first is None else first, state) for first in given[: len(node.outputs) - 1]]
            return [op.Expand(zero, every), *states]

        def computed(op: Builder) -> Sequence[Value]:
            results = op.node(node.op_type, *node.inputs, outputs=len(node.outputs), **attributes)
            return results if isinstance(results, tuple) else (results,)

        sizes = [op.Shape(x, start=axis, end=axis + 1) for axis in axes]
        count = sizes[0] if len(sizes) == 1 else op.Mul(*sizes)
        results = op.if_(op.Equal(count, 0), unchanged, computed)
        return results if isinstance(results, (tuple, list)) else [results]


class NaNOfSequences(Workaround):
    """Make the results of GRU and LSTM NaN from the first NaN of a sequence on, and if an initial state has one.

    A NaN in the data or in a state is one, and so is the product of weights and infinite data, such as logarithms of 0, if
    infinities of both signs are added. An If computes these products only for data and hidden states that are not finite.

    The product of numbers between -1 and 1 and zeros is 0, or NaN if one of them is NaN. A step of a sequence affects all
    elements of the later ones, and those beyond its length none.

    Conditions: float32. A NaN stays with ``clip``, too, which has no result for it.

    Args:
        products: whether the products of infinite data and states are considered. Without them, there is no If.
    """

    operators = frozenset(("GRU", "LSTM"))

    def __init__(self, *, products: bool = True) -> None:
        super().__init__()
        self.products = products

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, attributes = cast(Value, node.inputs[0]), attributes_of(node)
        lengths, *given = [cast(Value | None, value) for value in (*node.inputs, *[None] * 7)[4:7]]
        states = [value for value in given if value is not None and not _is_finite(value)]
        is_wanted = [bool(value.uses()) or value.is_graph_output() for value in node.outputs]
        if x.dtype != ir.DataType.FLOAT or attributes.get("layout") or not any(is_wanted):
            return None
        weights = cast(Value, node.inputs[1])
        inputs = next(
            (value.dims[2] for value in (x, weights) if value.dims is not None and value.dims[2] is not None), None
        )
        if inputs is None and not self.products:
            return None
        results = op.node(node.op_type, *node.inputs, outputs=len(node.outputs), **attributes)
        found = list(results) if isinstance(results, tuple) else [results]
        direction = attributes.get("direction", "forward")
        is_single = x.dims is not None and x.dims[0] == 1 and direction != "bidirectional" and lengths is None
        vectors, of_steps, size = list(states), None, len(states) * attributes["hidden_size"]
        inside = None if lengths is None else _inside(op, x, lengths)
        if self.products:
            found = _with_nan_of_products(op, node, found, is_wanted, inside)
        elif is_single:
            vectors.insert(0, x)
            size += inputs or 0
        else:
            of_steps = _nan(op, inputs or 0, x)
            if inside is not None:
                of_steps = op.Where(inside, of_steps, np.float32(0))
        initial = _nan(op, size, *vectors) if vectors else None
        if is_wanted[0] and (initial is not None or of_steps is not None):
            parts = [initial] if initial is not None else []
            if of_steps is not None:
                sums = [op.Unsqueeze(op.CumSum(of_steps, 0, reverse=one), [1]) for one in _BACKWARD[direction]]
                parts.append(op.Concat(*sums, axis=1) if len(sums) > 1 else sums[0])
            every = reduce(op.Add, parts)
            if inside is not None:
                every = op.Where(op.Unsqueeze(inside, [1]), every, np.float32(0))
            found[0] = op.Add(found[0], every)
        if any(is_wanted[1:]) and (initial is not None or of_steps is not None):
            parts = [initial] if initial is not None else []
            if of_steps is not None:
                parts.append(op.ReduceSum(of_steps, [0], keepdims=0))
            last = reduce(op.Add, parts)
            found[1:] = [op.Add(value, last) if one else value for value, one in zip(found[1:], is_wanted[1:], strict=True)]
        return found


_BACKWARD = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}
"""Whether each direction begins at the last step."""


def _with_nan_of_products(
    op: Builder, node: ir.Node, results: Sequence[Value], is_wanted: Sequence[bool], inside: Value | None
) -> list[Value]:
    """Return the results of a recurrent node, NaN from the first step on whose product with the weights has a NaN.

    Args:
        op: the builder.
        node: the original node.
        results: the results of its copy.
        is_wanted: which of them have consumers.
        inside: which steps are within the lengths of the sequences, see `_inside`.
    """
    x, start = cast(Value, node.inputs[0]), _start(node)
    wanted = [value for value, one in zip(results, is_wanted, strict=True) if one]

    def with_nan(op: Builder) -> list[Value]:
        counts = _counts(op, node, inside)
        pairs = [(value, count) for value, count, one in zip(results, counts, is_wanted, strict=False) if one]
        return [op.Add(value, op.Where(op.Greater(count, _ZERO), np.float32(np.nan), _ZERO)) for value, count in pairs]

    # ONNX Runtime (1.32) may fuse a MatMul with the Transpose before it, and crashes if a Cast is between them.
    sums = [op.ReduceSum(op.Sub(value, value), keepdims=0) for value in (x, start) if value is not None]
    is_special = op.IsNaN(reduce(op.Add, sums))
    found = op.if_(is_special, with_nan, lambda op: [op.Identity(value) for value in wanted])
    replaced = iter(found if isinstance(found, (tuple, list)) else [found])
    return [next(replaced) if one else value for value, one in zip(results, is_wanted, strict=True)]


_ZERO = np.float32(0)


def _counts(op: Builder, node: ir.Node, inside: Value | None) -> list[Value]:
    """Return numbers above 0 for the elements of a recurrent node's results that are NaN because of products with x.

    A NaN of a gate affects the state's element of that gate, and in the next step all of them. That of a reset gate that is
    applied before the linear transformation affects all elements at once. That of an output gate does not affect the cell.
    """
    x, weights = (cast(Value, value) for value in node.inputs[:2])
    attributes = attributes_of(node)
    gates = {"GRU": 3, "LSTM": 4}[node.op_type]
    # ONNX Runtime would store transposed weights, and weights as the second operand, again.
    products = op.MatMul(weights, op.Transpose(op.Unsqueeze(x, [1]), perm=[0, 1, 3, 2]))
    found = op.Cast(op.IsNaN(op.Transpose(products, perm=[0, 1, 3, 2])), to=ir.DataType.FLOAT)
    if inside is not None:
        found = op.Where(op.Unsqueeze(inside, [1]), found, _ZERO)
    found = op.Reshape(found, [0, 0, 0, gates, attributes["hidden_size"]])
    second = op.ReduceSum(op.Slice(found, [1], [2], [3]), [3], keepdims=0)  # the reset or output gate
    hidden = op.ReduceSum(found, [3], keepdims=0)
    cell = op.Sub(hidden, second)
    if node.op_type == "GRU" and not attributes.get("linear_before_reset", 0):
        hidden = op.Add(hidden, op.ReduceSum(second, [3], keepdims=1))
    if (start := _start(node)) is not None:
        first = _first(op, node, inside)
        hidden, cell = (op.Add(a, op.Mul(first, b)) for a, b in zip((hidden, cell), _of_start(op, node, start), strict=True))
    steps = op.ReduceSum(hidden, [3], keepdims=1)
    backward = _BACKWARD[attributes.get("direction", "forward")]
    each = [op.Slice(steps, [k], [k + 1], [1]) for k in range(len(backward))] if len(backward) > 1 else [steps]
    sums = [op.CumSum(of, 0, exclusive=1, reverse=one) for of, one in zip(each, backward, strict=True)]
    before = op.Concat(*sums, axis=1) if len(sums) > 1 else sums[0]
    if inside is not None:
        before = op.Where(op.Unsqueeze(inside, [1]), before, _ZERO)
    every = op.Add(hidden, before)
    # The numbers of the last step are above 0 if those of any step are.
    return [every, op.ReduceSum(every, [0], keepdims=0), op.ReduceSum(op.Add(cell, before), [0], keepdims=0)]


def _start(node: ir.Node) -> Value | None:
    """Return the initial hidden state of a recurrent node.

    Returns:
        the state; ``None`` if it is known to be finite, or the functions are not the default ones, whose results are finite.
    """
    start = cast(Value | None, node.inputs[5] if len(node.inputs) > 5 else None)
    return None if start is None or _is_finite(start) or "activations" in node.attributes else start


def _first(op: Builder, node: ir.Node, inside: Value | None) -> Value:
    """Return 1 for the first step of each sequence, and 0 for others: ``[steps, directions, batch or 1, 1]``."""
    steps = op.Range(0, op.Gather(op.Shape(node.inputs[0]), 0), 1)
    ends = []
    for backward in _BACKWARD[attributes_of(node).get("direction", "forward")]:
        if not backward:
            place = op.const([0])
        elif inside is None:
            place = op.Sub(op.Shape(node.inputs[0], start=0, end=1), 1)
        else:
            place = op.Sub(op.ReduceSum(op.Cast(inside, to=ir.DataType.INT64), [0], keepdims=0), 1)  # [batch, 1]
        place = op.Reshape(place, [1, 1, -1, 1])
        ends.append(op.Equal(op.Unsqueeze(steps, [1, 2, 3]), place))
    if len(ends) > 1:
        batch = op.Shape(node.inputs[0], start=1, end=2)
        shape = op.Concat(op.Shape(steps), [1], batch, [1], axis=0)
        ends = [op.Expand(end, shape) for end in ends]
    return cast(Value, op.Cast(op.Concat(*ends, axis=1) if len(ends) > 1 else ends[0], to=ir.DataType.FLOAT))


def _of_start(op: Builder, node: ir.Node, start: Value) -> list[Value]:
    """Return 1 for the elements of the states that are NaN after the first step because of an infinite hidden state.

    Gates of an infinite state are infinite or NaN, whatever the data and biases are. Thus the step is computed without
    them. A state that is infinite after the first step has the same gates in all later steps.
    """
    attributes = attributes_of(node)
    size, recurrence = attributes["hidden_size"], node.inputs[2]

    def product(state: Value, begin: int, end: int) -> Value:
        rows = op.Slice(recurrence, [begin * size], [end * size], [1])
        return cast(Value, op.MatMul(state, op.Transpose(rows, perm=[0, 2, 1])))

    gates = {"GRU": 3, "LSTM": 4}[node.op_type]
    before = attributes.get("linear_before_reset", 0)
    parts = op.Split(product(start, 0, gates), [size] * gates, axis=2, outputs=gates)
    if "clip" in attributes:
        parts = [op.Clip(part, np.float32(-attributes["clip"]), np.float32(attributes["clip"])) for part in parts]
    if node.op_type == "LSTM":
        i, o, f, c = parts
        cell = op.Add(op.Sigmoid(f), op.Mul(op.Sigmoid(i), op.Tanh(c)))
        states = [op.Mul(op.Sigmoid(o), op.Tanh(cell)), cell]
    else:
        z, r = (op.Sigmoid(part) for part in parts[:2])
        new = op.Tanh(op.Mul(r, parts[2]) if before else product(op.Mul(r, start), 2, 3))
        states = [op.Add(new, op.Mul(z, op.Sub(start, new)))] * 2
    return [op.Cast(op.IsNaN(state), to=ir.DataType.FLOAT) for state in states]


def _is_finite(value: Value) -> bool:
    """Return whether a value is a constant of numbers, perhaps repeated."""
    node = value.producer()
    if node is not None and not node.domain and node.op_type == "Expand":
        value = cast(Value, node.inputs[0])
    numbers = constant_array(value)
    return numbers is not None and bool(np.isfinite(numbers).all())


def _nan(op: Builder, size: int, *values: Value) -> Value:
    """Return 0 for each vector of numbers in the last dimension of the values, of ``size`` together, and NaN for others."""
    joined = op.Concat(*values, axis=2) if len(values) > 1 else values[0]
    return cast(Value, op.MatMul(op.Clip(joined, np.float32(-1), np.float32(1)), op.const(np.zeros((size, 1), np.float32))))


def _inside(op: Builder, x: Value, lengths: Value) -> Value:
    """Return which steps are within the lengths of the sequences, ``[steps, batch, 1]``."""
    steps = op.Unsqueeze(op.Range(0, op.Gather(op.Shape(x), 0), 1), [1])
    return cast(Value, op.Unsqueeze(op.Less(steps, op.Cast(lengths, to=ir.DataType.INT64)), [2]))
