"""Transposes in steps, which ONNX Runtime copies faster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from converters.passes.onnxruntime import MergeReshapes, TransposeInSteps
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten


def _transposes(dtype: ir.DataType, dims: Sequence[int | None], perm: Sequence[int] | None) -> int:
    """Return the number of Transposes after the pass; the results are equal."""
    shape = [5 if size is None else size for size in dims]
    numbers = np.arange(np.prod(shape)).reshape(shape).astype(dtype.numpy())
    got = rewritten(
        lambda op, x: op.Transpose(x) if perm is None else op.Transpose(x, perm=list(perm)),
        new_value(dtype, dims, "x"),
        by=[TransposeInSteps()],
        numbers=[numbers],
        atol=0.0,
    )
    return got.count("Transpose")


@pytest.mark.parametrize("dtype", [ir.DataType.FLOAT, ir.DataType.UINT8], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("dims", [(40, 50, 60), (10, 20, 1, 30, 25), (1, 12, 7, 9, 1, 11, 13)], ids=str)
def test_each_order(dtype: ir.DataType, dims: Sequence[int]) -> None:
    orders = list(permutations(range(len(dims))))
    generator = np.random.default_rng(7)
    for place in generator.choice(len(orders), min(len(orders), 60), replace=False):
        _transposes(dtype, dims, orders[place])


def test_of_one_tensor_in_two_orders() -> None:
    def emit(op: Builder, x: Value) -> list[Value]:
        y = op.Relu(x)
        return [op.Transpose(y, perm=[2, 1, 0]), y, op.Neg(op.Transpose(y, perm=[2, 1, 0]))]

    assert rewritten(emit, floats("x", 40, 50, 60), by=[TransposeInSteps()]).count("Transpose") == 4


@pytest.mark.parametrize(("used", "count"), [(False, 2), (True, 4)])
def test_reshapes_before_and_after(used: bool, count: int) -> None:
    """Two steps have three Reshapes, of which the first gives the dimensions of the input here. Used ones stay."""

    def emit(op: Builder, x: Value) -> list[Value]:
        tokens = op.Reshape(x, [40, 50, 60])
        reversed_ = op.Transpose(tokens, perm=[2, 1, 0])
        return [op.Reshape(reversed_, [60, -1]), *([op.Neg(tokens), op.Neg(reversed_)] if used else [])]

    assert rewritten(emit, floats("x", 40, 3000), by=[TransposeInSteps(), MergeReshapes()]).count("Reshape") == count


@pytest.mark.parametrize(
    ("dims", "perm", "steps"),
    [
        ((40, 50, 60), [2, 1, 0], 2),
        ((40, 50, 60), None, 2),
        ((40, 50, 60), [0, 2, 1], 1),  # one dimension moves
        ((40, 50, 60), [2, 0, 1], 1),
        ((8, 20, 30, 10), [2, 3, 0, 1], 1),  # one range moves
        ((8, 20, 30, 10), [1, 0, 3, 2], 2),
        ((8, 20, 30, 10), [3, 1, 2, 0], 2),
        ((8, 20, 30, 10), [3, 2, 1, 0], 3),
        ((8, 4, 5, 6, 7, 8), [5, 4, 3, 2, 1, 0], 5),
        ((2, 3, 4, 5, 6, 7, 8), [6, 5, 4, 3, 2, 1, 0], 1),  # too many ranges
        ((80, 90, 3), [1, 0, 2], 2),  # blocks of three floats
        ((80, 90, 8), [1, 0, 2], 1),
        ((80, 90, 64), [1, 0, 2], 1),
        ((8, 12, 10, 64), [2, 1, 0, 3], 1),  # blocks of 64 floats
        ((1, 80, 1, 90), [0, 3, 2, 1], 1),  # dimensions of 1 move: without them, one dimension moves
        ((1, 80, 1, 90), [2, 0, 1, 3], 1),
        ((16, 50, 8), [2, 1, 0], 2),
        ((16, 25, 8), [2, 1, 0], 1),  # fewer elements
        ((None, 50, 100), [2, 1, 0], 2),
        ((40, None, 110), [2, 1, 0], 2),
        ((40, None, None), [2, 1, 0], 1),  # two unknown dimensions
        ((None, 50, 80), [2, 1, 0], 1),
        ((None, 1, 60, 70), [3, 1, 2, 0], 2),
    ],
)
def test_conditions(dims: Sequence[int | None], perm: Sequence[int] | None, steps: int) -> None:
    assert _transposes(ir.DataType.FLOAT, dims, perm) == steps


@pytest.mark.parametrize(
    ("dtype", "dims", "perm", "steps"),
    [
        (ir.DataType.UINT8, (80, 90, 3), [1, 0, 2], 2),  # blocks of three bytes
        (ir.DataType.UINT8, (80, 90, 4), [1, 0, 2], 1),
        (ir.DataType.FLOAT16, (40, 50, 4), [1, 0, 2], 1),
        (ir.DataType.BOOL, (40, 50, 60), [2, 1, 0], 2),
        (ir.DataType.INT64, (40, 50, 60), [2, 1, 0], 2),
        (ir.DataType.DOUBLE, (40, 50, 60), [2, 1, 0], 2),
    ],
)
def test_types(dtype: ir.DataType, dims: Sequence[int], perm: Sequence[int], steps: int) -> None:
    assert _transposes(dtype, dims, perm) == steps


def test_strings_stay() -> None:
    model = graph(lambda op, x: op.Transpose(x), new_value(ir.DataType.STRING, (40, 50, 60), "x"))
    TransposeInSteps()(model)
    assert [node.op_type for node in model.graph] == ["Transpose"]


def test_a_known_size_of_zero() -> None:
    assert _transposes(ir.DataType.FLOAT, (40, 0, 60), [2, 1, 0]) == 1


def test_an_unknown_size_of_zero() -> None:
    model = graph(lambda op, x: op.Transpose(x, perm=[2, 1, 0]), floats("x", None, 50, 100))
    TransposeInSteps()(model)
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    assert session.run(None, {"x": np.zeros((0, 50, 100), np.float32)})[0].shape == (100, 50, 0)


@pytest.mark.parametrize("perm", [[3, 1, 2, 0], [3, 2, 1, 0], [1, 0, 3, 2], [0, 3, 2, 1]], ids=str)
def test_onnx_runtime_keeps_the_steps(perm: Sequence[int], tmp_path: Path) -> None:
    """Its optimizer would merge two Transposes without a Reshape between them."""
    model = graph(lambda op, x: op.Neg(op.Transpose(op.Relu(x), perm=list(perm))), floats("x", 8, 20, 30, 3))
    TransposeInSteps()(model)
    steps = sum(node.op_type == "Transpose" for node in model.graph)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), options)
    optimized = onnx.load(tmp_path / "optimized.onnx").graph.node
    assert steps >= 2
    assert sum(node.op_type == "Transpose" for node in optimized) == steps
