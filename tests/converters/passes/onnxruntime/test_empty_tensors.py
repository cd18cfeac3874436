"""Operators that ONNX Runtime computes incorrectly for empty tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime.regions import RoiAlignOfNothing
from converters.passes.onnxruntime.transposed_convolutions import EmptyTransposedConvolutions
from converters.passes.onnxruntime.unique import UniqueOfEmptySlices
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, run

D = ir.DataType


@pytest.mark.parametrize(
    ("dims", "dtype", "axis", "found"),
    [
        ([3, None], D.FLOAT, 0, ["Equal", "If"]),
        (None, D.FLOAT, 0, ["Equal", "If"]),
        (None, D.INT64, -1, []),  # no dimension after it
        ([3, None], D.INT64, 1, []),
        ([None, 2], D.INT64, 0, []),
        ([3, None], D.INT64, None, []),
        ([3, None], D.FLOAT, None, ["IsNaN", "Reshape"]),
        ([2, 2], D.DOUBLE, 1, ["IsNaN", "Reshape"]),
        ([None], D.UINT64, None, ["Add", "Cast"]),
    ],
)
def test_unique(dims: list[int | None] | None, dtype: ir.DataType, axis: int | None, found: list[str]) -> None:
    model = graph(lambda op, x: op.Unique(x, axis=axis, outputs=4), new_value(dtype, dims, "x"))
    assert UniqueOfEmptySlices()(model).modified is bool(found)
    assert set(found) <= set(operators(model))


@pytest.mark.parametrize("shape", [(3, 0), (0, 0), (0, 2), (3, 2)], ids=str)
def test_unique_slices(shape: tuple[int, ...]) -> None:
    model = graph(lambda op, x: op.Unique(x, axis=0, outputs=4), floats("x", None, None))
    UniqueOfEmptySlices()(model)
    x = np.ones(shape, np.float32)
    got, expected = run(model, x), np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=0)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other.reshape(one.shape), strict=True)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique_numbers(axis: int | None) -> None:
    model = graph(lambda op, x: op.Unique(x, axis=axis, outputs=4), floats("x", 2, 3))
    UniqueOfEmptySlices()(model)
    x = np.array([[3, 1, np.inf], [3, 1, -np.inf]], np.float32)
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    for one, other in zip(run(model, x), expected, strict=True):
        np.testing.assert_array_equal(one, other.reshape(one.shape), strict=True)
    x[1, 0] = np.nan
    with pytest.raises(Exception, match="nan_in_Unique"):
        run(model, x)


def test_unique_uint64() -> None:
    model = graph(lambda op, x: op.Unique(x, outputs=4), new_value(D.UINT64, [None], "x"))
    UniqueOfEmptySlices()(model)
    got = run(model, np.array([2**63, 1, 2**64 - 1, 1], np.uint64))
    np.testing.assert_array_equal(got[0], np.array([1, 2**63, 2**64 - 1], np.uint64), strict=True)
    np.testing.assert_array_equal(got[2], [1, 0, 2, 0], strict=True)


@pytest.mark.parametrize(
    ("dims", "found"),
    [([1, 2, 4, 4], False), ([None, None, 4, 4], False), ([1, 2, None, None], True), ([1, 2, None, 4], True)],
)
def test_regions(dims: list[int | None] | None, found: bool) -> None:
    def emit(op: Any, x: Any) -> Any:
        return op.RoiAlign(x, np.array([[0, 0, 3, 3]], np.float32), np.array([0]), output_height=2, output_width=2)

    model, plain = graph(emit, new_value(D.FLOAT, dims, "x")), graph(emit, floats("x", 1, 2, 4, 4))
    assert RoiAlignOfNothing()(model).modified is found
    x = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4)
    np.testing.assert_array_equal(run(model, x)[0], run(plain, x)[0], strict=True)
    if found:
        with pytest.raises(Exception, match="Gather"):
            run(model, x[:, :, :0])


@pytest.mark.parametrize(
    ("size", "attributes", "found"),
    [
        (4, {"pads": [1, 1, 1, 1]}, False),
        (None, {"pads": [1, 1, 1, 1]}, False),  # an unknown size is 1 or more
        (None, {"pads": [2, 1, 1, 1]}, True),
        (1, {"pads": [1, 1, 2, 1]}, True),
        (1, {"pads": [1, 1, 1, 1]}, False),
        (1, {"pads": [1, 2, 1, 2], "output_padding": [0, 2], "strides": [3, 3]}, False),
        (2, {"pads": [2, 2, 2, 2]}, True),
        (2, {"pads": [2, 2, 2, 2], "strides": [2, 2]}, False),
        (2, {"pads": [2, 2, 2, 2], "dilations": [2, 2]}, False),
        (1, {}, False),
        (1, {"auto_pad": "SAME_UPPER"}, False),
    ],
)
def test_transposed_convolutions(size: int | None, attributes: dict[str, Any], found: bool) -> None:
    kernel = np.arange(18, dtype=np.float32).reshape(2, 1, 3, 3)
    model = graph(lambda op, x: op.ConvTranspose(x, kernel, **attributes), floats("x", 1, 2, size, size))
    assert EmptyTransposedConvolutions()(model).modified is found
    assert ("Pad" in operators(model)) is found


@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [2, 1, 1, 2]},
        {"pads": [3, 2, 1, 2], "strides": [2, 3], "output_padding": [1, 1]},
        {"pads": [4, 2, 0, 3], "strides": [2, 3], "output_padding": [1, 2]},  # more output padding than padding at the end
    ],
    ids=str,
)
def test_cropped_transposed_convolutions(attributes: dict[str, Any]) -> None:
    kernel = np.arange(18, dtype=np.float32).reshape(2, 1, 3, 3)
    bias = np.array([5], np.float32)
    plain, model = (
        graph(lambda op, x: op.ConvTranspose(x, kernel, bias, **attributes), floats("x", 1, 2, None, None)) for _ in range(2)
    )
    assert EmptyTransposedConvolutions()(model).modified
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32)
    np.testing.assert_allclose(run(model, x)[0], run(plain, x)[0], rtol=1e-6, strict=True)
    assert run(model, x[:, :, :1, :1])[0].shape == (1, 1, 0, 0)
