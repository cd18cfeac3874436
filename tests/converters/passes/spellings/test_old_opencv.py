"""Forms for OpenCV 4, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.old_opencv import (
    ClippedNumbers,
    ComparedBooleans,
    ExpandedScalars,
    GatheredReflections,
    IndicesInShape,
    IndicesOfRows,
    OperandsOfRows,
    ReflectedImages,
    ScatteredColumns,
    SingleUnsqueezes,
    TransposedConvolutionsOfImages,
    TruncatedQuotients,
)
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run

D = ir.DataType


@pytest.mark.parametrize("kind", [D.FLOAT, D.INT32, D.INT64])
@pytest.mark.parametrize("dims", [(2, 3), ()])
def test_casts_to_booleans(kind: D, dims: tuple[int, ...]) -> None:
    numbers = [np.array([0, -2, 1, 3, 0, -1])[: int(np.prod(dims))].reshape(dims).astype(kind.numpy())]
    x = new_value(kind, dims, "x")
    assert rewritten(lambda op, x: op.Cast(x, to=D.BOOL), x, by=[ComparedBooleans()], numbers=numbers) == ["Abs", "Greater"]


def test_other_casts_stay() -> None:
    assert rewritten(lambda op, x: op.Cast(x, to=D.INT32), floats("x", 2, 3), by=[ComparedBooleans()]) == ["Cast"]
    given = new_value(D.BOOL, (2,), "x")
    assert rewritten(lambda op, x: op.Cast(op.Not(x), to=D.FLOAT), given, by=[ComparedBooleans()]) == ["Cast", "Not"]


@pytest.mark.parametrize(
    ("emit", "compared"),
    [
        (lambda op, x, y: op.Mul(op.Cast(x, to=D.FLOAT), op.Cast(y, to=D.FLOAT)), False),
        (lambda op, x, y: op.Max(op.Cast(x, to=D.FLOAT), op.Cast(y, to=D.FLOAT)), False),
        (lambda op, x, y: op.Add(op.Cast(x, to=D.FLOAT), op.Cast(y, to=D.FLOAT)), True),
        (lambda op, x, y: op.Mul(op.Cast(x, to=D.FLOAT), [3.0]), True),
    ],
)
def test_products_of_booleans(emit: Any, compared: bool) -> None:
    numbers = [np.array([True, False, True]), np.array([True, False, False])]
    inputs = [new_value(D.BOOL, (3,), name) for name in "xy"]
    found = rewritten(lambda op, x, y: op.Cast(emit(op, x, y), to=D.BOOL), *inputs, by=[ComparedBooleans()], numbers=numbers)
    assert ("Greater" in found) == compared


def test_quotients_of_integers() -> None:
    x, y = (new_value(D.INT32, (6,), name) for name in "xy")
    numbers = [np.array([7, -7, 7, -7, 0, 6], np.int32), np.array([2, 2, -2, -2, 5, 3], np.int32)]
    found = rewritten(lambda op, x, y: op.Div(x, y), x, y, by=[TruncatedQuotients()], numbers=numbers)
    assert found == ["Abs", "Cast", "Cast", "Cast", "Div", "Floor", "Mul", "Sign"]


def test_quotients_of_floats_stay() -> None:
    assert rewritten(lambda op, x: op.Div(x, op.Exp(x)), floats("x", 4), by=[TruncatedQuotients()]) == ["Div", "Exp"]


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x, i: op.Gather(x, op.Abs(i), axis=0), (3,), ["Abs", "Gather", "Reshape", "Reshape"]),
        (lambda op, x, i: op.Gather(x, op.Abs(i), axis=1), (3,), ["Abs", "Gather", "Reshape", "Reshape"]),
        (lambda op, x, i: op.Gather(x, op.Abs(i), axis=1), (1, 3), ["Abs", "Gather"]),
        (lambda op, x, i: op.Gather(x, [1, 0], axis=1), (3,), ["Gather"]),
        (lambda op, x, i: op.Gather(x, op.Abs(i), axis=1), (None,), ["Abs", "Gather"]),
    ],
)
def test_lines_of_indices(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    indices = new_value(D.INT64, dims, "i")
    numbers = [np.arange(12, dtype=np.float32).reshape(3, 4), np.array([2, 0, 1]).reshape([size or 3 for size in dims])]
    assert rewritten(emit, floats("x", 3, 4), indices, by=[IndicesOfRows()], numbers=numbers) == found


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Add(x, [2.0]), (3,), ["Add", "Reshape", "Reshape"]),
        (lambda op, x: op.Sub([2.0, 3.0, 4.0], x), (3,), ["Reshape", "Reshape", "Sub"]),
        (lambda op, x: op.Where(op.Less(x, op.Exp(x)), x, [0.0]), (3,), ["Exp", "Less", *["Reshape"] * 8, "Where"]),
        (lambda op, x: op.Add(x, op.Neg(x)), (3,), ["Add", "Neg", *["Reshape"] * 5]),
        (lambda op, x: op.Mul(x, x), (3,), ["Mul", *["Reshape"] * 3]),
        (lambda op, x: op.Add(x, [2.0]), (3, 1), ["Add"]),
        (lambda op, x: op.Add(op.Reshape(x, [3, 1]), x), (3,), ["Add", "Reshape", "Reshape"]),
        (lambda op, x: op.Add(x, np.ones((2, 1), np.float32)), (3,), ["Add", "Reshape"]),
        (lambda op, x: op.Add(x, [2.0]), (None,), ["Add"]),
    ],
)
def test_lines_of_operands(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[OperandsOfRows()]) == found


@pytest.mark.parametrize(
    ("pads", "mode", "dims", "found"),
    [
        ([0, 0, 2, 0, 0, 1], "reflect", (1, 2, 5), ["Pad", "Squeeze", "Unsqueeze"]),
        ([0, 0, 2, 0, 0, 1], "edge", (1, 2, 5), ["Pad", "Squeeze", "Unsqueeze"]),
        ([0, 0, 2, 0, 0, 1], "constant", (1, 2, 5), ["Pad"]),
        ([0, 1, 2, 0, 0, 1], "reflect", (1, 2, 5), ["Pad"]),
        ([0, 0, 1, 2, 0, 0, 0, 1], "reflect", (1, 2, 5, 5), ["Pad"]),
    ],
)
def test_reflection(pads: list[int], mode: str, dims: tuple[int, ...], found: list[str]) -> None:
    assert rewritten(lambda op, x: op.Pad(x, pads, mode=mode), floats("x", *dims), by=[ReflectedImages()]) == found


@pytest.mark.parametrize(
    ("attributes", "dims", "changed"),
    [
        ({}, (1, 2, 5), True),
        ({"strides": [3], "pads": [2, 1], "output_padding": [2], "dilations": [2]}, (2, 2, 5), True),
        ({"group": 2, "kernel_shape": [4]}, (1, 2, 5), True),
        ({"auto_pad": "SAME_UPPER", "strides": [2]}, (1, 2, 5), False),
        ({"output_shape": [9], "strides": [2]}, (1, 2, 5), False),
        ({}, (1, 2, 5, 5), False),
    ],
)
def test_transposed_convolutions(attributes: dict, dims: tuple[int, ...], changed: bool) -> None:
    weights = np.random.default_rng(1).standard_normal((2, 3, 4, *[2] * (len(dims) - 3))).astype(np.float32)
    bias = np.ones(3 * attributes.get("group", 1), np.float32)
    found = rewritten(
        lambda op, x: op.ConvTranspose(x, weights, bias, **attributes),
        floats("x", *dims),
        by=[TransposedConvolutionsOfImages()],
    )
    assert found == (["ConvTranspose", "Squeeze", "Unsqueeze"] if changed else ["ConvTranspose"])


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Unsqueeze(x, [0, 1]), ["Expand"]),
        (lambda op, x: op.Reshape(x, [1]), ["Expand"]),
        (lambda op, x: op.Reshape(op.Neg(x), []), ["Neg", "Reshape"]),
        (lambda op, x: op.Add(x, [1.0, 2.0]), ["Add"]),
    ],
)
def test_reshaped_scalars(emit: Any, found: list[str]) -> None:
    assert rewritten(emit, new_value(D.FLOAT, [], "x"), by=[ExpandedScalars()]) == found


@pytest.mark.parametrize(
    ("emit", "expanded"),
    [
        (lambda op, x: op.Mul(op.Squeeze(x, [0]), np.ones((2, 3), np.float32)), True),
        (lambda op, x: op.Mul(op.Add(op.Squeeze(x, [0]), 1.0), np.ones((2, 3), np.float32)), True),
        (lambda op, x: op.Expand(op.Squeeze(x, [0]), [2, 3]), False),
        (lambda op, x: op.Concat(op.Unsqueeze(op.Squeeze(x, [0]), [0]), x, axis=0), False),
    ],
)
def test_scalars_of_arithmetic(emit: Any, expanded: bool) -> None:
    assert "Squeeze" in operators(graph(emit, floats("x", 1)))
    assert ("Squeeze" not in rewritten(emit, floats("x", 1), by=[ExpandedScalars()])) is expanded


def test_scalar_outputs_are_vectors() -> None:
    model = graph(lambda op, x: op.Add(op.Squeeze(x, [0]), 1.0), floats("x", 1))
    ExpandedScalars()(model)
    assert list(model.graph.outputs[0].shape or ()) == [1]
    assert run(model, np.array([2.0], np.float32))[0].tolist() == [3.0]


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.ScatterElements(x, [1, 3], [5.0, 6.0]), (5,), ["Reshape", "Reshape", "ScatterElements"]),
        (
            lambda op, x: op.ScatterElements(x, [1, 3], [5.0, 6.0], reduction="add"),
            (5,),
            [*["Reshape"] * 2, "ScatterElements"],
        ),
        (lambda op, x: op.ScatterND(x, [[1], [3]], [5.0, 6.0]), (5,), ["Reshape", "Reshape", "ScatterND"]),
        (lambda op, x: op.ScatterND(x, [[1], [3]], [5.0, 6.0]), (None,), ["ScatterND"]),
        (lambda op, x: op.ScatterND(x, [[1, 0]], [5.0]), (2, 3), ["ScatterND"]),
    ],
)
def test_vectors_of_updates(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[ScatteredColumns()]) == found


TABLE = np.arange(4400, dtype=np.float32).reshape(1100, 4)  # more than are folded when a graph is built


@pytest.mark.parametrize(
    ("table", "indices", "axis", "shape", "reshaped"),
    [
        (TABLE, [0, 6, 1, 2], 0, [2, 2, 4], False),
        (TABLE.T, [0, 6, 1, 2], 1, [4, 2, 2], False),
        (TABLE, [0, 6, 1, 2], 0, [4, 2, 2], True),  # across the axis
        (TABLE, [[0, 6], [1, 2]], 0, [4, 4], True),
        (None, [0, 3, 1, 2], 0, [2, 2, 4], True),  # not from a constant
    ],
)
def test_indices_in_the_shape_of_the_result(table: Any, indices: Any, axis: int, shape: list[int], reshaped: bool) -> None:
    def emit(op, x):
        data = op.Neg(x) if table is None else op.const(np.ascontiguousarray(table))
        return op.Add(op.Reshape(op.Gather(data, indices, axis=axis), shape), op.ReduceMax(x))

    assert ("Reshape" in rewritten(emit, floats("x", 7, 4), by=[IndicesInShape()])) is reshaped


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Exp(x), (4,), ["Exp", "Reshape", "Reshape"]),
        (lambda op, x: op.Clip(x, 0.0, 1.0), (4,), ["Clip", "Reshape", "Reshape"]),
        (lambda op, x: op.Softmax(x, axis=0), (4,), ["Reshape", "Reshape", "Softmax"]),
        (lambda op, x: op.Softmax(x, axis=-1), (4,), ["Reshape", "Reshape", "Softmax"]),
        (lambda op, x: op.Softmax(x, axis=0), (4, 1), ["Softmax"]),
        (lambda op, x: op.Exp(x), (1, 4), ["Exp"]),
        (lambda op, x: op.Exp(x), (None,), ["Exp"]),
        (lambda op, x: op.CumSum(x, 0), (4,), ["CumSum"]),
    ],
)
def test_functions_of_lines(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[OperandsOfRows()]) == found


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: op.Concat(x, x, axis=0), (4,), ["Concat", *["Reshape"] * 3]),
        (lambda op, x: op.Concat([1.0], x, [2.0, 3.0], axis=-1), (4,), ["Concat", *["Reshape"] * 2]),
        (lambda op, x: op.Concat(x, x, axis=0), (1, 4), ["Concat"]),
        (lambda op, x: op.Concat(x, x, axis=0), (None,), ["Concat"]),
    ],
)
def test_joined_lines(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[OperandsOfRows()]) == found


@pytest.mark.parametrize("kind", [D.INT32, D.INT64])
@pytest.mark.parametrize("limits", [(-2, 3), (None, 3), (-2, None)])
def test_limits_of_integers(kind: D, limits: tuple[int | None, int | None]) -> None:
    numbers = [np.array([-7, -2, 0, 3, 9]).astype(kind.numpy())]

    def emit(op, x):
        return op.Clip(x, *(None if limit is None else op.const(limit, kind) for limit in limits))

    found = rewritten(emit, new_value(kind, (5,), "x"), by=[ClippedNumbers()], numbers=numbers)
    assert found == ["Cast", "Cast", "Clip"]


def test_limits_of_floats_stay() -> None:
    assert rewritten(lambda op, x: op.Clip(x, -1.0, 1.0), floats("x", 5), by=[ClippedNumbers()]) == ["Clip"]


@pytest.mark.parametrize(
    ("axes", "dims", "found"),
    [
        ([0, 3], (2, 3), "Reshape"),
        ([-1, -2], (2, 3), "Reshape"),
        ([-1], (2, 3), "Unsqueeze"),
        ([0, 1], (None, 3), "Unsqueeze"),
        ([0, 1], (), "Unsqueeze"),
    ],
)
def test_several_axes(axes: list[int], dims: tuple[int | None, ...], found: str) -> None:
    x = new_value(D.FLOAT, dims, "x")
    assert rewritten(lambda op, x: op.Unsqueeze(x, axes), x, by=[SingleUnsqueezes()]) == [found]


@pytest.mark.parametrize(("dims", "found"), [((4,), ["Reshape", "Reshape", "Reshape", "TopK"]), ((1, 4), ["TopK"])])
@pytest.mark.parametrize("largest", [0, 1])
def test_largest_of_lines(dims: tuple[int, ...], found: list[str], largest: int) -> None:
    def emit(op, x):
        return op.TopK(x, [3], axis=-1, largest=largest, outputs=2)

    assert rewritten(emit, floats("x", *dims), by=[OperandsOfRows()]) == found


@pytest.mark.parametrize("mode", ["edge", "reflect"])
@pytest.mark.parametrize(
    ("dims", "pads", "found"),
    [
        ((1, 2, 3, 4, 5), [0, 0, 1, 0, 2, 0, 0, 2, 0, 0], ["Gather"] * 2),
        ((2, 3, 4, 5), [0, 1, 0, 0, 0, 1, 0, 2], ["Gather"] * 2),
        ((2, 3), [1, 0, 0, 2], ["Gather"] * 2),
        ((2, 3, 4, 5), [0, 0, 1, 0, 0, 0, 0, 2], ["Pad"]),  # images
        ((2, 3, 5), [0, 0, 1, 0, 0, 2], ["Pad"]),
        ((1, 2, None, 4, 5), [0, 0, 1, 0, 0, 0, 0, 2, 0, 0], ["Pad"]),
    ],
)
def test_reflections(dims: tuple[int | None, ...], pads: list[int], found: list[str], mode: str) -> None:
    assert rewritten(lambda op, x: op.Pad(x, pads, mode=mode), floats("x", *dims), by=[GatheredReflections()]) == found


def test_padding_with_a_constant_stays() -> None:
    pads = [0, 0, 1, 0, 2, 0, 0, 2, 0, 0]
    assert rewritten(lambda op, x: op.Pad(x, pads), floats("x", 1, 2, 3, 4, 5), by=[GatheredReflections()]) == ["Pad"]
