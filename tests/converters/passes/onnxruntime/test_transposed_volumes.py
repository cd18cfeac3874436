"""Transposed convolutions of volumes by the domain's VolumeConv."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import TransposedVolumes, fusion_guards
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten
from tests.converters.passes.onnxruntime.test_direct_convolutions import numbers

DIMS = (2, 3, 3, 4, 2)


def convolution(
    kernel: tuple[int, ...] = (2, 2, 2), out: int = 4, bias: bool = False, half: bool = False, **stated: Any
) -> Any:
    """Return a function that emits a transposed convolution."""
    weights, group = numbers(3, out, *kernel), [numbers(out, seed=1)] if bias else []

    def emit(op: Builder, x: Value) -> Value:
        given = op.Cast(weights.astype(np.float16), to=ir.DataType.FLOAT) if half else weights
        result: Value = op.ConvTranspose(x, given, *group, **{"strides": [2, 2, 2]} | stated)
        return result

    return emit


@pytest.mark.parametrize(
    ("emit", "changed"),
    [
        (convolution(), True),
        (convolution(bias=True), True),
        (convolution(half=True), True),
        (convolution((4, 4, 4), pads=[1] * 6, bias=True), True),
        (convolution((3, 3, 3), pads=[1] * 6, output_padding=[1, 1, 1]), True),
        (convolution((3, 4, 5), strides=[1, 2, 3], pads=[0, 1, 1, 1, 0, 2]), True),
        (convolution((3, 3, 3), strides=[1, 1, 1]), True),
        (convolution((1, 2, 2), strides=[1, 2, 2]), True),
        (convolution((2, 2, 2), strides=[3, 3, 3]), True),  # pixels without a product
        (convolution((2, 2, 2), strides=[3, 3, 8]), True),
        (convolution((2, 2, 2), strides=[3, 3, 9]), False),  # weights that are mostly zeros
        (convolution((2, 2, 2), strides=[1, 1, 1], pads=[2, 1, 1, 0, 0, 0]), False),  # it would have negative pads
        (convolution(dilations=[2, 2, 2]), False),
        (convolution(out=1, group=3), False),
        (convolution(auto_pad="SAME_UPPER"), False),
        (convolution(auto_pad="NOTSET"), True),
        (convolution((4, 4, 4), output_shape=[6, 8, 4]), False),
    ],
)
def test_conditions(emit: Any, changed: bool) -> None:
    found = rewritten(emit, floats("x", *DIMS), by=[TransposedVolumes()], atol=1e-4)
    assert ("VolumeConv" in found, "ConvTranspose" in found) == (changed, not changed)


@pytest.mark.parametrize("dims", [(None, *DIMS[1:]), (*DIMS[:4], None)])
def test_unknown_dimensions_stay(dims: tuple[int | None, ...]) -> None:
    assert not TransposedVolumes()(graph(convolution(), floats("x", *dims))).modified


def test_unknown_weights_and_16_bits_stay() -> None:
    def emit(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.ConvTranspose(x, weights)
        return result

    halves = graph(
        emit, *(new_value(ir.DataType.FLOAT16, dims, name) for name, dims in (("x", DIMS), ("w", [3, 4, 2, 2, 2])))
    )
    assert not TransposedVolumes()(halves).modified
    assert not TransposedVolumes()(graph(emit, floats("x", *DIMS), floats("weights", 3, 4, 2, 2, 2))).modified


def test_images_stay() -> None:
    weights = numbers(3, 4, 2, 2)
    assert not TransposedVolumes()(graph(lambda op, x: op.ConvTranspose(x, weights), floats("x", 1, 3, 5, 6))).modified


@pytest.mark.parametrize(("opset", "is_for_cpu", "found"), [(20, True, False), (21, True, True), (21, False, False)])
def test_opsets_and_devices(opset: int, is_for_cpu: bool, found: bool) -> None:
    """The plugin's kernels do not apply to older opsets, and are for the CPU."""
    assert any(isinstance(step, TransposedVolumes) for step in fusion_guards(opset, is_for_cpu=is_for_cpu)) is found


def test_a_large_padding_stays() -> None:
    emit = convolution(strides=[2, 2, 2], output_padding=[2_000_000, 0, 0])
    assert not TransposedVolumes()(graph(emit, floats("x", *DIMS))).modified


def test_large_strides_use_no_memory() -> None:
    assert not TransposedVolumes()(graph(convolution(strides=[1000] * 3), floats("x", 2, 3, 1, 1, 1))).modified
