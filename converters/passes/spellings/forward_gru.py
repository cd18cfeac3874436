"""GRU in the only form that OpenCV 4 supports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array


class ForwardGRU(Workaround):
    """Convert a bidirectional GRU to two forward ones, and take its last states from its outputs.

    OpenCV (4.14.0) does not return the last states of a GRU, and concatenates the directions of a bidirectional GRU. A GRU
    with parameters of activation functions is not changed.
    """

    operators = frozenset(("GRU",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        attributes = attributes_of(node)
        inputs = [*node.inputs, *[None] * (6 - len(node.inputs))]
        x = inputs[0]
        if not isinstance(x, Value) or not x.is_static or not x.dims or inputs[4] is not None:
            return None
        direction = attributes.pop("direction", "forward")
        last = node.outputs[1] if len(node.outputs) > 1 else None
        used = last is not None and (last.uses() or last.is_graph_output())
        if direction == "reverse" or (direction == "forward" and not used):
            return None
        if "activation_alpha" in attributes or "activation_beta" in attributes:
            return None
        arrays = [constant_array(value) for value in inputs[1:4]]
        initial = constant_array(inputs[5])
        weights, recurrent, bias = arrays
        if weights is None or recurrent is None or (inputs[3] is not None and bias is None):
            return None
        if inputs[5] is not None and initial is None:
            return None
        steps, batch = (dim or 0 for dim in x.dims[:2])
        hidden = recurrent.shape[-1]
        functions = attributes.pop("activations", None)
        outputs, states = [], []
        for k in range(len(weights)):
            own = dict(attributes, activations=functions[2 * k : 2 * k + 2]) if functions else attributes
            given = x if k == 0 else op.Gather(x, op.const(np.arange(steps - 1, -1, -1)), axis=0)
            start = np.zeros((1, batch, hidden), weights.dtype) if initial is None else initial[k : k + 1]
            b = np.zeros((1, 6 * hidden), weights.dtype) if bias is None else bias[k : k + 1]
            constants = [op.const(array) for array in (weights[k : k + 1], recurrent[k : k + 1], b)]
            y, _ = op.GRU(given, *constants, None, op.const(start), **own, outputs=2)
            states.append(op.Reshape(op.Slice(y, [steps - 1], [steps], [0]), [1, batch, hidden]))
            outputs.append(y if k == 0 else op.Gather(y, op.const(np.arange(steps - 1, -1, -1)), axis=0))
        whole = outputs[0] if len(outputs) == 1 else op.Concat(*outputs, axis=1)
        final = states[0] if len(states) == 1 else op.Concat(*states, axis=0)
        return [whole, final][: len(node.outputs)]
