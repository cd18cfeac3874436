"""Evaluation of parts of a graph."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.attention.probing import Probe, ProbeError
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import graph


@pytest.mark.parametrize(("target", "found"), [((1, 1 << 20, 1 << 20), True), ((1 << 20, 3, 1 << 20), False)])
def test_expand_needs_no_memory(target: tuple[int, ...], found: bool) -> None:
    data, shape = (ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT)) for name in ("data", "shape"))
    expanded = ir.node("Expand", [data, shape]).outputs[0]
    expanded.name = "expanded"
    probe = Probe({data: np.ones((2, 1, 1), np.float32), shape: np.array(target)})
    if found:
        assert probe.array(expanded).shape == (2, *target[1:]) and not probe.array(expanded).strides[1]
    else:
        with pytest.raises(ProbeError, match="broadcast"):
            probe.array(expanded)


@pytest.mark.parametrize("count", [1, 40, 1500])
def test_large_constants_of_many_steps(count: int) -> None:
    """They are computed on demand, without recursion, and each once."""
    numbers = np.arange(6000, dtype=np.float32)

    def emit(op: Builder) -> Value:
        value = op.const(numbers)
        for _ in range(count):
            value = op.Max(value, op.Neg(value))
        return value

    (result,) = graph(emit).graph.outputs
    np.testing.assert_array_equal(Probe({}).array(result), numbers, strict=True)
