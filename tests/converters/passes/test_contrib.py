"""ONNX Runtime's own operators in a converted model: with their bodies, or replaced by them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

from converters.passes.finish import finish
from onnx_specops.building import Builder, Value
from onnx_specops.domain import CONTRIB_DOMAIN
from onnx_specops.runtime.reference import reference_evaluator
from tests.converters.passes.graphs import floats, graph

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(3, 8)
BIAS = np.linspace(-1, 1, 8, dtype=np.float32)


def two_forms(op: Builder, x: Value) -> Value:
    """Emit two nodes of one operator whose bodies differ."""
    return op.contrib.FastGelu(op.contrib.FastGelu(x, op.const(BIAS)))


def finished(**options: object) -> onnx.ModelProto:
    model = graph(two_forms, floats("x", None, 8))
    finish(model, fold=True, **options)  # type: ignore[arg-type]
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def run(model: onnx.ModelProto) -> np.ndarray:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]


def expected() -> np.ndarray:
    y = X + BIAS
    for _ in range(2):
        y = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
    return y.astype(np.float32)


def test_nodes_have_bodies() -> None:
    model = finished()
    assert [node.domain for node in model.graph.node] == [CONTRIB_DOMAIN] * 2
    assert [(f.domain, f.overload) for f in model.functions] == [(CONTRIB_DOMAIN, ""), (CONTRIB_DOMAIN, "1")]
    assert not any(node.domain for function in model.functions for node in function.node)
    np.testing.assert_allclose(run(model), expected(), rtol=1e-5, atol=1e-6, strict=True)
    np.testing.assert_allclose(
        reference_evaluator(model).run(None, {"x": X})[0], expected(), rtol=1e-5, atol=1e-6, strict=True
    )


@pytest.mark.parametrize("options", [{"contrib": False}, {"opset": 13}, {"opset": 20}, {"contrib": False, "opset": 17}])
def test_nodes_are_replaced_by_their_bodies(options: dict[str, object]) -> None:
    model = finished(**options)
    assert not model.functions and {entry.domain for entry in model.opset_import} == {""}
    np.testing.assert_allclose(run(model), expected(), rtol=1e-5, atol=1e-6, strict=True)


def test_in_float16() -> None:
    model = finished(precision="float16")
    types = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    gelus = [node for node in model.graph.node if node.domain == CONTRIB_DOMAIN]
    assert len(gelus) == 2 and types[gelus[0].input[1]] == onnx.TensorProto.FLOAT16
    np.testing.assert_allclose(
        reference_evaluator(model).run(None, {"x": X})[0], expected(), rtol=1e-2, atol=1e-2, strict=True
    )
    without = finished(precision="float16", contrib=False)
    assert not any(node.domain for node in without.graph.node)
    np.testing.assert_allclose(run(without), expected(), rtol=1e-2, atol=1e-2, strict=True)
