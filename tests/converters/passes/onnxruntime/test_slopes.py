"""PRelu with constant slopes, in operators that ONNX Runtime computes more quickly."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

from converters.passes.onnxruntime import PReluByProducts
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten

MIXED = np.float32([0.25, 1, 1e-30, -2]).reshape(4, 1, 1)
TO_ZERO, TO_MORE = (np.float32([0.25, last, 1, -2]).reshape(4, 1, 1) for last in (0, 1.5))


@pytest.mark.parametrize(
    ("slope", "found"),
    [
        (MIXED, ["Max", "Mul"]),
        (MIXED.reshape(1, 4, 1, 1), ["Max", "Mul"]),
        (TO_ZERO, ["Add", "Min", "Mul", "Relu"]),
        (TO_MORE, ["Add", "Min", "Mul", "Relu"]),
        (np.full((4, 1, 1), 0.25, np.float32), ["LeakyRelu"]),
        (np.float32([0.25]), ["LeakyRelu"]),
        (np.float32(0), ["LeakyRelu"]),
        (np.float32([[[0.25]], [[np.inf]], [[1]], [[0.5]]]), ["PRelu"]),
        (np.float32([[[0.25]], [[np.nan]], [[1]], [[0.5]]]), ["PRelu"]),
    ],
    ids=str,
)
def test_conditions(slope: np.ndarray, found: list[str]) -> None:
    got = rewritten(lambda op, x: op.PRelu(x, slope), floats("x", 2, 4, 5, 3), by=[PReluByProducts()])
    assert sorted(got) == found


@pytest.mark.parametrize("slope", [MIXED, TO_ZERO, TO_MORE, np.float32(0), np.float32(-0.5), np.float32(3)], ids=str)
def test_numbers_are_equal(slope: np.ndarray) -> None:
    """Bit for bit, infinity and NaN included."""
    model = graph(lambda op, x: op.PRelu(x, slope), floats("x", 4, 4, 9, 3))
    before = ir.serde.serialize_model(model).SerializeToString()
    assert PReluByProducts()(model).modified
    after = ir.serde.serialize_model(model).SerializeToString()
    x = np.random.default_rng(0).standard_normal((4, 4, 9, 3)).astype(np.float32)
    x[0, :, :6, 0] = [np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, -1e-45]
    sessions = [ort.InferenceSession(bytes_, providers=["CPUExecutionProvider"]) for bytes_ in (before, after)]
    one, other = (session.run(None, {"x": x})[0] for session in sessions)
    np.testing.assert_array_equal(one, other, strict=True)


def test_slopes_at_run_time_and_16_bits_stay() -> None:
    """A slope that may be infinite, and numbers for GPUs."""
    models = [graph(lambda op, x, slope: op.PRelu(x, slope), floats("x", 2, 4), floats("slope", 4))]
    halves = new_value(ir.DataType.FLOAT16, [2, 4], "x")
    models.append(graph(lambda op, x: op.PRelu(x, np.float16([0.25, 0.5, 1, 0.1])), halves))
    assert not any(PReluByProducts()(model).modified for model in models)
