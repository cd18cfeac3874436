"""GRU and LSTM of an empty batch: ONNX Runtime (1.31) divides by the batch size and crashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.onnxruntime.workaround import Workaround, attributes_of
from onnx_specops.building import Builder, Value


class EmptyBatches(Workaround):
    """GRU and LSTM with a batch that may be empty: an If returns zeros for an empty batch."""

    operators = frozenset(("GRU", "LSTM"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = cast(Value, node.inputs[0])
        if (x.dims is not None and x.dims[1]) or not isinstance(x, Value):
            return None
        attributes = attributes_of(node)
        batch = op.Shape(x, start=1, end=2)
        directions = 2 if attributes.get("direction") == "bidirectional" else 1

        def zeros(op: Builder) -> list[Value]:
            state = op.Concat([directions], batch, [attributes["hidden_size"]], axis=0)
            shapes = [op.Concat(op.Shape(x, end=1), state, axis=0), *[state] * (len(node.outputs) - 1)]
            return [op.Expand(op.const(0, x.dtype), shape) for shape in shapes]

        def computed(op: Builder) -> Sequence[Value]:
            return op.node(node.op_type, *node.inputs, outputs=len(node.outputs), **attributes)

        results: Sequence[Value] = op.if_(op.Equal(batch, 0), zeros, computed)
        return results
