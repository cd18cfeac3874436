"""GRU and LSTM of NaN, of targets whose files ONNX Runtime's CPU provider may compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from converters.options import TargetName
from converters.passes.spellings import SPELLINGS
from converters.targets import TARGETS
from converters.targets.fitting import unsupported_by
from tests.converters.passes.graphs import floats, graph, operators

STEPS, BATCH, SIZE, HIDDEN = 4, 2, 3, 2


def _sequence(kind: str, lengths: list[int]) -> ov.Model:
    rng = np.random.default_rng(0)
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[kind]
    weights = [rng.standard_normal((1, gates * HIDDEN, size)).astype(np.float32) for size in (SIZE, HIDDEN)]
    x = ops.parameter([BATCH, STEPS, SIZE], np.float32, name="x")
    zero = ops.constant(np.zeros((BATCH, 1, HIDDEN), np.float32))
    rest = (
        ops.constant(np.array(lengths, np.int64)),
        *weights,
        np.zeros((1, gates * HIDDEN), np.float32),
        HIDDEN,
        "forward",
    )
    match kind:
        case "GRU":
            layer = ops.gru_sequence(x, zero, *rest)
        case "LSTM":
            layer = ops.lstm_sequence(x, zero, zero, *rest)
        case _:
            layer = ops.rnn_sequence(x, zero, *rest)
    return ov.Model([layer.output(0), layer.output(1)], [x])


@pytest.mark.parametrize("target", ["standard", "directml"])
@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("lengths", [[STEPS, STEPS], [STEPS, 2]])
def test_nan_of_a_step(kind: str, lengths: list[int], target: TargetName) -> None:
    model = _sequence(kind, lengths)
    numbers = np.random.default_rng(1).standard_normal((BATCH, STEPS, SIZE)).astype(np.float32)
    numbers[0, 1, 2] = numbers[1, 2, 0] = np.nan  # the second is beyond a length of 2
    compiled = ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    wanted = list(compiled(numbers).values())
    assert np.isnan(wanted[0][0, 0, 1:]).all() and np.isnan(wanted[0][1]).any() == (lengths[1] == STEPS)
    converted = convert(model, target=target).model
    got = ort.InferenceSession(converted.SerializeToString()).run(None, {"x": numbers})
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("target", "kind", "emitted"),
    [
        ("standard", "GRU", "If"),
        ("standard", "LSTM", "If"),
        ("standard", "RNN", None),
        ("webgpu", "GRU", None),
        ("webgpu", "LSTM", None),
        ("coreml", "LSTM", "If"),
        ("qnn", "LSTM", None),  # the device computes them
        ("qnn", "GRU", None),
        ("directml", "LSTM", "CumSum"),
        ("directml", "RNN", None),
    ],
)
def test_only_the_kernels_that_lose_it(target: TargetName, kind: str, emitted: str | None) -> None:
    nodes = convert(_sequence(kind, [STEPS, STEPS]), target=target).report.nodes
    assert nodes[kind] == 1 and {"CumSum", "If"} & set(nodes) == ({emitted} if emitted else set())


@pytest.mark.parametrize("target", ["standard", "coreml"])
@pytest.mark.parametrize(
    ("numbers", "is_nan"),
    [([-np.inf, -np.inf, -np.inf], True), ([np.inf, -np.inf, np.inf], True), ([1, -np.inf, 1], False)],
)
@pytest.mark.parametrize("lengths", [[STEPS, STEPS], [2, STEPS]])
def test_infinite_data(target: TargetName, numbers: list[float], is_nan: bool, lengths: list[int]) -> None:
    model = _sequence("LSTM", lengths)
    x = np.random.default_rng(1).standard_normal((BATCH, STEPS, SIZE)).astype(np.float32)
    x[1, 1] = x[0, 3] = numbers  # the second is beyond a length of 2
    compiled = ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    wanted = list(compiled(x).values())
    assert np.isnan(wanted[0][1, 0, 1:]).any() == is_nan
    session = ort.InferenceSession(convert(model, target=target).model.SerializeToString())
    for one, other in zip(session.run(None, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("lengths", "attributes", "is_kept"),
    [
        (None, {}, False),
        ([STEPS, STEPS], {}, False),
        (None, {"direction": "reverse"}, False),
        (None, {"activations": ["Sigmoid", "Tanh", "Tanh"]}, False),
        ([STEPS, 2], {}, True),
        (None, {"clip": 0.5}, True),
        (None, {"input_forget": 1}, True),
        (None, {"activations": ["Sigmoid", "Relu", "Tanh"]}, True),
    ],
)
def test_lstm_that_the_device_lacks(lengths: list[int] | None, attributes: dict[str, Any], is_kept: bool) -> None:
    def emit(op, x):
        w, r = (op.const(np.ones((1, 4 * HIDDEN, size), np.float32)) for size in (SIZE, HIDDEN))
        counts = None if lengths is None else op.const(np.array(lengths, np.int32))
        return op.node("LSTM", x, w, r, None, counts, hidden_size=HIDDEN, outputs=1, **attributes)

    model = graph(emit, floats("x", STEPS, BATCH, SIZE))
    SPELLINGS["NaN of LSTM"]()(model)
    assert bool({"CumSum", "If"} & set(operators(model))) == is_kept


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize(("dtype", "is_kept"), [(ir.DataType.FLOAT, False), (ir.DataType.FLOAT16, True)])
def test_float16_that_the_device_lacks(kind: str, dtype: ir.DataType, is_kept: bool) -> None:
    def emit(op, x):
        gates = {"GRU": 3, "LSTM": 4}[kind]
        w, r = (op.const(np.ones((1, gates * HIDDEN, size)), dtype) for size in (SIZE, HIDDEN))
        return op.Cast(op.node(kind, op.Cast(x, to=dtype), w, r, hidden_size=HIDDEN, outputs=1), to=ir.DataType.FLOAT)

    model = graph(emit, floats("x", STEPS, BATCH, SIZE))
    SPELLINGS["NaN of float16"]()(model)
    assert ("If" in operators(model)) == is_kept


@pytest.mark.parametrize(
    ("functions", "dtype", "is_rejected"),
    [
        (None, ir.DataType.FLOAT, False),
        (["Relu", "Tanh"], ir.DataType.FLOAT, False),
        (["sigmoid", "TANH"], ir.DataType.FLOAT, False),
        (["HardSigmoid", "Tanh"], ir.DataType.FLOAT, True),
        (["HardSigmoid", "Tanh"], ir.DataType.FLOAT16, False),  # the CPU computes it
    ],
)
def test_functions_that_the_device_lacks(functions: list[str] | None, dtype: ir.DataType, is_rejected: bool) -> None:
    def emit(op, x):
        w, r = (op.const(np.ones((1, 3 * HIDDEN, size)), dtype) for size in (SIZE, HIDDEN))
        attributes = {} if functions is None else {"activations": functions}
        return op.Cast(
            op.node("GRU", op.Cast(x, to=dtype), w, r, hidden_size=HIDDEN, outputs=1, **attributes), to=ir.DataType.FLOAT
        )

    untaken = [item.operator for item in unsupported_by(graph(emit, floats("x", STEPS, BATCH, SIZE)), TARGETS["webgpu"])]
    assert untaken == ["GRU"] * is_rejected
