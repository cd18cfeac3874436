"""ONNX Runtime recognises normalizations by the root of the mean of squares, however OpenVINO spells them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import FORMS, converted, optimised

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
def test_what_is_none(options, oracle: Oracle, tmp_path: Path) -> None:
    converted(_model([2, 5, 8], "power", "one-by", **options), [X], oracle, tmp_path)
    assert "SimplifiedLayerNormalization" not in optimised(tmp_path / "model.onnx")
