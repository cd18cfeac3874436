"""Dimensions, logic and padding that are simplified, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.simplification import FusePads, MergeConcats, MergeDataMovement, MergeDimensions, RemoveNeutral
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten

D = ir.DataType
NEVER = np.zeros((2, 3), bool)


def _flat(op: Any, x: Any) -> Any:
    return op.Reshape(x, [-1])


def _sizes(op: Any, x: Any) -> Any:
    """The dimensions of a tensor, in another order."""
    return op.Gather(op.Shape(x), [1, 0, 2])


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Unsqueeze(op.Unsqueeze(x, [0]), [2]), (None, None), ["Unsqueeze"]),
        (lambda op, x: op.Unsqueeze(op.Unsqueeze(x, [1, -1]), [0, -2]), (None, None), ["Unsqueeze"]),
        (lambda op, x: op.Squeeze(op.Squeeze(x, [0]), [1]), (1, None, 1, None), ["Squeeze"]),
        (lambda op, x: op.Squeeze(op.Squeeze(x, [2]), [-3]), (1, None, 1, None), ["Squeeze"]),
        (lambda op, x: op.Squeeze(op.Unsqueeze(x, [1, 0]), [-4, 1]), (None, None), []),
        (lambda op, x: op.Squeeze(op.Unsqueeze(x, [1]), [2]), (None, 1), ["Squeeze", "Unsqueeze"]),
        (lambda op, x: op.Squeeze(op.Unsqueeze(x, [1, 2]), [1]), (None, None), ["Squeeze", "Unsqueeze"]),
        (lambda op, x: op.Unsqueeze(op.Squeeze(x, [2, 0]), [0, -1]), (1, None, 1), []),
        (lambda op, x: op.Unsqueeze(op.Squeeze(x, [2]), [0]), (None, None, 1), ["Squeeze", "Unsqueeze"]),
        (lambda op, x: op.Unsqueeze(op.Squeeze(x, [0]), [0, 1]), (1, None, None), ["Squeeze", "Unsqueeze"]),
        (lambda op, x: op.Unsqueeze(op.Squeeze(x), [0]), (1, None, None), ["Squeeze", "Unsqueeze"]),
    ],
)
def test_insertions_and_removals(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    result = rewritten(lambda op, x: op.Neg(emit(op, x)), floats("x", *dims), by=[MergeDimensions()])
    assert result == sorted(["Neg", *found])


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Reshape(_flat(op, x), _sizes(op, x), allowzero=1), ["Gather", "Reshape", "Shape"]),
        (lambda op, x: op.Reshape(op.Unsqueeze(x, [0]), _sizes(op, x), allowzero=1), ["Gather", "Reshape", "Shape"]),
        (lambda op, x: op.Reshape(op.Flatten(x, axis=2), _sizes(op, x), allowzero=1), ["Gather", "Reshape", "Shape"]),
        (lambda op, x: op.Reshape(op.Reshape(x, [0, -1]), [-1, 2]), ["Reshape"]),
        # A zero may copy a dimension of the inner tensor.
        (lambda op, x: op.Reshape(_flat(op, x), _sizes(op, x)), ["Gather", "Reshape", "Reshape", "Shape"]),
        (lambda op, x: op.Reshape(op.Reshape(x, [0, -1]), [0, 2, -1]), ["Reshape", "Reshape"]),
        (lambda op, x: op.Reshape(op.Neg(x), _sizes(op, x), allowzero=1), ["Gather", "Neg", "Reshape", "Shape"]),
    ],
)
def test_two_reshapes(emit: Any, found: list[str]) -> None:
    numbers = [np.arange(60, dtype=np.float32).reshape(3, 5, 4)]
    assert rewritten(emit, floats("x", None, None, 4), by=[MergeDimensions()], numbers=numbers) == found


@pytest.mark.parametrize(
    ("dims", "constant"),
    [((None, 3, 4), True), ((2, 3, 4), True), ((None, None, 4), False), ((None, 3, 0), False)],
)
def test_computed_targets(dims: tuple[int | None, ...], constant: bool) -> None:
    def emit(op, x):
        shape = op.node("Shape", x, types=[(D.INT64, [3])])
        turned = op.node("Gather", shape, op.const([1, 0, 2]), types=[(D.INT64, [3])])
        return op.node("Reshape", x, turned, types=[(D.FLOAT, [dims[1], dims[0], dims[2]])], allowzero=1)

    numbers = [np.zeros([5 if dim is None else dim for dim in dims], np.float32)]
    found = rewritten(emit, floats("x", *dims), by=[MergeDimensions()], numbers=numbers)
    assert found == (["Reshape"] if constant else ["Gather", "Reshape", "Shape"])


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Not(op.Not(op.Less(x, 0.0))), (None, 3), ["Less"]),
        (lambda op, x: op.Not(op.Less(x, 0.0)), (None, 3), ["Less", "Not"]),
        (lambda op, x: op.Where(op.Not(op.Less(x, 0.0)), x, op.Exp(x)), (None, 3), ["Exp", "Less", "Where"]),
        (lambda op, x: op.Where(op.Less(x, 0.0), x, op.Exp(x)), (None, 3), ["Exp", "Less", "Where"]),
        (lambda op, x: op.And(op.const(True), op.Less(x, 0.0)), (None, 3), ["Less"]),
        (lambda op, x: op.And(op.Less(x, 0.0), op.const(np.ones((1, 1), bool))), (None, 3), ["Less"]),
        (lambda op, x: op.Or(op.Less(x, 0.0), op.const(False)), (None, 3), ["Less"]),
        (lambda op, x: op.And(op.const(False), op.Less(x, 0.0)), (None, 3), ["And", "Less"]),
        (lambda op, x: op.Or(op.const(True), op.Less(x, 0.0)), (None, 3), ["Less", "Or"]),
        (lambda op, x: op.And(op.const(np.ones((1, 1, 1), bool)), op.Less(x, 0.0)), (None, 3), ["And", "Less"]),
        (lambda op, x: op.And(op.const(np.ones((5, 1), bool)), op.Less(x, 0.0)), (None, 3), ["And", "Less"]),
        (lambda op, x: op.Neg(op.Expand(x, [1, 1])), (None, None), ["Neg"]),
        (lambda op, x: op.Neg(op.Expand(x, [1])), (None, None), ["Neg"]),
        (lambda op, x: op.Neg(op.Expand(x, [1, 3])), (None, 3), ["Neg"]),
        (lambda op, x: op.Neg(op.Expand(x, [1, 1, 1])), (None, 3), ["Expand", "Neg"]),
        (lambda op, x: op.Neg(op.Expand(x, [5, 1])), (None, 3), ["Expand", "Neg"]),  # it is 5 in this run only
        (lambda op, x: op.Neg(op.ReduceSum(x, [1], keepdims=1)), (None, 1), ["Neg"]),
        (lambda op, x: op.Neg(op.ReduceMean(x, [-1], keepdims=1)), (None, 1), ["Neg"]),
        (lambda op, x: op.Neg(op.ReduceMax(x, [1], keepdims=0)), (None, 1), ["Neg", "Squeeze"]),
        (lambda op, x: op.Neg(op.ReduceProd(x, [0, 1], keepdims=0)), (1, 1), ["Neg", "Squeeze"]),
        (lambda op, x: op.Neg(op.ReduceMin(x, [0, 1], keepdims=1)), (None, 1), ["Neg", "ReduceMin"]),
        (lambda op, x: op.Neg(op.ReduceL1(x, [1], keepdims=1)), (None, 1), ["Neg", "ReduceL1"]),
        (lambda op, x: op.Neg(op.ReduceSum(x, op.const(np.zeros(0, np.int64)), keepdims=0)), (1, 1), ["Neg", "ReduceSum"]),
        (lambda op, x: op.Neg(op.ReduceSum(x, keepdims=0)), (1, 1), ["Neg", "ReduceSum"]),
        (lambda op, x: op.Neg(op.ReduceProd(x, keepdims=1)), (1, 1), ["Neg"]),
        (lambda op, x: op.Neg(op.ReduceProd(x, keepdims=1)), (1, None), ["Neg", "ReduceProd"]),
        (lambda op, x: op.Neg(op.ReduceL1(x, keepdims=1)), (1, 1), ["Neg", "ReduceL1"]),
        (lambda op, x: op.Neg(op.Where(NEVER, op.Exp(x), x)), (2, 3), ["Neg"]),
        (lambda op, x: op.Neg(op.Where(~NEVER, op.Exp(x), x)), (2, 3), ["Exp", "Neg"]),
        (lambda op, x: op.Neg(op.Where(np.eye(2, 3) > 0, op.Exp(x), x)), (2, 3), ["Exp", "Neg", "Where"]),
        # The other operand, or the condition, may add elements.
        (
            lambda op, x: op.Neg(op.Where(NEVER[:1], op.Relu(op.Slice(x, [0], [1], [0])), 1.0)),
            (2, 3),
            ["Neg", "Relu", "Slice", "Where"],
        ),
        (lambda op, x: op.Neg(op.Where(np.zeros((5, 3), bool), 1.0, x)), (None, 3), ["Neg", "Where"]),
        (lambda op, x: op.Neg(op.Where(NEVER[:0], op.Exp(x), x)), (1, 3), ["Exp", "Neg", "Where"]),
    ],
)
def test_nodes_without_effect(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[RemoveNeutral()]) == found


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Unsqueeze(op.ReduceSum(x, [1], keepdims=0), [1]), ["ReduceSum"]),
        (lambda op, x: op.Unsqueeze(op.ReduceL2(x, [-1, 0], keepdims=0), [0, 2]), ["ReduceL2"]),
        (lambda op, x: op.Unsqueeze(op.ReduceMax(x, [1], keepdims=0), [0]), ["ReduceMax", "Unsqueeze"]),
        (lambda op, x: op.Unsqueeze(op.ReduceMean(x, [1], keepdims=1), [1]), ["ReduceMean", "Unsqueeze"]),
        (lambda op, x: op.Unsqueeze(op.ReduceMean(x, [1], keepdims=0), [1, 3]), ["ReduceMean", "Unsqueeze"]),
        (
            lambda op, x: [op.Unsqueeze(sums := op.ReduceSum(x, [1], keepdims=0), [1]), sums],
            ["ReduceSum", "Unsqueeze"],
        ),
    ],
)
def test_dimensions_of_reductions(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", None, 5, None), by=[RemoveNeutral()]) == found


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.ReduceMean(op.ReduceMean(x, [1]), [-1]), ["ReduceMean"]),
        (lambda op, x: op.ReduceSum(op.ReduceSum(x, [2, 0], keepdims=1), [1]), ["ReduceSum"]),
        (lambda op, x: op.ReduceMin(op.ReduceMin(x, [0]), [2]), ["ReduceMin"]),
        (lambda op, x: op.ReduceMax(op.Cast(op.ReduceMax(x, [0]), to=D.INT32), [2]), ["Cast", "ReduceMax", "ReduceMax"]),
        (lambda op, x: op.ReduceMean(op.ReduceSum(x, [1]), [2]), ["ReduceMean", "ReduceSum"]),
        (lambda op, x: op.ReduceSum(op.ReduceSum(x, [1]), [1, 2]), ["ReduceSum", "ReduceSum"]),
        (lambda op, x: op.ReduceSum(op.ReduceSum(x, [1], keepdims=0), [1]), ["ReduceSum", "ReduceSum"]),
        (lambda op, x: op.ReduceSum(op.ReduceSum(x, [1]), [2], keepdims=0), ["ReduceSum", "ReduceSum"]),
        (lambda op, x: op.ReduceSumSquare(op.ReduceSumSquare(x, [1]), [2]), ["ReduceSumSquare", "ReduceSumSquare"]),
        (lambda op, x: [op.ReduceMean(y := op.ReduceMean(x, [1]), [2]), y], ["ReduceMean", "ReduceMean"]),
    ],
)
def test_reductions_of_reductions(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", None, 4, None), by=[RemoveNeutral()]) == found


@pytest.mark.parametrize(
    ("operator", "dtype", "count"),
    [
        ("ReduceMax", D.INT32, 1),
        ("ReduceMin", D.FLOAT16, 1),
        ("ReduceMean", D.DOUBLE, 1),
        ("ReduceMean", D.INT32, 2),  # rounded twice
        ("ReduceMean", D.FLOAT16, 2),
        ("ReduceSum", D.FLOAT16, 2),
    ],
)
def test_types_of_reductions(operator: str, dtype: ir.DataType, count: int) -> None:
    def emit(op, x):
        return op.node(operator, op.node(operator, x, [1]), [2])

    model = graph(emit, new_value(dtype, (None, 2, None), "x"))
    RemoveNeutral()(model)
    assert operators(model) == [operator] * count


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Neg(op.Split(x, op.Shape(x, start=1, end=2), axis=1, outputs=1)), ["Neg"]),
        (lambda op, x: op.Neg(op.Split(x, num_outputs=1, axis=1, outputs=1)), ["Neg"]),
        (lambda op, x: [op.Neg(part) for part in op.Split(x, [1, 2], axis=1, outputs=2)], ["Neg", "Neg", "Split"]),
    ],
)
def test_splits_into_one_part(emit: Any, found: list[str]) -> None:
    numbers = [np.arange(6, dtype=np.float32).reshape(2, 3)]
    got = rewritten(emit, floats("x", None, None), by=[MergeDataMovement()], numbers=numbers)
    assert got == found


def _normal(op: Any, x: Any) -> Any:
    return op.InstanceNormalization(x, np.ones(3, np.float32), np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Reshape(_normal(op, x), op.Shape(x)), ["InstanceNormalization"]),
        (lambda op, x: op.Reshape(op.Relu(_normal(op, x)), op.Shape(x), allowzero=1), ["InstanceNormalization", "Relu"]),
        (
            lambda op, x: op.Reshape(_normal(op, x), op.Shape(op.Neg(x))),
            ["InstanceNormalization", "Neg", "Reshape", "Shape"],
        ),
        (
            lambda op, x: op.Reshape(op.Transpose(x, perm=[0, 2, 1]), op.Shape(x)),
            ["Reshape", "Shape", "Transpose"],
        ),
        (lambda op, x: op.Reshape(op.Add(x, x), op.Shape(x)), ["Add", "Reshape", "Shape"]),  # it may broadcast
    ],
)
def test_reshapes_to_the_shape_of_the_input(emit: Any, found: list[str]) -> None:
    numbers = [np.arange(15, dtype=np.float32).reshape(1, 3, 5)]
    assert rewritten(emit, floats("x", None, None, None), by=[MergeDimensions()], numbers=numbers) == found


@pytest.mark.parametrize(
    ("emit", "count"),
    [
        (lambda op, x, t, u: op.Reshape(op.Softmax(op.Reshape(x, t), axis=-1), t), 1),
        (lambda op, x, t, u: op.Reshape(op.Relu(op.Neg(op.Reshape(x, t, allowzero=1))), t, allowzero=1), 1),
        (lambda op, x, t, u: op.Reshape(op.Transpose(op.Reshape(x, t), perm=[1, 0]), t), 2),
        (lambda op, x, t, u: op.Reshape(op.Relu(op.Reshape(x, t, allowzero=1)), t), 2),
        (lambda op, x, t, u: op.Reshape(op.Relu(op.Reshape(x, t)), u), 2),
    ],
)
def test_the_same_target(emit: Any, count: int) -> None:
    targets = [new_value(D.INT64, (2,), name) for name in "tu"]
    numbers = [np.arange(15, dtype=np.float32).reshape(1, 3, 5), np.array([3, 5]), np.array([5, 3])]
    found = rewritten(emit, floats("x", None, None, None), *targets, by=[MergeDimensions()], numbers=numbers)
    assert found.count("Reshape") == count


def test_a_part_of_the_shape_of_the_input() -> None:
    def emit(op, x):
        return op.Reshape(op.Relu(x), op.Shape(x, start=2))

    numbers = [np.arange(5, dtype=np.float32).reshape(1, 1, 5)]
    found = rewritten(emit, floats("x", None, None, None), by=[MergeDimensions()], numbers=numbers)
    assert found == ["Relu", "Reshape"]


@pytest.mark.parametrize(
    ("part", "found"),
    [({}, ["Relu"]), ({"start": 1}, ["Relu", "Reshape", "Shape"]), ({"end": 2}, ["Relu", "Reshape", "Shape"])],
)
def test_a_part_of_the_shape_of_an_input_of_unknown_rank(part: dict[str, int], found: list[str]) -> None:
    numbers = [np.arange(5, dtype=np.float32).reshape(1, 5, 1)]
    x = new_value(D.FLOAT, None, "x")
    assert (
        rewritten(lambda op, x: op.Reshape(op.Relu(x), op.Shape(x, **part)), x, by=[MergeDimensions()], numbers=numbers)
        == found
    )


def test_computed_axes_stay() -> None:
    axes = new_value(D.INT64, (1,), "axes")
    numbers = [np.ones((3, 1), np.float32), np.array([1])]
    found = rewritten(
        lambda op, x, axes: op.ReduceSum(x, axes), floats("x", 3, 1), axes, by=[RemoveNeutral()], numbers=numbers
    )
    assert found == ["ReduceSum"]


LEAST = -np.inf


def _pool(op: Any, x: Any, *pads: int, fill: float | None = LEAST, axes: list[int] | None = None, **stated: Any) -> Any:
    stated = {"kernel_shape": [2, 3], "strides": [2, 2], **stated}
    return op.MaxPool(op.Pad(x, list(pads), fill, axes), **stated)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _pool(op, x, 0, 0, 1, 2, 0, 0, 0, 1), ["MaxPool"]),
        (lambda op, x: _pool(op, x, 0, 1, 1, 1, axes=[2, -1], pads=[0, 1, 0, 1]), ["MaxPool"]),
        (
            lambda op, x: [op.Neg(_pool(op, x, 1, 1, axes=[3])), op.Relu(_pool(op, x, 1, 1, axes=[3]))],
            ["MaxPool", "MaxPool", "Neg", "Relu"],
        ),
        (lambda op, x: _pool(op, x, 0, 0, 1, 2, 0, 0, 0, 1, fill=-3e38), ["MaxPool", "Pad"]),
        (lambda op, x: _pool(op, x, 0, 0, 1, 2, 0, 0, 0, 1, fill=None), ["MaxPool", "Pad"]),
        (lambda op, x: _pool(op, x, 0, 1, 1, 0, 0, 0, 0, 0), ["MaxPool", "Pad"]),
        (lambda op, x: _pool(op, x, 0, 0, -1, 1, 0, 0, 0, 0), ["MaxPool", "Pad"]),
        # Windows of padding only
        (lambda op, x: _pool(op, x, 0, 0, 2, 0, 0, 0, 0, 0), ["MaxPool", "Pad"]),
        (lambda op, x: _pool(op, x, 0, 0, 0, 1, 0, 0, 0, 2, pads=[0, 2, 0, 1]), ["MaxPool", "Pad"]),
        (lambda op, x: _pool(op, x, 0, 0, 1, 0, 0, 0, 1, 0, ceil_mode=1), ["MaxPool", "Pad"]),
        (lambda op, x: _pool(op, x, 0, 0, 1, 0, 0, 0, 1, 0, dilations=[2, 1]), ["MaxPool", "Pad"]),
        # The places of the maxima count the padding.
        (lambda op, x: list(_pool(op, x, 0, 0, 1, 0, 0, 0, 1, 0, outputs=2)), ["MaxPool", "Pad"]),
        (lambda op, x: _pool(op, x, 0, 0, 1, 1, 0, 0, 1, 1, auto_pad="SAME_UPPER"), ["MaxPool", "Pad"]),
        (
            lambda op, x: op.AveragePool(op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1], LEAST), kernel_shape=[2, 2]),
            ["AveragePool", "Pad"],
        ),
    ],
)
def test_pads_of_maxima(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 1, 3, 5, 6), by=[FusePads()]) == found


WEIGHTS = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Conv(op.Pad(x, [0, 0, 1, 2, 0, 0, 0, 3]), WEIGHTS), ["Conv"]),
        (
            lambda op, x: op.Conv(op.Pad(x, [0, 0, 1, 2, 0, 0, 0, 3], 0.0), WEIGHTS, pads=[1, 0, 2, 0], strides=[2, 1]),
            ["Conv"],
        ),
        (lambda op, x: [op.Conv(p := op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), WEIGHTS), op.Conv(p, -WEIGHTS)], ["Conv", "Conv"]),
        (lambda op, x: [op.Conv(p := op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), WEIGHTS), op.Neg(p)], ["Conv", "Neg", "Pad"]),
        (lambda op, x: [op.Conv(p := op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), WEIGHTS), p], ["Conv", "Pad"]),
        (lambda op, x: op.Conv(op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1], 0.5), WEIGHTS), ["Conv", "Pad"]),
        (lambda op, x: op.Conv(op.Pad(x, [0, 0, 1, 1, 0, 0, 1, -1]), WEIGHTS), ["Conv", "Pad"]),
        (lambda op, x: op.Conv(op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1], mode="edge"), WEIGHTS), ["Conv", "Pad"]),
        (lambda op, x: op.Conv(op.Pad(x, [1, 2], None, [2]), WEIGHTS), ["Conv"]),
        (lambda op, x: op.Conv(op.Pad(x, [1, 0, 2, 1], 0.0, [-1, 2]), WEIGHTS), ["Conv"]),
        (lambda op, x: op.Conv(op.Pad(x, [1, 1], None, [0]), WEIGHTS), ["Conv", "Pad"]),
        (lambda op, x: op.Conv(op.Pad(x, [1, 0, 1, 1, 0, 0, 1, 1]), WEIGHTS), ["Conv", "Pad"]),
        (lambda op, x: op.Conv(op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), WEIGHTS, auto_pad="SAME_UPPER"), ["Conv", "Pad"]),
        (lambda op, x: op.MaxPool(op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), kernel_shape=[2, 2]), ["MaxPool", "Pad"]),
    ],
)
def test_pads_of_convolutions(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 1, 3, 5, 6), by=[FusePads()]) == found


def test_padded_weights_stay() -> None:
    def emit(op, x, w):
        return op.Conv(x, op.Pad(w, [0, 0, 1, 1, 0, 0, 1, 1]))

    inputs = floats("x", 1, 3, 5, 6), floats("w", 4, 3, 1, 1)
    assert rewritten(emit, *inputs, by=[FusePads()]) == ["Conv", "Pad"]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Concat(op.Concat(x, op.Neg(x), axis=1), x, axis=1), ["Concat", "Neg"]),
        (lambda op, x: op.Concat(x, op.Concat(x, op.Neg(x), axis=-2), x, axis=1), ["Concat", "Neg"]),
        (lambda op, x: op.Concat(op.Concat(x, x, axis=1), op.Concat(x, op.Neg(x), axis=1), axis=1), ["Concat", "Neg"]),
        (
            lambda op, x: op.Concat(op.Concat(x, op.Neg(x), axis=0), op.Concat(x, x, axis=0), axis=1),
            ["Concat"] * 3 + ["Neg"],
        ),
        (lambda op, x: op.Concat(inner := op.Concat(x, op.Neg(x), axis=1), inner, axis=1), ["Concat", "Neg"]),
        (
            lambda op, x: [
                op.Concat(inner := op.Concat(x, op.Neg(x), axis=1), x, axis=1),
                op.Concat(op.Abs(x), inner, axis=1),
            ],
            ["Abs", "Concat", "Concat", "Neg"],
        ),
        (
            lambda op, x: [op.Concat(inner := op.Concat(x, op.Neg(x), axis=1), x, axis=1), op.Concat(inner, inner, axis=0)],
            ["Concat", "Concat", "Concat", "Neg"],
        ),
        (lambda op, x: [op.Concat(inner := op.Concat(x, x, axis=1), x, axis=1), op.Neg(inner)], ["Concat", "Concat", "Neg"]),
        (lambda op, x: [op.Concat(inner := op.Concat(x, x, axis=1), x, axis=1), inner], ["Concat", "Concat"]),
    ],
)
def test_concatenations(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 2, None, 3), by=[MergeConcats()] * 2) == found


def _joined(op: Any, x: Any, count: int) -> Any:
    for _ in range(count):
        x = op.Concat(x, x, axis=0)
    return x


@pytest.mark.parametrize(("count", "nodes"), [(1, 1), (3, 1), (6, 1), (7, 2), (12, 2), (14, 3)])
def test_concatenations_of_a_concatenation_with_itself(count: int, nodes: int) -> None:
    model = graph(lambda op, x: _joined(op, x, count), floats("x", 1))
    MergeConcats()(model)
    MergeConcats()(model)
    assert len(list(model.graph)) == nodes
    assert max(len(node.inputs) for node in model.graph) == 2 ** min(count, 6)


@pytest.mark.parametrize("shared", [False, True])
def test_a_long_row_of_concatenations(shared: bool) -> None:
    """Each Concat adds one part. If one more Concat uses all of them, the merged ones have at most 64 inputs."""

    def emit(op: Any, x: Any) -> Any:
        values = [op.Neg(x)]
        for _ in range(300):
            values.append(op.Concat(values[-1], x, axis=0))
        return [op.Concat(*values[1:], axis=0)] if shared else [values[-1]]

    model = graph(emit, floats("x", 1))
    MergeConcats()(model)
    counts = [len(node.inputs) for node in model.graph if node.op_type == "Concat"]
    assert max(counts[:-1]) == 64 if shared else counts == [301]


def _part(op: Any, x: Any, count: int | None) -> Any:
    """Return a part of a tensor with a number of rows that is known or not."""
    return op.node("Slice", x, op.const([0]), op.const([0]), op.const([0]), types=[(D.FLOAT, [count, 3])])


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Concat(x, _part(op, x, 0), op.Neg(x), axis=0), ["Concat", "Neg"]),
        (lambda op, x: op.Concat(x, _part(op, x, 0), axis=-2), ["Concat"]),
        (lambda op, x: op.Concat(x, _part(op, x, None), axis=0), ["Concat", "Slice"]),
    ],
)
def test_empty_parts(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", None, 3), by=[MergeConcats()]) == found


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Slice(x, [0], [(1 << 63) - 1], [0], [1]), []),
        (lambda op, x: op.Slice(x, [0, 0], [3, (1 << 63) - 1], [1, 0]), []),
        (lambda op, x: op.Slice(x, [0], [7], [-1]), []),
        (lambda op, x: op.Slice(x, [0], [2], [1]), ["Slice"]),
        (lambda op, x: op.Slice(x, [0], [7], [0]), ["Slice"]),  # the dimension is unknown
        (lambda op, x: op.Slice(x, [1], [(1 << 63) - 1], [0]), ["Slice"]),
        (lambda op, x: op.Slice(x, [0], [(1 << 63) - 1], [0], [2]), ["Slice"]),
        (lambda op, x: op.Slice(x, [0], [-1], [0]), ["Slice"]),
    ],
)
def test_whole_slices(emit: Any, found: list[str]) -> None:
    result = rewritten(lambda op, x: op.Neg(emit(op, x)), floats("x", None, 3), by=[MergeDataMovement()])
    assert result == ["Neg", *found]


@pytest.mark.parametrize(
    ("emit", "count"),
    [
        (lambda op, x: [op.Slice(p := op.Slice(x, [1], [4], [1]), [0], [2], [2]), op.Slice(p, [1], [3], [0])], 2),
        (lambda op, x: [op.Slice(p := op.Slice(x, [1], [4], [1]), [0], [2], [2]), op.Slice(p, [1], [3], [1])], 3),
        (lambda op, x: [op.Slice(p := op.Slice(x, [1], [4], [1]), [0], [2], [2]), op.Neg(p)], 2),
        (lambda op, x: [op.Slice(p := op.Slice(x, [1], [4], [1]), [0], [2], [2]), p], 2),
    ],
)
def test_several_slices(emit: Any, count: int) -> None:
    assert rewritten(emit, floats("x", 4, 5, 3), by=[MergeDataMovement()]).count("Slice") == count


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"sizes": [1, 2, 4, 5]}, []),
        ({"scales": [1.0, 1.0, 1.0, 1.0]}, []),
        ({"scales": [1.0, 1.0, 1.0, 1.0], "mode": "cubic"}, []),
        ({"sizes": [1, 2, 4, 5], "mode": "linear", "coordinate_transformation_mode": "align_corners"}, []),
        ({"sizes": [4, 5], "axes": [2, 3], "mode": "linear", "coordinate_transformation_mode": "asymmetric"}, []),
        # Scales that give the same sizes, other sizes, coordinates that depend on more, and filters.
        ({"scales": [1.0, 1.0, 1.1, 1.0], "mode": "linear"}, ["Resize"]),
        ({"sizes": [1, 2, 4, 6]}, ["Resize"]),
        ({"sizes": [1, 2, 4, 5], "mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}, ["Resize"]),
        ({"sizes": [4, 5], "axes": [2, 3], "mode": "linear", "antialias": 1}, ["Resize"]),
        ({"sizes": [4, 5], "axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}, ["Resize"]),
    ],
)
def test_resizes(arguments: dict[str, Any], found: list[str]) -> None:
    def emit(op: Any, x: Any) -> Any:
        given = dict(arguments)
        scales, sizes = given.pop("scales", None), given.pop("sizes", None)
        inputs = [op.const(np.array(scales, np.float32))] if scales else [None, op.const(np.array(sizes))]
        return op.Neg(op.Resize(x, None, *inputs, **given))

    assert rewritten(emit, floats("x", 1, 2, 4, 5), by=[RemoveNeutral()]) == ["Neg", *found]
