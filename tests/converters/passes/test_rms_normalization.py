"""ONNX Runtime recognizes RMS normalization in all of OpenVINO's spellings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.passes.rms_normalization import CanonicalizeRMSNormalization
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import FORMS, converted, optimised
from tests.converters.passes.graphs import floats, graph, rewritten

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((2, 5, 8)) * 3).astype(np.float32)
SCALE = RNG.standard_normal((1, 1, 8)).astype(np.float32)
SQUARES = {
    "power": lambda ops, x: ops.power(x, ops.constant(np.float32([[[2]]]))),
    "product": lambda ops, x: ops.multiply(x, x),
}
NORMALS = {
    "one-by": lambda ops, x, s: ops.multiply(x, ops.divide(ops.constant(np.float32([[[1]]])), ops.sqrt(s))),
    "by-root": lambda ops, x, s: ops.divide(x, ops.sqrt(s)),
    "power": lambda ops, x, s: ops.multiply(ops.power(s, ops.constant(np.float32(-0.5))), x),
    "power-of-root": lambda ops, x, s: ops.multiply(x, ops.power(ops.sqrt(s), ops.constant(np.float32(-1)))),
}


def _model(shape: list[int], square: str, normal: str, *, axis: int = -1, scale: np.ndarray = SCALE):
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter(shape, np.float32)
    mean = ops.reduce_mean(SQUARES[square](ops, x), ops.constant([axis]), True)
    normalized = NORMALS[normal](ops, x, ops.add(mean, ops.constant(np.float32([[[1e-6]]]))))
    return ov.Model([ops.multiply(ops.constant(scale), normalized)], [x])


@pytest.mark.parametrize("square", SQUARES)
@pytest.mark.parametrize("normal", NORMALS)
def test_every_spelling(square: str, normal: str, oracle: Oracle, tmp_path: Path) -> None:
    converted(_model([-1, -1, 8], square, normal), [X], oracle, tmp_path)
    assert optimised(tmp_path / "model.onnx") == ["SimplifiedLayerNormalization"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form(form: str, oracle: Oracle, tmp_path: Path) -> None:
    converted(_model([2, 5, 8], "power", "one-by", axis=2), [X], oracle, tmp_path, form)
    assert "SimplifiedLayerNormalization" in optimised(tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "options",
    [{"axis": 1}, {"scale": np.float32([[[2]]])}, {"scale": np.ones((1, 5, 8), np.float32) * 2}],
    ids=["axis", "one-number", "many"],
)
def test_other_normalizations(options, oracle: Oracle, tmp_path: Path) -> None:
    converted(_model([2, 5, 8], "power", "one-by", **options), [X], oracle, tmp_path)
    assert "SimplifiedLayerNormalization" not in optimised(tmp_path / "model.onnx")


def _rms(op, x, scale=None, power: float = 2.0, epsilon=1e-5, axes: tuple[int, ...] = (-1,), keepdims: int = 1):
    mean = op.ReduceMean(op.Pow(x, power), list(axes), keepdims=keepdims)
    scale = op.const(np.linspace(1, 2, 6, dtype=np.float32)) if scale is None else scale
    return op.Mul(op.Mul(x, op.Reciprocal(op.Sqrt(op.Add(mean, epsilon)))), scale)


def _ones(*shape: int) -> np.ndarray:
    return np.linspace(1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, True),
        ({"axes": (2,)}, True),
        ({"epsilon": np.full((1, 1, 1), 1e-5, np.float32)}, True),
        ({"scale": _ones(1, 1, 6)}, True),
        ({"axes": (1,)}, False),  # as many rows as columns
        ({"axes": (1, 2)}, False),
        ({"power": 2.5}, False),
        ({"scale": _ones(1)}, False),
        ({"scale": _ones(6, 1)}, False),
        ({"scale": _ones(6, 6)}, False),
        ({"scale": _ones(1, 1, 1, 6)}, True),
        ({"epsilon": np.full((6, 1), 1e-5, np.float32)}, False),
        ({"epsilon": np.full((1, 1, 1, 1), 1e-5, np.float32)}, True),
    ],
    ids=str,
)
def test_conditions(options, found: bool) -> None:
    def emit(op, x):
        given = {name: op.const(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}
        return _rms(op, op.Abs(x), **given)

    got = rewritten(emit, floats("x", 2, 6, 6), by=[CanonicalizeRMSNormalization()])
    assert ("Reciprocal" not in got) is found


def test_a_scale_of_unknown_size_is_unchanged() -> None:
    model = graph(lambda op, x, scale: _rms(op, x, scale), floats("x", 2, None), floats("scale", None))
    assert not CanonicalizeRMSNormalization()(model).modified


@pytest.mark.parametrize(
    ("epsilon", "scale", "found"),
    [
        ((), (8,), False),
        ((1, 1, 1), (1, 1, 8), False),
        ((1, 1, 1, 1), (8,), True),
        ((), (1, 1, 1, 1, 8), True),
        ((1, 1, 1, 1), (2, 1, 1, 8), False),  # more than a vector
    ],
)
def test_dimensions_that_constants_add(epsilon: tuple[int, ...], scale: tuple[int, ...], found: bool) -> None:
    """ONNX Runtime's fusion gives the result the rank of x."""

    def emit(op, x):
        mean = op.ReduceMean(op.Pow(x, 2.0), [-1])
        root = op.Sqrt(op.Add(mean, np.full(epsilon, 1e-5, np.float32)))
        return op.Mul(op.Div(x, root), np.full(scale, 1.5, np.float32))

    after = rewritten(emit, floats("x", 2, 3, 8), by=[CanonicalizeRMSNormalization()], optimized=True)
    assert ("Unsqueeze" in after) is found
