"""Convolutions of volumes by the domain's VolumeConv."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import ConvolveVolumes, fusion_guards
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

DIMS = (2, 4, 5, 6, 7)
OURS, CONV = ["VolumeConv"], ["Conv"]


def numbers(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def convolution(kernel: tuple[int, ...] = (3, 3, 3), into: int = 4, out: int = 6, bias: bool = False, **stated: Any) -> Any:
    """Return a function that emits a convolution."""
    given = [numbers(out, into, *kernel), numbers(out, seed=1)] if bias else [numbers(out, into, *kernel)]
    return lambda op, x: op.Conv(x, *given, **stated)


def by_pass(emit: Any, *inputs: Value, **options: Any) -> list[str]:
    return rewritten(emit, *inputs, by=[ConvolveVolumes()], atol=1e-4, **options)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (convolution(), OURS),
        (convolution(bias=True, pads=[1, 0, 2, 0, 1, 0], strides=[2, 1, 3], dilations=[1, 2, 1]), OURS),
        (convolution(kernel=(3, 1, 1), kernel_shape=[3, 1, 1]), OURS),
        (convolution(kernel=(1, 1, 1), strides=[1, 1, 2]), OURS),
        (convolution(kernel=(1, 1, 1), strides=[1, 1, 1]), CONV),  # a matrix product
        (convolution(kernel=(1, 1, 1)), CONV),
        (convolution(into=2, group=2), OURS),
        (convolution(auto_pad="NOTSET"), OURS),
        (convolution(auto_pad="SAME_UPPER"), CONV),
    ],
)
def test_conditions(emit: Any, found: list[str]) -> None:
    assert by_pass(emit, floats("x", *DIMS)) == found


def test_unknown_dimensions() -> None:
    assert by_pass(convolution(), floats("x", None, 4, None, 6, None)) == OURS


def test_unknown_weights() -> None:
    def emit(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.Conv(x, weights)
        return result

    assert by_pass(emit, floats("x", *DIMS), floats("weights", 6, 4, 3, 3, 3)) == OURS
    unknown = graph(emit, floats("x", *DIMS), floats("weights", 6, 4, 3, 3, None))
    assert not ConvolveVolumes()(unknown).modified
    without = graph(emit, floats("x", *DIMS), new_value(ir.DataType.FLOAT, None, "weights"))
    assert not ConvolveVolumes()(without).modified


def test_16_bits_and_images_stay() -> None:
    def emit(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.Conv(x, weights)
        return result

    halves = graph(
        emit, *(new_value(ir.DataType.FLOAT16, dims, name) for name, dims in (("x", DIMS), ("w", [6, 4, 3, 3, 3])))
    )
    assert not ConvolveVolumes()(halves).modified
    assert by_pass(convolution(kernel=(3, 3)), floats("x", 1, 4, 6, 7)) == CONV


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Relu(x), OURS),
        (lambda op, x: op.LeakyRelu(x, alpha=0.3), OURS),
        (lambda op, x: op.LeakyRelu(x), OURS),
        (lambda op, x: op.LeakyRelu(op.Relu(x), alpha=0.3), ["LeakyRelu", *OURS]),  # one activation
        (lambda op, x: op.Sigmoid(x), ["Sigmoid", *OURS]),
        (lambda op, x: op.Mul(x, op.Relu(x)), ["Mul", "Relu", *OURS]),  # another consumer
    ],
)
def test_activations(emit: Any, found: list[str]) -> None:
    assert by_pass(lambda op, x: emit(op, convolution(bias=True)(op, x)), floats("x", *DIMS)) == found


@pytest.mark.parametrize(("opset", "found"), [(20, False), (21, True)])
def test_opsets(opset: int, found: bool) -> None:
    """The plugin's kernels do not apply to older ones."""
    assert any(isinstance(step, ConvolveVolumes) for step in fusion_guards(opset)) is found
