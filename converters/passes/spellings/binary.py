"""Variadic Sum, Max, Min and Mean as binary operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value

_PAIRS = {"Sum": "Add", "Max": "Max", "Min": "Min"}


class BinaryOperators(Workaround):
    """Convert Sum to Add, and Max and Min of more than two tensors to binary operators, in the order of the inputs.

    OpenCV, MNN and WebGPU have only binary kernels, or no kernel for Sum.
    """

    operators = frozenset(_PAIRS)

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        if node.op_type != "Sum" and len(node.inputs) == 2:
            return None
        inputs = [cast(Value, value) for value in node.inputs]
        return [reduce(lambda a, b: op.node(_PAIRS[node.op_type], a, b), inputs)]
