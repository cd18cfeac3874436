"""Random numbers without a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import attributes_of, constant_list


class UnseededRandomUniform(Workaround):
    """Generate random numbers without a seed with ONNX's RandomUniform, whose generator differs.

    The function body of the operator contains a generator with a Loop and bitwise operations, which most programs other
    than ONNX Runtime lack. OpenVINO (2026.4.1) has no RandomUniform of float64, which generates its key. Conditions: a
    constant shape and float32 numbers.
    """

    operators: ClassVar[frozenset[str]] = frozenset({"RandomUniform"})
    domain: ClassVar[str] = DOMAIN
    equal = False

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        shape, low, high = constant_list(node.inputs[0]), node.inputs[1], node.inputs[2]
        seeds = attributes_of(node)
        if shape is None or any(seeds.get(name, 0) for name in ("global_seed", "op_seed")):
            return None
        if not isinstance(low, Value) or not isinstance(high, Value) or low.dtype != ir.DataType.FLOAT:
            return None
        drawn = op.RandomUniform(shape=shape, dtype=ir.DataType.FLOAT.value, low=0.0, high=1.0)
        lowest, highest = (op.Reshape(value, op.const(np.zeros(0, np.int64))) for value in (low, high))
        return [op.Add(op.Mul(drawn, op.Sub(highest, lowest)), lowest)]
