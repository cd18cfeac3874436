"""Recurrent nodes of empty batches and sequences, of NaN, and of infinite data.

ONNX Runtime (1.32) divides by the batch size in GRU and LSTM and crashes if it is 0. Without steps, GRU crashes, and LSTM
and RNN return zeros as their last states instead of the initial states. The activation functions of GRU and LSTM return a
number for NaN, so NaN and infinities in the data or states lead to numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.onnxruntime.recurrent_steps import emit_steps, has_steps, in_float32, inside
from converters.passes.recurrent_nodes import BACKWARD, functions_of
from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array


class EmptySequences(KernelWorkaround):
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


class NaNOfSequences(KernelWorkaround):
    """Make the results of GRU and LSTM NaN where a NaN or an infinity among the data and states makes them NaN.

    An If computes the steps of data and states that are not finite again, with other operators. An infinity gives NaN if the
    weights make infinities of both signs of it, or if a gate of 0 multiplies it.

    Conditions: float32 or float16. A NaN stays with ``clip``, too, which has no result for it.

    Args:
        branches: whether there is an If. Without it, all states are NaN from the first NaN of a sequence on, and if an
            initial state has one; infinities are not considered.
    """

    operators = frozenset(("GRU", "LSTM"))

    def __init__(self, *, branches: bool = True) -> None:
        super().__init__()
        self.branches = branches

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, attributes = cast(Value, node.inputs[0]), attributes_of(node)
        is_wanted = [bool(value.uses()) or value.is_graph_output() for value in node.outputs]
        if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16) or attributes.get("layout") or not any(is_wanted):
            return None
        weights = cast(Value, node.inputs[1])
        size = next((value.dims[2] for value in (x, weights) if value.dims is not None and value.dims[2] is not None), None)
        has_branches = self.branches and has_steps(node)
        if size is None and not has_branches:
            return None
        results = op.node(node.op_type, *node.inputs, outputs=len(node.outputs), **attributes)
        found = list(results) if isinstance(results, tuple) else [results]
        given = [cast(Value | None, value) for value in node.inputs[5:7]]
        states = [value for value in given if value is not None and not _is_finite(value)]
        if has_branches:
            return _with_nan_of_steps(op, node, found, is_wanted, states)
        return _with_nan_of_inputs(op, node, found, is_wanted, states, size or 0)


def _with_nan_of_steps(
    op: Builder, node: ir.Node, results: Sequence[Value], is_wanted: Sequence[bool], states: Sequence[Value]
) -> list[Value]:
    """Return the results of a recurrent node, NaN where those of its steps are if data or states are not finite.

    Args:
        op: the builder.
        node: the original node.
        results: the results of its copy.
        is_wanted: which of them have consumers.
        states: the initial states that may be infinite or NaN.
    """
    wanted = [value for value, one in zip(results, is_wanted, strict=True) if one]

    def with_nan(op: Builder) -> list[Value]:
        steps = [value for value, one in zip(emit_steps(op, node), is_wanted, strict=False) if one]
        if "Relu" in (functions_of(node) or [()])[0]:  # states may be infinite
            return [op.CastLike(step, value) for step, value in zip(steps, wanted, strict=True)]
        nan = op.const(np.nan, wanted[0].dtype)
        return [op.Where(op.IsNaN(step), nan, value) for step, value in zip(steps, wanted, strict=True)]

    # ONNX Runtime (1.32) may fuse a MatMul with the Transpose before it, and crashes if a Cast is between them.
    sums = [op.ReduceSum(op.Sub(value, value), keepdims=0) for value in (cast(Value, node.inputs[0]), *states)]
    is_special = op.IsNaN(reduce(op.Add, sums))
    found = op.if_(is_special, with_nan, lambda op: [op.Identity(value) for value in wanted])
    replaced = iter(found if isinstance(found, (tuple, list)) else [found])
    return [next(replaced) if one else value for value, one in zip(results, is_wanted, strict=True)]


def _with_nan_of_inputs(
    op: Builder, node: ir.Node, results: list[Value], is_wanted: Sequence[bool], states: Sequence[Value], inputs: int
) -> list[Value]:
    """Return the results of a recurrent node, NaN from the first NaN of a sequence on, and if an initial state has one.

    The product of numbers between -1 and 1 and zeros is 0, or NaN if one of them is NaN. A step of a sequence affects all
    elements of the later ones, and those beyond its length none.

    Args:
        op, node, results, is_wanted: see `_with_nan_of_steps`.
        states: the initial states that may be NaN.
        inputs: the number of elements of a step's data.
    """
    x, attributes = cast(Value, node.inputs[0]), attributes_of(node)
    lengths = cast(Value | None, node.inputs[4] if len(node.inputs) > 4 else None)
    direction = attributes.get("direction", "forward")
    vectors, of_steps, size = list(states), None, len(states) * attributes["hidden_size"]
    valid = None if lengths is None else inside(op, x, lengths)
    if x.dims is not None and x.dims[0] == 1 and direction != "bidirectional" and lengths is None:
        vectors.insert(0, x)
        size += inputs
    else:
        of_steps = _nan(op, inputs, x)
        if valid is not None:
            of_steps = op.Where(valid, of_steps, np.float32(0))
    initial = _nan(op, size, *vectors) if vectors else None
    found = list(results)
    if is_wanted[0]:
        parts = [initial] if initial is not None else []
        if of_steps is not None:
            sums = [op.Unsqueeze(op.CumSum(of_steps, 0, reverse=int(one)), [1]) for one in BACKWARD[direction]]
            parts.append(op.Concat(*sums, axis=1) if len(sums) > 1 else sums[0])
        every = reduce(op.Add, parts)
        if valid is not None:
            every = op.Where(op.Unsqueeze(valid, [1]), every, np.float32(0))
        found[0] = op.Add(found[0], op.CastLike(every, found[0]))
    if any(is_wanted[1:]):
        parts = [initial] if initial is not None else []
        if of_steps is not None:
            parts.append(op.ReduceSum(of_steps, [0], keepdims=0))
        last = op.CastLike(reduce(op.Add, parts), found[0])
        found[1:] = [op.Add(value, last) if one else value for value, one in zip(found[1:], is_wanted[1:], strict=True)]
    return found


def _is_finite(value: Value) -> bool:
    """Return whether a value is a constant of numbers, perhaps repeated."""
    node = value.producer()
    if node is not None and not node.domain and node.op_type == "Expand":
        value = cast(Value, node.inputs[0])
    numbers = constant_array(value)
    return numbers is not None and bool(np.isfinite(numbers).all())


def _nan(op: Builder, size: int, *values: Value) -> Value:
    """Return 0 for each vector of numbers in the last dimension of the values, of ``size`` together, and NaN for others.

    The result is float32, because CumSum of older opsets has no float16.
    """
    joined = op.Concat(*values, axis=2) if len(values) > 1 else values[0]
    zeros = op.const(np.zeros((size, 1)), joined.dtype)
    return cast(
        Value, in_float32(op, op.MatMul(op.Clip(joined, op.const(-1, joined.dtype), op.const(1, joined.dtype)), zeros))
    )
