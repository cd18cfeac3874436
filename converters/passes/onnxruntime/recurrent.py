"""Recurrent nodes of empty batches and sequences, and of NaN.

ONNX Runtime (1.32) divides by the batch size in GRU and LSTM and crashes if it is 0. With no steps, GRU ends the process,
and the others return zeros as their last states instead of the initial states. The activations of GRU and LSTM give a number
for NaN, so a NaN in the data or in a state gives numbers.
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
    """Add NaN to the results of GRU and LSTM from the first NaN of a sequence on, and if an initial state has one.

    The product of numbers between -1 and 1 and zeros is 0, or NaN if one of them is NaN. A step of a sequence affects all
    elements of the later ones, and those beyond its length none.

    Conditions: float32, and no ``clip``, which has no result for NaN.
    """

    operators = frozenset(("GRU", "LSTM"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, attributes = cast(Value, node.inputs[0]), attributes_of(node)
        lengths, *given = [cast(Value | None, value) for value in (*node.inputs, *[None] * 7)[4:7]]
        states = [value for value in given if value is not None and not _is_finite(value)]
        is_wanted = [bool(value.uses()) or value.is_graph_output() for value in node.outputs]
        if x.dtype != ir.DataType.FLOAT or attributes.get("clip") or attributes.get("layout") or not any(is_wanted):
            return None
        sizes = [value.dims[2] if value.dims is not None else None for value in (x, *states)]
        if None in sizes:
            return None
        results = op.node(node.op_type, *node.inputs, outputs=len(node.outputs), **attributes)
        found = list(results) if isinstance(results, tuple) else [results]
        direction = attributes.get("direction", "forward")
        is_single = x.dims is not None and x.dims[0] == 1 and direction != "bidirectional" and lengths is None
        vectors = [x, *states] if is_single else states
        initial, of_steps = _nan(op, *vectors) if vectors else None, None if is_single else _nan(op, x)
        inside = None if lengths is None else _inside(op, x, lengths)
        if inside is not None and of_steps is not None:
            of_steps = op.Where(inside, of_steps, np.float32(0))
        if is_wanted[0]:
            parts = [initial] if initial is not None else []
            if of_steps is not None:
                backward = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}[direction]
                sums = [op.Unsqueeze(op.CumSum(of_steps, 0, reverse=one), [1]) for one in backward]
                parts.append(op.Concat(*sums, axis=1) if len(sums) > 1 else sums[0])
            every = reduce(op.Add, parts)
            if inside is not None:
                every = op.Where(op.Unsqueeze(inside, [1]), every, np.float32(0))
            found[0] = op.Add(found[0], every)
        if any(is_wanted[1:]):
            parts = [initial] if initial is not None else []
            if of_steps is not None:
                parts.append(op.ReduceSum(of_steps, [0], keepdims=0))
            last = reduce(op.Add, parts)
            found[1:] = [op.Add(value, last) if one else value for value, one in zip(found[1:], is_wanted[1:], strict=True)]
        return found


def _is_finite(value: Value) -> bool:
    """Return whether a value is a constant of numbers, perhaps repeated."""
    node = value.producer()
    if node is not None and not node.domain and node.op_type == "Expand":
        value = cast(Value, node.inputs[0])
    numbers = constant_array(value)
    return numbers is not None and bool(np.isfinite(numbers).all())


def _nan(op: Builder, *values: Value) -> Value:
    """Return 0 for each vector of numbers in the last dimension of the values, and NaN for others."""
    joined = op.Concat(*values, axis=2) if len(values) > 1 else values[0]
    size = sum(value.dims[2] or 0 for value in values if value.dims is not None)
    return cast(Value, op.MatMul(op.Clip(joined, np.float32(-1), np.float32(1)), op.const(np.zeros((size, 1), np.float32))))


def _inside(op: Builder, x: Value, lengths: Value) -> Value:
    """Return which steps are within the lengths of the sequences, ``[steps, batch, 1]``."""
    steps = op.Unsqueeze(op.Range(0, op.Gather(op.Shape(x), 0), 1), [1])
    return cast(Value, op.Unsqueeze(op.Less(steps, op.Cast(lengths, to=ir.DataType.INT64)), [2]))
