"""Forms for WebGPU's kernels, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.webgpu_forms import (
    GatheredElements,
    GatheredSlices,
    NarrowIntegers,
    NegatedAnd,
    NestedSplits,
    OddGroups,
    PaddedChannels,
    ScalarExponents,
    SeveralTransposedKernels,
    SlicesFromLast,
)
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run

FLOAT, INT32, INT64, BOOL = ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.BOOL
RNG = np.random.default_rng(0)
NUMBERS = RNG.integers(-9, 9, (2, 3, 4))


def _found(emit: Any, dtype: ir.DataType, by: Any, *dims: int | None) -> list[str]:
    x = new_value(dtype, list(dims or NUMBERS.shape), "x")
    array = NUMBERS % 2 == 0 if dtype == BOOL else NUMBERS
    return rewritten(emit, x, by=[by()], numbers=[array.astype(dtype.numpy())])


@pytest.mark.parametrize(
    ("emit", "dtype", "found"),
    [
        (lambda op, x: op.CumSum(x, 1), INT64, ["Cast", "Cast", "CumSum"]),
        (lambda op, x: op.CumSum(x, 1), INT32, ["CumSum"]),
        (lambda op, x: op.CumSum(x, 1), FLOAT, ["CumSum"]),
        (lambda op, x: op.Transpose(x, perm=[2, 0, 1]), BOOL, ["Cast", "Cast", "Transpose"]),
        (lambda op, x: op.Concat(x, x, axis=0), BOOL, ["Cast", "Cast", "Cast", "Concat"]),
        (lambda op, x: op.Concat(x, x, axis=0), INT64, ["Concat"]),
        (lambda op, x: op.ReduceMax(x, [1]), INT64, ["Cast", "Cast", "ReduceMax"]),
        (lambda op, x: op.ArgMax(x, axis=1, keepdims=1), FLOAT, ["ArgMax"]),
        (lambda op, x: op.Equal(x, op.Not(x)), BOOL, ["Cast", "Cast", "Equal", "Not"]),
        (lambda op, x: op.Equal(x, op.Add(x, x)), INT64, ["Add", "Equal"]),
        (lambda op, x: op.Split(x, [1, 2], axis=1, outputs=2), INT64, ["Cast", "Cast", "Cast", "Split"]),
        (lambda op, x: op.Pad(x, [0, 1, 0, 0, 1, 0], op.const(3, INT64)), INT64, ["Cast", "Cast", "Pad"]),
    ],
)
def test_narrow_integers(emit: Any, dtype: ir.DataType, found: list[str]) -> None:
    assert _found(emit, dtype, NarrowIntegers) == found


@pytest.mark.parametrize(("exponent", "casts"), [(np.array([0.5], np.float32), 2), (np.array([2], np.int64), 2)])
def test_fractional_exponents_of_integers(exponent: np.ndarray, casts: int) -> None:
    model = graph(lambda op, x: op.Pow(x, op.const(exponent)), new_value(INT64, [3], "x"))
    numbers = np.array([9, 4, 1])
    expected = run(model, numbers)
    NarrowIntegers()(model)
    assert operators(model).count("Cast") == casts
    np.testing.assert_array_equal(run(model, numbers), expected, strict=True)


def test_indices_keep_their_type() -> None:
    """ONNX Runtime's CPU provider has no ArgMax of 64-bit integers."""
    model = graph(lambda op, x: op.ArgMax(x, axis=1, keepdims=1), new_value(INT64, [2, 3], "x"))
    NarrowIntegers()(model)
    assert operators(model) == ["ArgMax", "Cast"]
    assert run(model, np.array([[1, 5, 2], [7, 0, 7]]))[0].tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("emit", "dtype", "dims", "found"),
    [
        (lambda op, x: op.Slice(x, [1], [9], [1], [1]), INT64, (), ["Gather"]),
        (lambda op, x: op.Slice(x, [-1, 0], [-9, 2], [1, -1], [-1, 1]), BOOL, (), ["Gather", "Gather"]),
        (lambda op, x: op.Slice(x, [-9], [9], [1], [2]), INT32, (), ["Gather"]),
        (lambda op, x: op.Slice(x, [2], [1], [1], [1]), INT32, (), ["Gather"]),
        (lambda op, x: op.Slice(x, [0], [9], [1], [1]), INT32, (), ["Identity"]),
        (lambda op, x: op.Slice(x, [1], [9], [1], [1]), FLOAT, (), ["Slice"]),
        (lambda op, x: op.Slice(x, [2], [-9], [2], [-1]), FLOAT, (), ["Gather"]),
        (lambda op, x: op.Slice(x, [-2], [0], [2], [-1]), FLOAT, (), ["Gather"]),
        (lambda op, x: op.Slice(x, [-9], [-10], [2], [-1]), FLOAT, (), ["Gather"]),
        (lambda op, x: op.Slice(x, [0, 1], [2, -9], [0, 2], [1, -1]), FLOAT, (), ["Gather"]),
        (lambda op, x: op.Slice(x, [3], [-9], [2], [-1]), FLOAT, (), ["Slice"]),  # begins at the last element
        (lambda op, x: op.Slice(x, [-1], [0], [2], [-2]), FLOAT, (), ["Slice"]),
        (lambda op, x: op.Slice(x, [9], [0], [2], [-2]), FLOAT, (), ["Slice"]),
        (lambda op, x: op.Slice(x, [2], [-9], [2], [-1]), FLOAT, (2, 3, None), ["Slice"]),
        (lambda op, x: op.Slice(x, [1], [9], [1], [1]), INT64, (2, None, 4), ["Slice"]),
        (lambda op, x: op.Slice(x, [0], [2], [1]), INT64, (2, None, 4), ["Cast", "Cast", "Gather", "Shape", "Slice"]),
        (lambda op, x: op.Slice(x, [0], [20], [-2]), BOOL, (2, None, 4), ["Cast", "Cast", "Gather", "Shape", "Slice"]),
        (lambda op, x: op.Slice(x, [0], [-1], [1]), INT64, (2, None, 4), ["Slice"]),
        (lambda op, x: op.Slice(x, [0], [4097], [1]), INT64, (2, None, 4), ["Slice"]),
    ],
)
def test_slices(emit: Any, dtype: ir.DataType, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert _found(emit, dtype, GatheredSlices, *dims) == found


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("dtype", "dims", "gathered"), [(INT64, (), True), (BOOL, (), True), (FLOAT, (), False)])
def test_elements(axis: int, dtype: ir.DataType, dims: tuple[int | None, ...], gathered: bool) -> None:
    indices = RNG.integers(-NUMBERS.shape[axis], NUMBERS.shape[axis], (2, 2, 3))

    def emit(op, x):
        return op.GatherElements(x, indices, axis=axis)

    assert ("Gather" in _found(emit, dtype, GatheredElements, *dims)) is gathered
    assert "Gather" not in _found(emit, dtype, GatheredElements, None, 3, 4)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Or(x, op.const(np.arange(4) > 1)), ["And", "Not", "Not"]),
        (lambda op, x: op.Xor(x, op.const(np.arange(4) > 1)), ["Cast", "Equal", "Not"]),
        (lambda op, x: op.And(x, op.const(np.arange(4) > 1)), ["And"]),
    ],
)
def test_logic(emit: Any, found: list[str]) -> None:
    assert _found(emit, BOOL, NegatedAnd) == found


@pytest.mark.parametrize(
    ("exponent", "changed"),
    [
        (np.full((1, 1), 0.5), True),
        (np.full(1, 3.0), True),
        (np.full((), 0.5), False),
        (np.full(4, 3.0), False),
        (np.full((1, 1, 1, 1), 3.0), False),
    ],
)
def test_exponents(exponent: np.ndarray, changed: bool) -> None:
    def emit(op, x):
        return op.Pow(x, op.const(exponent.astype(np.float32)))

    assert _found(emit, FLOAT, ScalarExponents) == ["Pow"]
    assert ScalarExponents()(graph(emit, new_value(FLOAT, [2, 3, 4], "x"))).modified is changed


@pytest.mark.parametrize(
    ("dims", "kernels", "attributes", "padded"),
    [
        ((1, 6, 4, 5), (8, 6, 3, 3), {"pads": [1, 1, 1, 1]}, True),
        ((2, 9, 4, 5), (4, 9, 1, 2), {}, True),
        ((1, 6, 5), (8, 6, 3), {}, True),
        ((1, 6, 4, 5), (8, 6, 1, 1), {"strides": [2, 2]}, True),
        ((1, 6, 4, 5), (8, 6, 1, 1), {}, False),
        ((1, 6, 4, 5), (7, 6, 3, 3), {}, False),
        ((1, 3, 4, 5), (8, 3, 3, 3), {}, False),
        ((1, 5, 4, 5), (8, 5, 3, 3), {}, False),
        ((1, 12, 4, 5), (8, 12, 3, 3), {}, False),
        ((1, 12, 4, 5), (8, 6, 3, 3), {"group": 2}, False),
        ((1, 6, 4, 5, 4), (8, 6, 3, 3, 3), {}, False),
    ],
)
@pytest.mark.parametrize("is_computed", [False, True])
def test_channels(
    dims: tuple[int, ...], kernels: tuple[int, ...], attributes: dict[str, Any], padded: bool, is_computed: bool
) -> None:
    rng = np.random.default_rng(0)
    x, weights = (rng.integers(-3, 4, size).astype(np.float32) for size in (dims, kernels))

    def emit(op, x, w):
        return op.Conv(
            x, op.Neg(w) if is_computed else op.const(weights), op.const(np.ones(kernels[0], np.float32)), **attributes
        )

    inputs = floats("x", *dims), floats("w", *kernels)
    found = rewritten(emit, *inputs, by=[PaddedChannels()], numbers=[x, weights])
    assert ("Pad" in found) == padded


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("groups", "outputs", "dimensions", "padded"),
    [
        (2, 5, 2, True),
        (2, 6, 2, True),
        (4, 7, 1, True),
        (2, 4, 2, False),
        (2, 3, 2, False),  # at most 4 output channels
        (2, 8, 2, False),  # a multiple of 4
        (3, 5, 2, False),  # an odd number of groups
        (1, 5, 2, False),
        (2, 5, 3, False),  # volumes, which it rejects
    ],
)
def test_odd_groups(groups: int, outputs: int, dimensions: int, padded: bool, constant: bool) -> None:
    kernels, size = (groups * outputs, 2, *[3] * dimensions), [5] * dimensions
    weights, biases = (RNG.standard_normal(shape).astype(np.float32) for shape in (kernels, kernels[:1]))
    x = RNG.standard_normal((2, groups * 2, *size)).astype(np.float32)

    def emit(op: Any, x: Any, weights: Any, bias: Any) -> Any:
        return op.Conv(x, weights, bias, group=groups, pads=[1, 0] * dimensions)

    image, others = floats("x", 2, groups * 2, *size), (floats("w", *kernels), floats("b", kernels[0]))
    if constant:
        found = rewritten(lambda op, x: emit(op, x, weights, biases), image, by=[OddGroups()], numbers=[x])
    else:
        found = rewritten(emit, image, *others, by=[OddGroups()], numbers=[x, weights, biases])
    assert ("Slice" in found) is padded


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("groups", "inputs", "outputs", "dimensions", "padded"),
    [
        (2, 2, 1, 2, True),
        (3, 4, 1, 1, True),
        (2, 3, 1, 2, False),  # an odd number of input channels
        (1, 2, 1, 2, False),  # one group
        (2, 2, 2, 2, False),  # two output channels
        (2, 2, 1, 3, False),
    ],
)
def test_several_transposed_kernels(
    groups: int, inputs: int, outputs: int, dimensions: int, padded: bool, bias: bool
) -> None:
    size = [4] * dimensions
    weights = RNG.standard_normal((groups * inputs, outputs, *[3] * dimensions)).astype(np.float32)
    addend = RNG.standard_normal(groups * outputs).astype(np.float32) if bias else None
    x = RNG.standard_normal((2, groups * inputs, *size)).astype(np.float32)

    def emit(op: Any, x: Any) -> Any:
        return op.ConvTranspose(x, weights, addend, group=groups, strides=[2] * dimensions)

    image = floats("x", 2, groups * inputs, *size)
    assert ("Slice" in rewritten(emit, image, by=[SeveralTransposedKernels()], numbers=[x])) is padded


@pytest.mark.parametrize("size", [3, 5, 9])
@pytest.mark.parametrize(
    ("start", "end", "step", "slices"),
    [
        (2, -(2**63), -1, 2),
        (2, 0, -1, 2),
        (0, -(2**63), -1, 2),
        (7, 1, -2, 2),
        (-2, 0, -1, 1),  # of one element, it begins at the first
        (-1, 0, -1, 1),  # begins at the last element
        (2**63 - 1, 0, -1, 1),
        (1, 2, 1, 1),
        (3, -3, -1, 1),  # depends on the size
    ],
)
def test_slices_from_the_last_element(start: int, end: int, step: int, slices: int, size: int) -> None:
    numbers = [RNG.standard_normal((2, size)).astype(np.float32)]
    found = rewritten(
        lambda op, x: op.Slice(x, [start], [end], [1], [step]), floats("x", 2, None), by=[SlicesFromLast()], numbers=numbers
    )
    assert found == ["Slice"] * slices


@pytest.mark.parametrize(
    ("count", "size", "axis", "splits"),
    [(7, 1, 0, 1), (8, 1, 0, 3), (8, 2, -1, 3), (19, 1, 1, 4), (49, 1, 0, 8), (50, 1, 0, 10)],
)
def test_splits(count: int, size: int, axis: int, splits: int) -> None:
    def emit(op, x):
        parts = op.Split(x, [size] * count, axis=axis, outputs=count)
        return [parts[0], parts[-1], op.Concat(*parts[::-1], axis=axis)]

    dims = [2, 3]
    dims[axis] = size * count
    found = rewritten(emit, floats("x", *dims), by=[NestedSplits()])
    assert found == ["Concat", *["Split"] * splits]


def test_splits_of_unknown_sizes_stay() -> None:
    def emit(op, x):
        return list(op.Split(x, None, axis=0, num_outputs=8, outputs=8))

    numbers = [np.arange(16, dtype=np.float32)]
    assert rewritten(emit, floats("x", None), by=[NestedSplits()], numbers=numbers) == ["Split"]
