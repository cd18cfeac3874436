"""Forms for ncnn, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.ncnn_forms import BiasedNormalization, ConvForSpaceToDepth, NormalizedLines
from tests.converters.passes.graphs import floats, graph, rewritten


@pytest.mark.parametrize(
    ("channels", "size", "found"),
    [(3, 2, ["Conv"]), (2, 3, ["Conv"]), (1, 2, ["SpaceToDepth"]), (None, 2, ["SpaceToDepth"])],
)
def test_space_to_depth(channels: int | None, size: int, found: list[str]) -> None:
    def emit(op, x):
        return op.SpaceToDepth(x, blocksize=size)

    assert rewritten(emit, floats("x", 2, channels, 6, 12), by=[ConvForSpaceToDepth()]) == found


def test_doubles_have_no_conv() -> None:
    def emit(op, x):
        return op.SpaceToDepth(op.Cast(x, to=ir.DataType.DOUBLE), blocksize=2)

    assert rewritten(emit, floats("x", 1, 3, 4, 4), by=[ConvForSpaceToDepth()]) == ["Cast", "SpaceToDepth"]


def _normal(axis: int, *dims: int, bias: bool = True, outputs: int = 1):
    def emit(op, x):
        factors = [np.linspace(k, 2, int(np.prod(dims)), dtype=np.float32).reshape(dims) for k in range(2 if bias else 1)]
        return op.LayerNormalization(x, *factors, axis=axis, epsilon=1e-3, outputs=outputs)

    return emit


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (_normal(-2, 3, 4), (2, 3, 4), ["LayerNormalization", "Reshape", "Reshape"]),
        (_normal(1, 3, 4, bias=False), (2, 3, 4), ["LayerNormalization", "Reshape", "Reshape"]),
        (_normal(0, 2, 3, 4), (2, 3, 4), ["LayerNormalization", "Reshape", "Reshape"]),
        (_normal(-1, 4), (2, 3, 4), ["LayerNormalization"]),
        (_normal(2, 4), (2, 3, 4), ["LayerNormalization"]),
        (_normal(-2, 4), (2, 3, 4), ["LayerNormalization"]),  # factors that broadcast
        (_normal(-2, 3, 4), (None, 3, 4), ["LayerNormalization"]),
        (_normal(-2, 3, 4, outputs=3), (2, 3, 4), ["LayerNormalization"]),
    ],
)
def test_lines(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[NormalizedLines()]) == found


@pytest.mark.parametrize(("bias", "outputs", "added"), [(False, 1, True), (False, 3, True), (True, 1, False)])
def test_normalizations_without_bias(bias: bool, outputs: int, added: bool) -> None:
    emit = _normal(-1, 4, bias=bias, outputs=outputs)
    assert rewritten(emit, floats("x", 2, 3, 4), by=[BiasedNormalization()]) == ["LayerNormalization"]
    assert BiasedNormalization()(graph(emit, floats("x", 2, 3, 4))).modified == added
