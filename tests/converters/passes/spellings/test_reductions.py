"""Reductions in the forms that programs compute, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.finish import finish_for
from converters.passes.spellings import SPELLINGS
from converters.passes.spellings.reductions import ExtremesOfSingleAxes, ReducedNumbers
from converters.targets import TARGETS
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run
from tests.converters.passes.spellings.spelled import X, spelled


@pytest.mark.parametrize(("opset", "found"), [(13, ["Mul", "ReduceMean"]), (12, ["ReduceSum"])])
def test_sums_along_one_axis(opset: int, found: list[str]) -> None:
    def emit(op, x):
        if opset < 13:
            return op.at(opset).ReduceSum(x, axes=[1])
        return op.ReduceSum(x, [1])

    model = graph(emit, floats("x", 2, 3))
    SPELLINGS["ReduceMean for ReduceSum"]()(model)
    assert operators(model) == found
    means = [node for node in model.graph if node.op_type == "ReduceMean"]
    assert all(list(node.attributes.get_ints("axes", ())) == [1] for node in means)


@pytest.mark.parametrize(("dims", "keepdims", "found"), [((4,), 0, []), ((4,), 1, [1]), ((2, 4), 0, [2])])
def test_sums_keep_their_dimensions(dims: tuple[int, ...], keepdims: int, found: list[int]) -> None:
    """The sum of a vector is a scalar."""
    model = graph(lambda op, x: op.ReduceSum(x, [-1], keepdims=keepdims), floats("x", *dims))
    SPELLINGS["ReduceMean for ReduceSum"]()(model)
    (product,) = (node for node in model.graph if node.op_type == "Mul")
    assert list(product.outputs[0].shape or ()) == found


@pytest.mark.parametrize(
    ("emit", "dims"),
    [
        (lambda op, x: op.ReduceSum(x, [0, 1]), (2, 3)),
        (lambda op, x: op.ReduceSum(x), (2, 3)),
        (lambda op, x: op.ReduceSum(op.Cast(x, to=ir.DataType.INT32), [1]), (2, 3)),
        (lambda op, x: op.ReduceSum(x, [1]), (2, None)),
    ],
)
def test_other_sums_stay(emit: Any, dims: tuple[int | None, ...]) -> None:
    assert "ReduceSum" in operators(spelled("ReduceMean for ReduceSum", emit, X, *dims))


@pytest.mark.parametrize(("axis", "found"), [(0, "ReduceMean"), (1, "ReduceSum")])  # the mean of nothing is NaN
def test_sums_of_nothing_stay(axis: int, found: str) -> None:
    model = graph(lambda op, x: op.ReduceSum(x, [axis]), floats("x", 2, 0))
    SPELLINGS["ReduceMean for ReduceSum"]()(model)
    assert found in operators(model)


REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"]


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(("axes", "count"), [([0, -3, 3], 2), ([1, 2], 1), ([-1], 1), (None, 2), ([0, 1, 2, 3, 4], 3)])
def test_reductions(operator: str, keepdims: int, axes: list[int] | None, count: int) -> None:
    def emit(op, x):
        return getattr(op, operator)(x, *([] if axes is None else [axes]), keepdims=keepdims)

    dims = (2, 3, 2, 2) if axes is None or max(axes) < 4 else (2, 1, 2, 3, 2)
    found = rewritten(emit, floats("x", *dims), by=[SPELLINGS["pairs of reduced axes"]()])
    assert sum(name.startswith("Reduce") for name in found) == count
    assert not {"ReduceL1", "ReduceL2", "ReduceSumSquare"} & set(found)


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 19])
@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum", "ReduceMax"])
def test_pairs_of_axes_stay_in_files(operator: str, opset: int) -> None:
    """Simplification merges reductions, and older opsets have axes as attributes."""
    array = np.random.default_rng(0).standard_normal((1, 2, 3, 4, 5)).astype(np.float32)

    def emit(op, x):
        return getattr(op, operator)(x, [2, 3, 4])

    before = run(graph(emit, floats("x", *array.shape)), array)
    model = graph(emit, floats("x", *array.shape))
    finish_for(model, TARGETS["opencv"], opset=opset)
    assert operators(model) == [operator] * 2
    np.testing.assert_allclose(run(model, array)[0], before[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "emit",
    [
        lambda op, x: op.ReduceMean(x, [1, 2]),
        lambda op, x: op.ReduceLogSumExp(x, [0, 1, 2]),
        lambda op, x: op.ReduceMax(x, np.zeros(0, np.int64), noop_with_empty_axes=1),
    ],
)
def test_other_reductions_stay(emit: Any) -> None:
    model = graph(emit, floats("x", 2, 3, 4))
    assert not SPELLINGS["pairs of reduced axes"]()(model).modified


@pytest.mark.parametrize(("operator", "count"), [("ReduceMean", 1), ("ReduceL2", 1), ("ReduceSum", 2), ("ReduceMax", 2)])
def test_reductions_of_integers(operator: str, count: int) -> None:
    """A mean of means would be rounded twice."""
    numbers = np.array([[[0, 1], [1, 1]], [[1, 3], [0, 1]]], np.int32)
    x = new_value(ir.DataType.INT32, numbers.shape, "x")
    by = [SPELLINGS["pairs of reduced axes"]()]
    found = rewritten(lambda op, x: getattr(op, operator)(x, [0, 1, 2], keepdims=0), x, by=by, numbers=[numbers])
    assert found == [operator] * count


@pytest.mark.parametrize("reduced", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize(
    ("kind", "casts"), [(ir.DataType.BOOL, 2), (ir.DataType.UINT8, 2), (ir.DataType.INT8, 2), (ir.DataType.INT32, 0)]
)
def test_reduced_booleans(reduced: str, kind: ir.DataType, casts: int) -> None:
    given = np.array([[True, True], [False, False], [True, False]])

    def emit(op, x):
        return op.node(reduced, x, [1], keepdims=0)

    numbers = [given.astype(kind.numpy())]
    found = rewritten(emit, new_value(kind, (3, 2), "x"), by=[ReducedNumbers()], numbers=numbers)
    assert found == ["Cast"] * casts + [reduced]


@pytest.mark.parametrize("axes", [[1], None])
def test_reduced_booleans_of_older_opsets(axes: list[int] | None) -> None:
    """Before opset 18, the axes are an attribute."""
    model = graph(lambda op, x: op.at(17).ReduceMin(op.Greater(x, 0.0), axes=axes, keepdims=0), floats("x", 2, 3))
    SPELLINGS["reduced numbers"]()(model)
    assert operators(model) == ["Cast", "Cast", "Greater", "ReduceMin"]
    (node,) = [node for node in model.graph if node.op_type == "ReduceMin"]
    assert list(node.attributes.get_ints("axes", ())) == (axes or []) and len(node.inputs) == 1


@pytest.mark.parametrize(
    ("operator", "axes", "count"),
    [
        ("ReduceMax", [0, 2], 2),
        ("ReduceMin", [1, 2, 3], 3),
        ("ReduceProd", None, 4),
        ("ReduceMax", [1], 1),
        ("ReduceSum", [0, 2], 1),
    ],
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_extremes_of_single_axes(operator: str, axes: list[int] | None, count: int, keepdims: int) -> None:
    def emit(op, x):
        return op.node(operator, x, axes, keepdims=keepdims)

    found = rewritten(emit, floats("x", 2, 3, 4, 5), by=[ExtremesOfSingleAxes()])
    assert found == [operator] * count
