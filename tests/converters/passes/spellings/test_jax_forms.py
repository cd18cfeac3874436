"""Forms for jaxonnxruntime, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.jax_forms import (
    ConvForConvTranspose,
    ExpandedMovement,
    LessForGreater,
    NormalizedRows,
    SumsForNorms,
    TriangularSums,
)
from converters.passes.spellings.resize_matrices import ResizeOfImages
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, rewritten

INT64 = ir.DataType.INT64
SCALE = np.array([1.0, 2.0, -1.0, 0.5], np.float32)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Greater(x, 0.5), ["Less"]),
        (lambda op, x: op.GreaterOrEqual(x, 0.5), ["LessOrEqual"]),
        (lambda op, x: op.Floor(x), ["Ceil", "Neg", "Neg"]),
        (lambda op, x: op.HardSigmoid(x, alpha=0.3, beta=0.4), ["Add", "Max", "Min", "Mul"]),
        (lambda op, x: op.HardSwish(x), ["Add", "Max", "Min", "Mul", "Mul"]),
        (lambda op, x: op.Clip(x, -0.5, 0.5), ["Max", "Min"]),
        (lambda op, x: op.Clip(x, -0.5), ["Clip"]),
        (lambda op, x: op.Less(x, 0.5), ["Less"]),
        (lambda op, x: op.Ceil(x), ["Ceil"]),
    ],
)
def test_less_for_greater(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 3, 4), by=[LessForGreater()]) == found


@pytest.mark.parametrize("dims", [(2, 4, 5), (2, 4, 3, 5), (2, 4, 1)])
def test_normalized_rows(dims: tuple[int, ...]) -> None:
    found = rewritten(
        lambda op, x: op.InstanceNormalization(x, SCALE, SCALE[::-1].copy(), epsilon=1e-2),
        floats("x", *dims),
        by=[NormalizedRows()],
    )
    assert "InstanceNormalization" not in found and found.count("ReduceMean") == 2


@pytest.mark.parametrize(
    ("emit", "dims", "kept"),
    [
        (lambda op, x: op.Tile(x, [2, 1, 3, 1]), (2, 8, 4, 6), False),
        (lambda op, x: op.Tile(x, [2, 1, 3, 1]), (2, None, 4, 6), True),
        (lambda op, x: op.Tile(x, [2, 1, 0, 1]), (2, 8, 4, 6), True),
        (lambda op, x: op.DepthToSpace(x, blocksize=2), (2, 8, 4, 6), False),
        (lambda op, x: op.DepthToSpace(x, blocksize=2, mode="CRD"), (2, 8, 4, 6), False),
        (lambda op, x: op.DepthToSpace(x, blocksize=2), (2, 8, None, 6), True),
        (lambda op, x: op.SpaceToDepth(x, blocksize=2), (2, 8, 4, 6), False),
        (lambda op, x: op.SpaceToDepth(x, blocksize=2), (None, 8, 4, 6), True),
    ],
)
def test_movement(emit: Any, dims: tuple[int | None, ...], kept: bool) -> None:
    numbers = [np.random.default_rng(0).standard_normal((2, 8, 4, 6)).astype(np.float32)]
    found = rewritten(emit, floats("x", *dims), by=[ExpandedMovement()], numbers=numbers)
    assert (not {"DepthToSpace", "SpaceToDepth", "Tile"}.isdisjoint(found)) is kept


def test_computed_repeats_stay() -> None:
    found = rewritten(
        lambda op, x, n: op.Tile(x, n), floats("x", 2, 3), new_value(INT64, [2], "n"), by=[ExpandedMovement()],
        numbers=[np.ones((2, 3), np.float32), np.array([2, 2])],
    )  # fmt: skip
    assert found == ["Tile"]


@pytest.mark.parametrize(
    ("mode", "coordinates"),
    [("linear", "half_pixel"), ("nearest", "asymmetric"), ("linear", "align_corners"), ("cubic", "half_pixel")],
)
def test_every_resize(mode: str, coordinates: str) -> None:
    def emit(op, x):
        return op.Resize(x, None, None, [2, 3, 9, 4], mode=mode, coordinate_transformation_mode=coordinates)

    assert "Resize" not in rewritten(emit, floats("x", 2, 3, 5, 7), by=[ResizeOfImages()])
    numbers = [np.ones((2, 3, 5, 7), np.float32)]
    assert rewritten(emit, floats("x", 2, 3, None, 7), by=[ResizeOfImages()], numbers=numbers) == ["Resize"]


def _transposed(
    rank: int, kernel: int, group: int = 1, x: tuple[int | None, ...] = (), bias: bool = True, **attributes: Any
) -> bool:
    weights = np.random.default_rng(0).standard_normal((4, 3, *[kernel] * rank)).astype(np.float32)
    offsets = [np.arange(3 * group, dtype=np.float32)] if bias else []
    found = rewritten(
        lambda op, x: op.ConvTranspose(x, op.const(weights), *map(op.const, offsets), group=group, **attributes),
        floats("x", *(x or (2, 4, 5, 6, 3)[: rank + 2])),
        by=[ConvForConvTranspose()],
    )
    assert ("ConvTranspose" in found) is not ("Conv" in found)
    return "ConvTranspose" in found


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "more"), [(2, 2, 0, 0), (4, 2, 1, 0), (3, 2, 1, 1), (3, 1, 1, 0), (2, 3, 0, 1)]
)
def test_transposed_convolutions(rank: int, group: int, kernel: int, stride: int, pads: int, more: int) -> None:
    attributes = {"strides": [stride] * rank, "pads": [pads] * (2 * rank), "output_padding": [more] * rank}
    assert not _transposed(rank, kernel, group, bias=group == 1, **attributes)


@pytest.mark.parametrize(
    "options",
    [
        {"dilations": [2, 2]},
        {"output_shape": [6, 7]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"pads": [4, 0, 0, 0], "x": (2, 4, 9, 9)},  # more than the kernel
        {"x": (2, 4, None, 6)},
    ],
)
def test_transposed_convolutions_that_stay(options: dict[str, Any]) -> None:
    assert _transposed(2, 3, **options)


@pytest.mark.parametrize("options", [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
@pytest.mark.parametrize(("axis", "moves"), [(2, 0), (-1, 0), (1, 2), (0, 2)])
@pytest.mark.parametrize("dtype", [ir.DataType.FLOAT, INT64])
def test_running_sums(options: dict[str, int], axis: int, moves: int, dtype: ir.DataType) -> None:
    numbers = [(np.random.default_rng(0).standard_normal((2, 3, 4)) * 5).astype(dtype.numpy())]
    x = new_value(dtype, (2, 3, 4), "x")
    found = rewritten(lambda op, x: op.CumSum(x, op.const(axis), **options), x, by=[TriangularSums()], numbers=numbers)
    assert found == ["MatMul", *["Transpose"] * moves]


@pytest.mark.parametrize(("dims", "stays"), [((5,), False), ((2, None), True), ((2, 5000), True)])
def test_other_running_sums(dims: tuple[int | None, ...], stays: bool) -> None:
    """Of a vector, of an unknown size, and of too many numbers."""
    found = rewritten(lambda op, x: op.CumSum(x, op.const(-1)), floats("x", *dims), by=[TriangularSums()], atol=1e-3)
    assert ("CumSum" in found) is stays


@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceMin"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [0, -1], None])
def test_norms(operator: str, keepdims: int, axes: list[int] | None) -> None:
    def emit(op, x):
        return getattr(op, operator)(x, *([] if axes is None else [axes]), keepdims=keepdims)

    found = rewritten(emit, floats("x", 2, 3, 4), by=[SumsForNorms()])
    assert operator not in found and {"ReduceSum", "ReduceMax"} & set(found)


def test_other_reductions_stay() -> None:
    assert rewritten(lambda op, x: op.ReduceMax(x, [1]), floats("x", 2, 3), by=[SumsForNorms()]) == ["ReduceMax"]
    numbers = [np.arange(6, dtype=np.int32).reshape(2, 3)]
    x = new_value(ir.DataType.INT32, (2, 3), "x")
    assert rewritten(lambda op, x: op.ReduceMin(x, [1]), x, by=[SumsForNorms()], numbers=numbers) == ["ReduceMin"]
