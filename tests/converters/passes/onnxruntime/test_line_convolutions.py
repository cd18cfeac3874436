"""Depthwise convolutions of one dimension as those of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import DepthwiseLines, fusion_guards
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

IMAGE, LINE = ["Conv", "Squeeze", "Unsqueeze"], ["Conv"]


def convolution(
    channels: int = 32, size: int = 5, per_group: int = 1, out: int = 0, bias: bool = False, **stated: Any
) -> Any:
    """Return a function that emits a convolution."""
    rng = np.random.default_rng(0)
    out = out or channels
    weights = rng.standard_normal((out, per_group, size)).astype(np.float32)
    given = [weights, rng.standard_normal(out).astype(np.float32)] if bias else [weights]
    return lambda op, x: op.Conv(x, *given, **{"group": channels // per_group} | stated)


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (convolution(), (2, 32, 20), IMAGE),
        (convolution(bias=True), (2, 32, None), IMAGE),
        (convolution(size=9, pads=[3, 5], strides=[2], dilations=[2], kernel_shape=[9]), (None, 32, 20), IMAGE),
        (convolution(auto_pad="NOTSET"), (2, 32, 20), IMAGE),
        (convolution(auto_pad="SAME_UPPER"), (2, 32, 20), LINE),
        (convolution(size=3), (2, 32, 20), IMAGE),
        (convolution(size=2), (2, 32, 20), LINE),
        (convolution(channels=20), (2, 20, 20), IMAGE),
        (convolution(channels=22), (2, 22, 20), LINE),
        (convolution(per_group=2), (2, 32, 20), LINE),
        (convolution(out=64), (2, 32, 20), LINE),  # two results for each channel
        (convolution(channels=16, per_group=16), (2, 16, 20), LINE),  # one group
    ],
)
def test_conditions(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    got = rewritten(emit, floats("x", *dims), by=[DepthwiseLines()], numbers=None if None not in dims else [given(dims)])
    assert sorted(set(got)) == found


def given(dims: tuple[int | None, ...]) -> np.ndarray:
    return np.random.default_rng(1).standard_normal([dim or 21 for dim in dims]).astype(np.float32)


def test_images_stay() -> None:
    weights = np.ones((32, 1, 5, 5), np.float32)
    assert rewritten(lambda op, x: op.Conv(x, weights, group=32), floats("x", 1, 32, 9, 9), by=[DepthwiseLines()]) == LINE


def test_unknown_weights_and_16_bits_stay() -> None:
    def emit(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.Conv(x, weights, group=32)
        return result

    unknown = graph(emit, floats("x", 1, 32, 20), floats("weights", 32, 1, None))
    halves = graph(
        emit, *(new_value(ir.DataType.FLOAT16, dims, name) for name, dims in (("x", [1, 32, 20]), ("w", [32, 1, 5])))
    )
    assert not DepthwiseLines()(unknown).modified
    assert not DepthwiseLines()(halves).modified


@pytest.mark.parametrize(("opset", "found"), [(11, False), (13, True), (21, True)])
def test_opsets(opset: int, found: bool) -> None:
    """Older ones have no axes as inputs."""
    assert any(isinstance(step, DepthwiseLines) for step in fusion_guards(opset)) is found
