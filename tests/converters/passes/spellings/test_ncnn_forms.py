"""Forms for ncnn, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.spellings.ncnn_forms import (
    BiasedNormalization,
    ColumnsByConv,
    ConcatForTile,
    ConvForSpaceToDepth,
    EluForSelu,
    NormalizedLines,
    ReshapeBeforeExpand,
    SelectedParts,
    SeparateFunctions,
    UniformConstants,
)
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run
from tests.converters.passes.spellings.spelled import spelled


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


@pytest.mark.parametrize(
    ("split", "order", "merged", "found"),
    [
        ([1, 2, 2, 2, 3, 5], [0, 1, 4, 2, 5, 3], [1, 2, 6, 10], ["DepthToSpace"]),
        ([1, 2, 2, 2, 3, 5], [0, 3, 4, 1, 5, 2], [1, 2, 6, 10], ["DepthToSpace"]),
        ([1, 2, 2, 2, 3, 5], [0, 1, 5, 2, 4, 3], [1, 2, 10, 6], None),  # rows and columns exchanged
        ([1, 2, 2, 2, 3, 5], [0, 1, 4, 3, 5, 2], [1, 2, 6, 10], None),  # the block transposed
        ([1, 2, 2, 2, 3, 5], [0, 1, 4, 2, 5, 3], [1, 4, 6, 5], None),  # merged differently
        ([1, 8, 1, 1, 3, 5], [0, 1, 4, 2, 5, 3], [1, 8, 3, 5], ["DepthToSpace"]),
        ([1, 1, 4, 2, 3, 5], [0, 1, 4, 2, 5, 3], [1, 1, 12, 10], None),  # blocks that are not square
        ([1, 2, 2, 2, 5, 3], [0, 1, 4, 2, 5, 3], [1, 2, 10, 6], None),  # another height
    ],
)
def test_blocks_of_channels(split: list[int], order: list[int], merged: list[int], found: list[str] | None) -> None:
    def emit(op, x):
        return op.Reshape(op.Transpose(op.Reshape(x, split), perm=order), merged)

    array = np.arange(8 * 15, dtype=np.float32).reshape(1, 8, 3, 5)
    model = spelled("DepthToSpace for Transpose", emit, array)
    RemoveUnusedNodesPass()(model)
    assert operators(model) == (found or ["Reshape", "Reshape", "Transpose"])


@pytest.mark.parametrize(
    ("dims", "order", "found"),
    [
        ([1, 2, 3, 2, 3, 5], [0, 1, 3, 2, 4, 5], 1),
        ([2, 1, 3, 2, 5], [3, 0, 2, 1, 4], 1),  # a dimension of 1 in the middle
        ([2, 3, 2, 3, 2], [4, 0, 1, 2, 3], 1),
        ([2, 3, 2, 3, 2], [4, 3, 2, 1, 0], 4),  # five groups
        ([2, 3, 2, 3, 2, 2], [0, 2, 4, 1, 3, 5], 2),
        ([1, 2, 3, 1, 5], [0, 3, 1, 2, 4], 0),  # no elements move
        ([1, 2, 3, 2, 5], [0, 2, 4, 3, 1], None),  # a batch of 1 and four dimensions
        ([2, 3, 2, 5], [1, 3, 0, 2], None),  # four dimensions
    ],
)
def test_axes_of_transposes(dims: list[int], order: list[int], found: int | None) -> None:
    array = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    model = spelled("merged axes", lambda op, x: op.Neg(op.Transpose(x, perm=order)), array)
    transposes = [node for node in model.graph if node.op_type == "Transpose"]
    assert len(transposes) == (1 if found is None else found)
    assert found is None or all(len(node.attributes.get_ints("perm", ())) <= 5 for node in transposes)
    assert ("Reshape" in operators(model)) == (found is not None)


@pytest.mark.parametrize(
    ("parts", "order", "axis", "sizes", "found"),
    [
        ([2, 4, 3, 2, 5], [2, 0, 3, 1, 4], 0, [1, 1, 1], True),
        ([2, 4, 3, 2, 5], [0, 3, 2, 1, 4], 2, [1, 1, 1], True),
        ([2, 2, 2, 3, 2, 5], [3, 0, 1, 4, 2, 5], 0, [1, 1, 1], True),  # tokens of two dimensions
        ([2, 4, 2, 3, 5], [3, 0, 2, 1, 4], 0, [1, 1, 1], False),  # projections of each head
        ([2, 4, 3, 2, 5], [2, 0, 3, 1, 4], 0, [1, 2], False),
        ([2, 4, 6, 5], [2, 0, 1, 3], 0, [1] * 6, False),  # four dimensions
        ([2, 4, 3, 2, 5], None, 2, [1, 1, 1], False),
    ],
)
def test_splits_of_projections(parts: list[int], order: list[int] | None, axis: int, sizes: list[int], found: bool) -> None:
    def emit(op, x):
        whole = op.Reshape(x, parts)
        whole = whole if order is None else op.Transpose(whole, perm=order)
        return [op.Neg(part) for part in op.Split(whole, sizes, axis=axis, outputs=len(sizes))]

    array = np.arange(240, dtype=np.float32).reshape(2, 4, 30)
    model = spelled("Split before Transpose", emit, array)
    RemoveUnusedNodesPass()(model)
    (split,) = (node for node in model.graph if node.op_type == "Split")
    assert (split.inputs[0] is model.graph.inputs[0]) == found


@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.5, "gamma": 2.0}])
def test_selu(attributes: dict[str, float]) -> None:
    found = rewritten(lambda op, x: op.Selu(x, **attributes), floats("x", 2, 3), by=[EluForSelu()])
    assert found == ["Elu", "Mul"]


@pytest.mark.parametrize(
    ("emit", "changed", "found"),
    [
        (lambda op, x: op.Add(op.Abs(x), np.ones(1, np.float32)), True, ["Abs", "Add"]),
        (lambda op, x: op.Add(np.ones(1, np.float32), op.Abs(x)), False, ["Abs", "Add"]),
        (lambda op, x: op.Sub(x, op.Tanh(x)), True, ["Add", "Neg", "Tanh"]),
        (lambda op, x: op.Sub(op.Tanh(x), x), False, ["Sub", "Tanh"]),
        (lambda op, x: op.Add(x, op.Tanh(x)), False, ["Add", "Tanh"]),
    ],
)
def test_functions_that_pnnx_fuses(emit: Any, changed: bool, found: list[str]) -> None:
    assert SeparateFunctions()(graph(emit, floats("x", 2, 3))).modified == changed
    assert rewritten(emit, floats("x", 2, 3), by=[SeparateFunctions()]) == found


@pytest.mark.parametrize(
    ("repeats", "concats"),
    [([1, 2], 1), ([3, 2], 2), ([1, 64], 1), ([1, 65], 0), ([8, 9], 0), ([0, 2], 0), ([1, 1], None)],
)
def test_tiles(repeats: list[int], concats: int | None) -> None:
    numbers = [np.arange(6, dtype=np.float32).reshape(2, 3)]
    found = rewritten(
        lambda op, x: op.Neg(op.Tile(op.Abs(x), repeats)), floats("x", 2, 3), by=[ConcatForTile()], numbers=numbers
    )
    assert found.count("Concat") == (concats or 0) and ("Tile" in found) == (concats == 0)


@pytest.mark.parametrize(("axes", "reshaped"), [([0, 1], True), ([0], False)])
def test_expanded_scalars_are_reshaped(axes: list[int], reshaped: bool) -> None:
    def emit(op, x):
        return op.Expand(op.ReduceSum(x, axes, keepdims=0), [2, 3])

    numbers = [np.arange(6, dtype=np.float32).reshape(2, 3)]
    found = rewritten(emit, floats("x", 2, 3), by=[ReshapeBeforeExpand()], numbers=numbers)
    assert found == ["Expand", "ReduceSum", *["Reshape"] * reshaped]


def test_scalars_become_vectors_of_unknown_size() -> None:
    def emit(op, x):
        return op.Expand(op.ReduceSum(x, keepdims=0), op.Shape(x))

    numbers = [np.arange(6, dtype=np.float32).reshape(2, 3)]
    found = rewritten(emit, floats("x", None, 3), by=[ReshapeBeforeExpand()], numbers=numbers)
    assert found.count("Reshape") == 1


def test_computed_tiles_stay() -> None:
    numbers = [np.arange(6, dtype=np.float32).reshape(2, 3)]
    found = rewritten(lambda op, x: op.Tile(x, op.Shape(x)), floats("x", None, 3), by=[ConcatForTile()], numbers=numbers)
    assert "Tile" in found


@pytest.mark.parametrize(
    ("numbers", "dims", "merged"),
    [
        (np.full((3, 1), 4), (3, 4), True),
        (np.full((3, 4), 4), (3, 4), True),
        (np.full((1, 4), 4), (3, 4), False),
        (np.full(4, 4), (3, 4), False),
        (np.full((3, 1), 4), (1, 4), False),
        (np.array([[4], [4], [5]]), (3, 4), False),
        (np.full((3, 1), 4), (None, 4), False),
    ],
)
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
def test_equal_numbers_of_a_batch(operator: str, numbers: np.ndarray, dims: tuple[int | None, ...], merged: bool) -> None:
    array = np.arange(1, 13, dtype=np.float32).reshape(3, 4)[: dims[0] or 3]
    model = graph(lambda op, x: op.node(operator, numbers.astype(np.float32), op.node(operator, x, 2.0)), floats("x", *dims))
    expected = run(model, array)[0]
    UniformConstants()(model)
    constants = [value.const_value.size for node in model.graph for value in node.inputs if value and value.const_value]
    assert (max(constants) == 1) == merged
    np.testing.assert_array_equal(run(model, array)[0], expected)


def test_scalars_have_no_batch() -> None:
    model = graph(lambda op, x: op.Add(x, np.float32(4)), new_value(ir.DataType.FLOAT, [], "x"))
    UniformConstants()(model)
    assert run(model, np.array(2, np.float32))[0] == 6


def _selected(shape: list[int], perm: list[int], index: Any, axis: int = 0):
    return lambda op, x: op.Gather(op.Transpose(op.Reshape(x, shape), perm=perm), np.array(index), axis=axis)


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (_selected([5, 2, 3, 4], [2, 0, 1, 3], 1), (5, 2, 12), ["Slice"]),
        (_selected([5, 2, 3, 4], [2, 0, 1, 3], -1), (5, 2, 12), ["Slice"]),
        (_selected([5, 3, 2, 4], [1, 0, 2, 3], 2), (5, 24), ["Reshape", "Slice"]),
        (_selected([5, 3, 2, 4], [1, 2, 0, 3], 0), (5, 24), ["Reshape", "Slice", "Transpose"]),
        (_selected([5, 2, 3, 4], [2, 0, 1, 3], [1]), (5, 2, 12), None),  # keeps the dimension
        (_selected([5, 2, 3, 4], [2, 0, 1, 3], 1, axis=1), (5, 2, 12), None),
        (_selected([5, 2, 3, 4], [1, 0, 2, 3], 1), (5, 2, 12), None),  # not a part of the last dimension
        (_selected([5, 2, 3, 4], [2, 0, 1, 3], 1), (5, 6, 4), None),
        (_selected([-1, 2, 3, 4], [2, 0, 1, 3], 1), (None, 2, 12), None),
    ],
)
def test_selected_parts(emit: Any, dims: tuple[int | None, ...], found: list[str] | None) -> None:
    given = floats("x", *dims)
    assert rewritten(emit, given, by=[SelectedParts()]) == (found or ["Gather", "Reshape", "Transpose"])


def _columns(rows: Any, columns: Any, shape: list[int], perm: tuple[int, ...] = (0, 1, 2, 4, 3, 5)):
    def emit(op, x):
        blocks = op.Gather(op.Gather(x, np.array(rows), axis=2), np.array(columns), axis=4)
        return op.Reshape(op.Transpose(blocks, perm=list(perm)), shape)

    return emit


ROWS = [[0, 2, 4], [1, 3, 5], [2, 4, 6]]  # three taps, a stride of 2
APART = [[0, 1], [3, 4]]  # two taps, a dilation of 3
STAYS = ["Gather", "Gather", "Reshape", "Transpose"]


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (_columns(ROWS, APART, [2, 18, 6]), (2, 3, 7, 5), ["Conv", "Reshape"]),
        (_columns([[0], [1]], [[0, 2, 4]], [1, 4, 3]), (1, 2, 2, 5), ["Conv", "Reshape"]),
        (_columns(ROWS, APART, [2, 18, 3, 2]), (2, 3, 7, 5), STAYS),  # another shape
        (_columns(ROWS, APART, [2, 18, 6]), (2, 3, 9, 5), STAYS),  # a Conv has another block
        (_columns([[0, 2, 4], [1, 3, 5], [2, 4, 5]], APART, [2, 18, 6]), (2, 3, 7, 5), STAYS),  # other distances
        (_columns([[1, 3], [2, 4], [3, 5]], APART, [2, 18, 4]), (2, 3, 7, 5), STAYS),  # begins at the second row
        (_columns(ROWS, APART, [2, 18, 6], (0, 1, 4, 2, 3, 5)), (2, 3, 7, 5), STAYS),  # columns before rows
        (_columns(ROWS, APART, [-1, 18, 6]), (None, 3, 7, 5), STAYS),
    ],
)
def test_columns_of_blocks(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert rewritten(emit, floats("x", *dims), by=[ColumnsByConv()]) == found


def test_columns_of_doubles_stay() -> None:
    emit = lambda op, x: _columns(ROWS, APART, [2, 18, 6])(op, op.Cast(x, to=ir.DataType.DOUBLE))  # noqa: E731
    assert rewritten(emit, floats("x", 2, 3, 7, 5), by=[ColumnsByConv()]) == ["Cast", *STAYS]
