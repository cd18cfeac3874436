"""Forms that Qualcomm's HTP computes more precisely."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import producer_of

_LOWEST = -60000.0
"""A number of float16 whose Sigmoid is 0."""


class SeparateSigmoid(Workaround):
    """Limit the input of a Sigmoid after a Conv to numbers above -60,000, whose Sigmoid is 0.

    QNN's HTP (2.7) fuses Conv and Sigmoid, and the result differs by up to 0.005. With the Max between them, it does not.
    """

    operators = frozenset(("Sigmoid",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x,) = node.inputs
        if not isinstance(x, Value) or x.dtype is None or producer_of(x, "Conv") is None:
            return None
        return [op.Sigmoid(op.Max(x, op.const(_LOWEST, x.dtype)))]
