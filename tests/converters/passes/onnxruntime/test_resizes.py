"""A cubic Resize, axis by axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import ResizeByAxes
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten

SCALES, SIZES = np.float32([1, 1, 2, 1.5]), [2, 3, 9, 4]


def _resized(op: Any, x: Any, scales: Any = None, sizes: Any = None, mode: str = "cubic", **stated: Any) -> Any:
    return op.Resize(x, None, scales, sizes, mode=mode, **stated)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _resized(op, x, SCALES), True),
        (lambda op, x: _resized(op, x, sizes=SIZES), True),
        (lambda op, x: _resized(op, x, np.float32([1, 1, 0.4, 1.7])), True),
        (lambda op, x: _resized(op, x, SCALES, cubic_coeff_a=-0.5), True),
        (lambda op, x: _resized(op, x, sizes=SIZES, coordinate_transformation_mode="align_corners"), True),
        (lambda op, x: _resized(op, x, SCALES, coordinate_transformation_mode="pytorch_half_pixel"), True),
        (lambda op, x: _resized(op, x, SCALES, coordinate_transformation_mode="asymmetric"), True),
        (lambda op, x: _resized(op, x, sizes=op.Concat(op.Shape(x, end=2), [9, 4], axis=0)), True),
        (lambda op, x: _resized(op, op.Reshape(x, [30, 7]), np.float32([2, 3])), True),
        (lambda op, x: _resized(op, x, np.float32([1, 1, 1, 1])), True),
        (lambda op, x: _resized(op, x, SCALES, mode="linear"), False),
        (lambda op, x: _resized(op, x, SCALES, mode="nearest"), False),
        (lambda op, x: _resized(op, x, np.float32([1, 1, 0.4, 1]), antialias=1), False),
        (lambda op, x: _resized(op, x, SCALES, exclude_outside=1), False),
        (lambda op, x: _resized(op, x, SCALES, coordinate_transformation_mode="half_pixel_symmetric"), False),
        (lambda op, x: _resized(op, x, np.float32([2, 1.5]), axes=[2, 3]), False),
        (lambda op, x: _resized(op, x, sizes=[9, 9], axes=[2, 3], keep_aspect_ratio_policy="not_larger"), False),
    ],
)
def test_conditions(emit: Any, found: bool) -> None:
    got = rewritten(emit, floats("x", 2, 3, 5, 7), by=[ResizeByAxes()])
    assert ("Interpolate" in got) is found
    assert ("Resize" in got) is not found


@pytest.mark.parametrize(
    ("scales", "sizes", "found"),
    [
        (SCALES, None, True),
        (np.float32([2, 1, 2, 1.5]), None, False),
        (np.float32([1, 2, 2, 1.5]), None, False),
        (None, SIZES, True),
        (None, [2, 6, 9, 4], False),
    ],
)
def test_resized_batches_and_channels_stay(scales: Any, sizes: Any, found: bool) -> None:
    """ONNX Runtime does not compute them."""
    for dims in ((2, 3, 5, 7), *([(None, None, 5, 7)] if sizes is None else [])):
        model = graph(lambda op, x: _resized(op, x, scales, sizes), floats("x", *dims))
        assert ResizeByAxes()(model).modified is found


def test_other_types_stay() -> None:
    for dtype in (ir.DataType.FLOAT16, ir.DataType.DOUBLE):
        model = graph(lambda op, x: _resized(op, x, SCALES), new_value(dtype, [2, 3, 5, 7], "x"))
        assert not ResizeByAxes()(model).modified


def test_images_of_the_same_size_share_their_scales() -> None:
    def emit(op: Any, x: Any, sizes: Any) -> Any:
        return [_resized(op, op.Relu(x), sizes=sizes), _resized(op, op.Neg(x), sizes=sizes)]

    sizes = new_value(ir.DataType.INT64, (4,), "sizes")
    numbers = [np.ones((2, 3, 5, 7), np.float32), np.array([2, 3, 8, 9])]
    got = rewritten(emit, floats("x", 2, 3, 5, 7), sizes, by=[ResizeByAxes()], numbers=numbers)
    assert got.count("Interpolate") == 2 and got.count("Div") == got.count("Gather") == 1
