"""Recurrent nodes of empty batches and sequences.

ONNX Runtime (1.32) divides by the batch size in GRU and LSTM and crashes if it is 0. With no steps, GRU ends the process,
and the others return zeros as their last states instead of the initial states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


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
