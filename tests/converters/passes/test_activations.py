"""Activations in their fastest form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

from converters.openvino import convert
from converters.passes.activations import DecomposeLogSigmoid, DecomposeMish, FuseHardSigmoid, FuseHardSwish, FuseMish
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import FORMS, converted, operators
from tests.converters.passes.graphs import floats, graph, rewritten

LARGEST = np.finfo(np.float32).max
X = np.float32([*np.linspace(-30, 30, 601), -LARGEST, -104, -88, 88, 104, LARGEST, np.inf, 1e-30, -1e-30, 0])


@pytest.mark.parametrize("form", FORMS)
def test_mish(form: str, oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([-1], np.float32)
    found = operators(converted(ov.Model([ops.mish(x)], [x]), [X], oracle, tmp_path, form, rtol=1e-5, atol=1e-6))
    decomposed = ["Add", "Add", "Div", "Exp", "Min", "Mul", "Mul"]
    assert found == (decomposed if form.startswith("opset") else ["Elementwise"])


@pytest.mark.parametrize("form", FORMS)
def test_log_sigmoid(form: str, oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([-1], np.float32)
    gate = ops.sigmoid(x)
    # OpenVINO's CPU plugin returns -inf below -87, and Model.evaluate below -88.7.
    values = np.float32([*np.linspace(-86, 30, 601), -LARGEST, -104, -90, 88, 104, 1e-30, -1e-30, 0])
    model = ov.Model([ops.log(gate), ops.multiply(x, gate)], [x])
    found = operators(converted(model, [values], oracle, tmp_path, form, rtol=1e-5, atol=1e-6))
    assert found == ["Less", "Mul", "Neg", "Neg", "Sigmoid", "Softplus", "Where"]


@pytest.mark.parametrize("target", ["standard", "webgpu", "directml"])
def test_log_sigmoid_for_targets_in_onnx_runtime(target: str) -> None:
    """ONNX Runtime's Sigmoid on the CPU is 0 below -18."""
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([4], np.float32)
    values = np.float32([-80, -30, -1, 20])
    model = ov.Model([ops.log(ops.sigmoid(x))], [x])
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(values)[0]
    session = ort.InferenceSession(convert(model, target=target).model.SerializeToString())
    got = session.run(None, {session.get_inputs()[0].name: values})[0]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6, strict=True)


def _clipped(op, x, shift: float = 3.0, top: float = 6.0):
    return op.Clip(op.Add(x, shift), 0.0, top)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Div(_clipped(op, x), 6.0), ["HardSigmoid"]),
        (lambda op, x: op.Mul(_clipped(op, x), 1 / 6), ["HardSigmoid"]),
        (lambda op, x: op.Div(op.Min(op.Relu(op.Add(3.0, x)), 6.0), 6.0), ["HardSigmoid"]),
        (lambda op, x: op.Mul(op.Min(op.Max(op.Add(x, 3.0), 0.0), 6.0), 1 / 6), ["HardSigmoid"]),
        (lambda op, x: op.Mul(x, op.Div(_clipped(op, x), 6.0)), ["HardSwish"]),
        (lambda op, x: op.Div(op.Mul(x, _clipped(op, x)), 6.0), ["HardSwish"]),
        (lambda op, x: op.Mul(x, op.HardSigmoid(x, alpha=1 / 6, beta=0.5)), ["HardSwish"]),
        (lambda op, x: op.Mul(x, op.HardSigmoid(x)), None),  # a slope of 0.2
        (lambda op, x: op.Mul(x, op.HardSigmoid(x, alpha=1 / 6, beta=0.25)), None),
        # of another value
        (lambda op, x: op.Mul(op.HardSigmoid(x, alpha=1 / 6), op.HardSigmoid(op.Neg(x), alpha=1 / 6)), None),
        (lambda op, x: op.Div(_clipped(op, x), 5.0), None),
        (lambda op, x: op.Div(_clipped(op, x, shift=2.0), 6.0), None),
        (lambda op, x: op.Div(_clipped(op, x, top=5.0), 6.0), None),
        (lambda op, x: op.Mul(_clipped(op, x), 0.1669), None),
        (lambda op, x: op.Mul(_clipped(op, x), op.Neg(x)), None),
        (lambda op, x: op.Div(_clipped(op, x), op.const(np.full((1, 1, 1), 6, np.float32))), None),  # an extra dimension
        (lambda op, x: op.Div(op.const(np.float32(6)), _clipped(op, x)), None),
    ],
)
def test_conditions(emit, found: list[str] | None) -> None:
    numbers = np.linspace(-6, 6, 24, dtype=np.float32).reshape(4, 6)
    got = rewritten(emit, floats("x", 4, 6), by=[FuseHardSigmoid(), FuseHardSwish()], numbers=[numbers])
    assert got == found or (found is None and "HardSwish" not in got and ("HardSigmoid" not in got or "Mul" in got))


ENDS = [0, 1, 20, 21, 80, 88, 88.7, 88.8, 200, 1e-30]
NUMBERS = np.array([sign * end for end in ENDS for sign in (1, -1)], np.float32)


def test_mish_of_any_shape() -> None:
    assert "Mish" not in rewritten(lambda op, x: op.Mish(x), floats("x", 20), by=[DecomposeMish()], numbers=[NUMBERS])
    assert not DecomposeMish()(graph(lambda op, x: op.Mish(op.Cast(x, to=ir.DataType.DOUBLE)), floats("x"))).modified


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Mish(x), (4, 32, 16), ["Elementwise"]),
        (lambda op, x: op.Mish(x), (2048,), ["Elementwise"]),
        (lambda op, x: op.Mish(x), ("batch", 32, 16), ["Elementwise"]),
        (lambda op, x: op.Add(op.Mish(x), x), (4, 32, 16), ["Add", "Elementwise"]),
        (lambda op, x: op.Mish(x), (2047,), ["Mish"]),
        (lambda op, x: op.Elu(x), (4, 32, 16), ["Elu"]),
        (lambda op, x: op.Gelu(x), (4, 32, 16), ["Gelu"]),
    ],
)
def test_mish_in_one_pass(emit, dims: tuple[int | str, ...], found: list[str]) -> None:
    sizes = [3 if isinstance(dim, str) else dim for dim in dims]
    numbers = (4 * np.random.default_rng(0).standard_normal(sizes)).astype(np.float32)
    numbers.reshape(-1)[: len(NUMBERS)] = NUMBERS
    assert rewritten(emit, floats("x", *dims), by=[FuseMish()], numbers=[numbers]) == found


def test_mish_of_doubles_stays() -> None:
    assert not FuseMish()(graph(lambda op, x: op.Mish(op.Cast(x, to=ir.DataType.DOUBLE)), floats("x", 4096))).modified


def test_the_logarithm_of_a_sigmoid() -> None:
    numbers = [NUMBERS[[0, 2, 3, 4, 6]]]
    assert "Softplus" in rewritten(
        lambda op, x: op.Log(op.Sigmoid(x)), floats("x", 5), by=[DecomposeLogSigmoid()], numbers=numbers
    )
    assert "Log" in rewritten(lambda op, x: op.Log(op.Add(op.Sigmoid(x), 1.0)), floats("x", 5), by=[DecomposeLogSigmoid()])
