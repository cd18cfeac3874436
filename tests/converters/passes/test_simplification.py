"""Nodes without effect, with constant inputs, or with a matching predecessor are simplified; near misses remain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from converters.passes.simplification import FoldConstants, FuseBiases, MergeDataMovement, Simplify
from onnx_specops.building import new_value
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted
from tests.converters.passes.graphs import floats, graph, operators, run

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
W = np.arange(12, dtype=np.float32).reshape(4, 3) / 3


def _agree(emit, step, array: np.ndarray, *dims: int | None) -> list[str]:
    """Return the operators after a pass that changes no result."""
    x = floats("x", *dims)
    before = run(graph(emit, x), array)
    model = graph(emit, floats("x", *dims))
    step(model)
    for old, new in zip(before, run(model, array), strict=True):
        np.testing.assert_array_equal(new, old, strict=True)
    return operators(model)


MOVES = {
    "turned and back": (lambda op, x: op.Transpose(op.Transpose(x, perm=[1, 2, 0]), perm=[2, 0, 1]), ["Identity"]),
    "turned twice": (lambda op, x: op.Transpose(op.Transpose(x, perm=[1, 2, 0]), perm=[1, 2, 0]), ["Transpose"]),
    "reversed twice": (lambda op, x: op.Transpose(op.Transpose(x)), ["Identity"]),
    "turned by nothing": (lambda op, x: op.Transpose(x, perm=[0, 1, 2]), ["Identity"]),
    "turned once": (lambda op, x: op.Transpose(x, perm=[0, 2, 1]), ["Transpose"]),
    "turned around a softmax": (
        lambda op, x: op.Transpose(op.Softmax(op.Transpose(x, perm=[2, 0, 1]), axis=1), perm=[2, 0, 1]),
        ["Softmax", "Transpose"],
    ),
    "turned back around a softmax": (
        lambda op, x: op.Transpose(op.LogSoftmax(op.Transpose(x, perm=[0, 2, 1]), axis=-2), perm=[0, 2, 1]),
        ["LogSoftmax"],
    ),
    "turned around a softmax of another axis": (
        lambda op, x: op.Transpose(op.Softmax(op.Transpose(x, perm=[2, 0, 1]), axis=2), perm=[2, 0, 1]),
        ["Softmax", "Transpose", "Transpose"],
    ),
    "turned after a softmax": (
        lambda op, x: op.Transpose(op.Softmax(x, axis=1), perm=[2, 0, 1]),
        ["Softmax", "Transpose"],
    ),
    "turned around a softmax that is used": (
        lambda op, x: op.Add(
            op.Transpose(y := op.Softmax(op.Transpose(x, perm=[0, 2, 1]), axis=1), perm=[0, 2, 1]),
            op.ReduceSum(y, [1, 2], keepdims=1),
        ),
        ["Add", "ReduceSum", "Softmax", "Transpose", "Transpose"],
    ),
    "channels of pixels that become those of a line, and back": (
        lambda op, x: op.Transpose(op.Reshape(op.Transpose(x, perm=[2, 0, 1]), [4, 6]), perm=[1, 0]),
        ["Reshape"],
    ),
    "channels of tokens that become those of pixels, and back": (
        lambda op, x: op.Transpose(
            op.Reshape(op.Transpose(op.Reshape(x, [1, 6, 4]), perm=[0, 2, 1]), [1, 4, 2, 3]), perm=[0, 2, 3, 1]
        ),
        ["Reshape"],
    ),
    "channels of tokens that become those of turned pixels": (
        lambda op, x: op.Transpose(
            op.Reshape(op.Transpose(op.Reshape(x, [1, 6, 4]), perm=[0, 2, 1]), [1, 4, 2, 3]), perm=[0, 3, 2, 1]
        ),
        ["Reshape", "Reshape", "Transpose", "Transpose"],
    ),
    "channels that are divided": (
        lambda op, x: op.Transpose(
            op.Reshape(op.Transpose(op.Reshape(x, [1, 6, 4]), perm=[0, 2, 1]), [1, 3, 8]), perm=[0, 2, 1]
        ),
        ["Reshape", "Reshape", "Transpose", "Transpose"],
    ),
    "two reshapes": (lambda op, x: op.Reshape(op.Reshape(x, [6, 4]), [3, 8]), ["Reshape"]),
    "reshaped and back": (lambda op, x: op.Reshape(op.Reshape(x, [6, 4]), [2, 3, 4]), ["Identity"]),
    "reshape and unsqueeze": (lambda op, x: op.Unsqueeze(op.Reshape(x, [6, 4]), [0]), ["Reshape"]),
    "unsqueeze and squeeze": (lambda op, x: op.Squeeze(op.Unsqueeze(x, [1]), [1]), ["Identity"]),
    "reshape and turn": (lambda op, x: op.Transpose(op.Reshape(x, [6, 4]), perm=[1, 0]), ["Reshape", "Transpose"]),
    "turn of ones and reshape": (
        lambda op, x: op.Reshape(op.Transpose(op.Unsqueeze(x, [0]), perm=[1, 0, 2, 3]), [6, 4]),
        ["Reshape"],
    ),
    "two cuts": (lambda op, x: op.Slice(op.Slice(x, [1], [3], [1]), [0], [2], [2], [1]), ["Slice"]),
    "two cuts of one axis": (lambda op, x: op.Slice(op.Slice(x, [1], [3], [1]), [1], [2], [1]), ["Slice", "Slice"]),
    "two cuts of one axis, from behind": (
        lambda op, x: op.Slice(op.Slice(x, [1], [3], [1]), [1], [2], [-2]),
        ["Slice", "Slice"],
    ),
    "steps": (lambda op, x: op.Slice(op.Slice(x, [0], [3], [1], [2]), [3], [0], [2], [-2]), ["Slice"]),
    "concatenation of one": (lambda op, x: op.Concat(x, axis=1), ["Identity"]),
    "concatenation of two": (lambda op, x: op.Concat(x, x, axis=1), ["Concat"]),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    emit, left = MOVES[name]
    assert _agree(lambda op, x: op.Abs(emit(op, op.Neg(x))), _until_done(MergeDataMovement()), X, 2, 3, 4) == sorted(
        ["Abs", "Neg", *(operator for operator in left if operator != "Identity")]
    )


def _until_done(step):
    def apply(model: ir.Model) -> None:
        while step(model).modified:
            pass

    return apply


def test_channels_of_a_batch_of_unknown_size() -> None:
    """They move and back, unless the batch moves, too, or another size is unknown."""

    def emit(op, x, target, back):
        return op.Transpose(op.Reshape(op.Transpose(x, perm=[0, 2, 1]), target), perm=back)

    step = _until_done(MergeDataMovement())
    assert _agree(lambda op, x: emit(op, x, [-1, 4, 3, 1], [0, 2, 3, 1]), step, X, None, 3, 4) == ["Reshape"]
    left = ["Reshape", "Transpose", "Transpose"]
    assert _agree(lambda op, x: emit(op, x, [-1, 4, 3, 1], [1, 2, 3, 0]), step, X, None, 3, 4) == left
    assert _agree(lambda op, x: emit(op, x, [2, 4, -1, 1], [0, 2, 3, 1]), step, X, 2, None, 4) == left


def test_moves_of_unknown_dimensions() -> None:
    """Two unknown dimensions do not fit one target."""

    def emit(op, x):
        return op.Abs(op.Unsqueeze(op.Squeeze(op.Unsqueeze(x, [0]), [0]), [2]))

    assert _agree(emit, _until_done(MergeDataMovement()), X, None, 3, None) == ["Abs", "Squeeze", "Unsqueeze", "Unsqueeze"]
    assert _agree(emit, _until_done(MergeDataMovement()), X, None, 3, 4) == ["Abs", "Reshape"]


@pytest.mark.parametrize(
    ("through", "to", "left"),
    [
        (ir.DataType.DOUBLE, ir.DataType.FLOAT, []),
        (ir.DataType.DOUBLE, ir.DataType.FLOAT16, ["Cast"]),
        (ir.DataType.FLOAT16, ir.DataType.FLOAT, ["Cast", "Cast"]),
        (ir.DataType.INT64, ir.DataType.FLOAT, ["Cast", "Cast"]),
        (ir.DataType.DOUBLE, ir.DataType.INT32, ["Cast", "Cast"]),
    ],
)
def test_casts(through: ir.DataType, to: ir.DataType, left: list[str]) -> None:
    def emit(op, x):
        return op.Identity(op.node("Cast", op.node("Cast", x, to=through), to=to))

    assert _agree(emit, MergeDataMovement(), X / 3, 2, 3, 4) == sorted(["Identity", *left])


@pytest.mark.parametrize(("kind", "left"), [(ir.DataType.BOOL, ["Cast", "Cast"]), (ir.DataType.UINT8, ["Cast"])])
def test_casts_to_strings(kind: ir.DataType, left: list[str]) -> None:
    """Booleans that became integers are written as numbers. Without that cast, ONNX's reference writes True and False."""

    def emit(op, x):
        return op.Cast(op.Cast(x, to=ir.DataType.INT32), to=ir.DataType.STRING)

    model = graph(emit, new_value(kind, [2], "x"))
    MergeDataMovement()(model)
    assert operators(model) == left
    (result,) = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": np.array([1, 0], kind.numpy())})
    assert result.tolist() == ["1", "0"]


@pytest.mark.parametrize(("to", "left"), [(ir.DataType.FLOAT8E5M2, 2), (ir.DataType.BFLOAT16, 1)])
def test_casts_that_do_not_saturate(to: ir.DataType, left: int) -> None:
    attributes = {"saturate": 0} if to == ir.DataType.FLOAT8E5M2 else {}

    def emit(op, x):
        return op.Cast(op.Cast(op.Cast(x, to=ir.DataType.FLOAT), to=to, **attributes), to=ir.DataType.FLOAT)

    model = graph(emit, new_value(ir.DataType.FLOAT16, [2, 3], "x"))
    MergeDataMovement()(model)
    inner = [node for node in model.graph if node.op_type == "Cast"][:-1]
    assert len(inner) == left
    assert inner[-1].attributes.get_int("saturate", 1) == (0 if attributes else 1)


def test_constants_are_folded() -> None:
    big = np.arange(20000, dtype=np.float32)

    def emit(op, x):
        return op.Add(x, op.Mul(op.node("Sin", op.const(big)), 2.0))

    array = big / 7
    x = floats("x", 20000)
    before, model = run(graph(emit, x), array), graph(emit, floats("x", 20000))
    FoldConstants()(model)
    Simplify()(model)
    np.testing.assert_array_equal(run(model, array)[0], before[0], strict=True)
    assert operators(model) == ["Add"]


def test_other_values_are_unchanged() -> None:
    """Random numbers, results far larger than their inputs, and quantized weights."""

    def emit(op, x):
        random = op.RandomUniform(shape=[3])
        large = op.Expand(op.node("Sin", op.const(np.ones(5000, np.float32))), op.const([40, 5000]))
        weights = op.DequantizeLinear(op.const(np.ones(5000, np.int8)), op.const(np.float32(0.5)))
        return op.Add(x, random), large, op.Neg(weights)

    model = graph(emit, floats("x", 3))
    Simplify(stored=True)(model)
    assert operators(model) == ["Add", "DequantizeLinear", "Expand", "Neg", "RandomUniform"]


def test_small_weights_are_decompressed_on_request() -> None:
    def emit(op, x):
        return op.Add(
            x, op.Mul(op.Cast(op.const(np.ones(1 << 17, np.int8)), to=1), op.const(np.full(1 << 17, 0.5, np.float32)))
        )

    model = graph(emit, floats("x", 1 << 17))
    FoldConstants(stored=True)(model)
    Simplify(stored=True)(model)
    assert operators(model) == ["Add"]


@pytest.mark.parametrize(
    ("used", "found"),
    [
        (lambda op, large: op.Slice(large, [69_000], [69_003]), ["Add"]),
        (lambda op, large: op.Slice(op.Neg(large), [69_000], [69_003]), ["Add"]),
        (lambda op, large: op.ReduceMax(large, [0], keepdims=1), ["Add"]),
        (lambda op, large: large, ["Add", "Range"]),  # another node uses it
        (lambda op, large: op.Neg(large), ["Add", "Neg", "Range"]),
    ],
)
def test_large_intermediate_results(used, found: list[str]) -> None:
    """Only some of the numbers are used."""

    def emit(op, x):
        return op.Add(x, used(op, op.Range(op.const(0), op.const(70_000), op.const(1))))

    model = graph(emit, new_value(ir.DataType.INT64, (1,), "x"))
    before = run(model, np.ones(1, np.int64))
    FoldConstants(stored=True)(model)
    Simplify(stored=True)(model)
    np.testing.assert_array_equal(run(model, np.ones(1, np.int64))[0], before[0], strict=True)
    assert operators(model) == found


@pytest.mark.parametrize(("doubled", "found"), [(14, False), (16, True), (50, True)])
@pytest.mark.unverified  # 2^58 numbers
def test_results_that_grow_at_each_step(doubled: int, found: bool) -> None:
    """Each Concat has as many elements as its inputs, and the last one 2^50 times as many as the constant."""

    def emit(op, x):
        value = op.const(np.ones(1 << 8, np.float32))
        for _ in range(doubled):
            value = op.Concat(value, value, axis=0)
        return op.Add(x, op.Gather(value, [0]))

    model = graph(emit, floats("x", 1))
    Simplify(stored=True)(model)
    assert ("Concat" in operators(model)) is found
    assert max(value.const_value.size for value in model.graph.initializers.values()) <= 1 << 16


@pytest.mark.parametrize(("others", "found"), [(3 << 20, False), (3 << 19, True)])
def test_concatenated_weights(others: int, found: bool) -> None:
    """Two copies of a large constant are a constant on request if all constants have as many elements."""

    def emit(op, x):
        weights = op.const(np.ones(3 << 20, np.float32))
        other = op.const(np.arange(others, dtype=np.float32))
        return op.Add(x, op.Concat(weights, weights, axis=0)), op.Mul(op.Slice(x, [0], [others]), other)

    model = graph(emit, floats("x", 6 << 20))
    Simplify(stored=True)(model)
    assert ("Concat" in operators(model)) is found


def _convolved(bias, times: int = 1):
    def emit(op, x):
        weight = np.arange(5 * 3 * 2, dtype=np.float32).reshape(5, 3, 2)
        product = op.Conv(x, weight)
        results = [op.Add(product, np.asarray(bias, np.float32))]
        return results + [op.Neg(product) for _ in range(times - 1)]

    return emit


@pytest.mark.parametrize(
    ("emit", "left"),
    [
        (_convolved(np.arange(5).reshape(1, 5, 1)), ["Conv"]),
        (_convolved(np.arange(5).reshape(5, 1)), ["Conv"]),
        (_convolved(3), ["Conv"]),
        (_convolved(np.arange(3)), ["Add", "Conv"]),
        (_convolved(np.arange(10).reshape(2, 5, 1)), ["Add", "Conv"]),
        (_convolved(np.arange(5).reshape(1, 1, 5, 1)), ["Add", "Conv"]),
        (_convolved(np.arange(5).reshape(1, 5, 1), times=2), ["Add", "Conv", "Neg"]),
    ],
    ids=["channels", "no batch", "number", "columns", "batches", "more dimensions", "used twice"],
)
def test_biases_of_convolutions(emit, left: list[str]) -> None:
    assert _agree(emit, FuseBiases(), X, 2, 3, 4) == left


@pytest.mark.parametrize(
    ("bias", "left"),
    [
        (np.arange(3), ["Gemm"]),
        (np.arange(3).reshape(1, 3), ["Gemm"]),
        (np.arange(6).reshape(2, 3), ["Add", "MatMul"]),
        (np.arange(3).reshape(1, 1, 3), ["Add", "MatMul"]),
    ],
    ids=["row", "matrix of a row", "matrix", "more dimensions"],
)
def test_biases_of_products(bias: np.ndarray, left: list[str]) -> None:
    def emit(op, x):
        return op.Add(op.MatMul(x, W), bias.astype(np.float32))

    assert _agree(emit, FuseBiases(), X[0, :2], 2, 4) == left


def test_a_product_with_more_dimensions_is_unchanged() -> None:
    def emit(op, x):
        return op.Add(op.MatMul(x, W), np.arange(3, dtype=np.float32))

    assert _agree(emit, FuseBiases(), X, 2, 3, 4) == ["Add", "MatMul"]


def test_integers_have_no_gemm() -> None:
    def emit(op, x):
        return op.Add(op.MatMul(x, np.ones((4, 3), np.int32)), np.arange(3, dtype=np.int32))

    x = new_value(ir.DataType.INT32, (2, 4), "x")
    model = graph(emit, x)
    FuseBiases()(model)
    assert operators(model) == ["Add", "MatMul"]


def test_common_subexpressions_are_computed_once() -> None:
    def emit(op, x):
        return op.Add(op.Sin(x), op.Sin(x))

    assert _agree(emit, Simplify(), X, 2, 3, 4) == ["Add", "Sin"]


def test_a_branch_that_returns_an_outer_value_keeps_its_identity() -> None:
    """The output of a graph must be computed in that graph."""

    def emit(op, x):
        outside = op.Sin(x)
        return op.if_(op.Greater(op.ReduceSum(x, keepdims=0), 0.0), lambda inner: outside, lambda inner: inner.Neg(outside))

    assert _agree(emit, Simplify(), X, 2, 3, 4) == ["Greater", "Identity", "If", "Neg", "ReduceSum", "Sin"]


@pytest.mark.parametrize(
    ("emit", "left"),
    [
        (lambda op, x: op.Add(op.Softmax(x, axis=1), op.Softmax(x, axis=1)), ["Add", "Softmax"]),
        (lambda op, x: op.Add(op.Softmax(x, axis=1), op.Softmax(x, axis=2)), ["Add", "Softmax", "Softmax"]),
        (lambda op, x: op.Sum(*(op.Softmax(x, axis=axis) for axis in (1, 2, 2, 1))), ["Softmax", "Softmax", "Sum"]),
        (lambda op, x: op.Sub(op.Sub(x, 1.0), op.Sub(1.0, x)), ["Sub", "Sub", "Sub"]),
        (lambda op, x: op.Add(op.LeakyRelu(x, alpha=0.0), op.LeakyRelu(x, alpha=-0.0)), ["Add", "LeakyRelu", "LeakyRelu"]),
        (lambda op, x: op.Add(op.Add(x, op.RandomUniform(shape=[1])), op.RandomUniform(shape=[1])),
         ["Add", "Add", "RandomUniform", "RandomUniform"]),
        (lambda op, x: op.Sub(op.Bernoulli(op.Sigmoid(x)), op.Bernoulli(op.Sigmoid(x))),
         ["Bernoulli", "Bernoulli", "Sigmoid", "Sub"]),
    ],
    ids=["equal", "another axis", "two each", "another order", "zeros of two signs", "random numbers", "random choices"],
)  # fmt: skip
def test_duplicates(emit, left: list[str]) -> None:
    model = graph(emit, floats("x", 2, 3, 4))
    Simplify()(model)
    assert operators(model) == left


def test_duplicates_of_several_results() -> None:
    """Equal nodes with other results in use; the results of both are outputs of the graph."""

    def emit(op, x):
        first, second = op.Split(x, num_outputs=2, axis=1, outputs=2), op.Split(x, num_outputs=2, axis=1, outputs=2)
        return op.Neg(first[0]), op.Neg(second[1]), op.Neg(first[0])

    array = X[:, :2]
    before = run(graph(emit, floats("x", 2, 2, 4)), array)
    model = graph(emit, floats("x", 2, 2, 4))
    Simplify()(model)
    assert operators(model) == ["Neg", "Neg", "Neg", "Split"]
    for old, new in zip(before, run(model, array), strict=True):
        np.testing.assert_array_equal(new, old, strict=True)


def test_limit() -> None:
    """Weights stored in fewer bits remain unless they are small."""

    def emit(op, x):
        small, large = (op.Cast(op.const(np.ones(size, np.int8)), to=1) for size in (5000, 5001))
        return op.Add(op.Slice(x, [0], [5000]), small), op.Add(x, large)

    model = graph(emit, floats("x", 5001))
    Simplify(limit=5000)(model)
    assert operators(model) == ["Add", "Add", "Cast", "Slice"]
    model = graph(emit, floats("x", 5001))
    Simplify(limit=5000, fold=False)(model)
    assert operators(model) == ["Add", "Add", "Cast", "Cast", "Slice"]


def test_halves() -> None:
    """Before casts are inserted, OpenVINO's 16-bit floats have the precision of float32."""

    def emit(op, x):
        third = op.Cast(op.Div(op.Cast(op.const(np.float32(1)), to=10), op.const(np.float16(3))), to=1)
        return op.Mul(op.Add(x, op.Sin(op.const(np.float32(1)))), third)

    model = graph(emit, floats("x", 2))
    Simplify(halves=False)(model)
    assert operators(model) == ["Add", "Cast", "Cast", "Div", "Mul"]
    Simplify()(model)
    assert operators(model) == ["Add", "Mul"]


@pytest.mark.parametrize(
    ("emit", "left"),
    [
        (lambda op, x: op.Reshape(x, [0, -1, 4]), []),
        (lambda op, x: op.Reshape(x, [0, 0, 4]), []),
        (lambda op, x: op.Reshape(x, [-1, 0, 4]), []),
        (lambda op, x: op.Reshape(x, [-1, 2, 4]), ["Reshape"]),  # it is 2 in this run only
        (lambda op, x: op.Reshape(x, [0, -1]), ["Reshape"]),
        (lambda op, x: op.Add(x, np.zeros((1, 1, 4), np.float32)), []),
        (lambda op, x: op.Add(np.float32(0), x), []),
        (lambda op, x: op.Add(x, np.array([0, 0, 0, 1e-9], np.float32)), ["Add"]),
        (lambda op, x: op.Add(x, np.zeros((1, 1, 1, 4), np.float32)), ["Add"]),  # another rank
        (lambda op, x: op.Add(x, np.zeros((2, 1), np.float32)), ["Add"]),  # the dimension may be 1
        (lambda op, x: op.Sub(x, np.float32(0)), []),
        (lambda op, x: op.Sub(np.float32(0), x), ["Sub"]),
        (lambda op, x: op.Mul(np.ones(4, np.float32), x), []),
        (lambda op, x: op.Div(x, np.float32(1)), []),
        (lambda op, x: op.Div(np.float32(1), x), ["Div"]),
        (lambda op, x: op.Mul(x, np.float32(0)), ["Mul"]),
    ],
)
def test_arithmetic_and_reshapes_without_effect(emit, left: list[str]) -> None:
    array = X[:, :2] + 0.25
    assert _agree(lambda op, x: op.Abs(emit(op, op.Neg(x))), MergeDataMovement(), array, None, None, 4) == sorted(
        ["Abs", "Neg", *left]
    )


@pytest.mark.parametrize(
    ("stored", "left"),
    [
        (lambda op, x: op.Mul(op.Cast(op.const(np.ones((5, 3, 2000), np.int8)), to=1), 0.5), ["Cast", "Conv", "Mul"]),
        (lambda op, x: op.Neg(op.Cast(op.const(np.ones((5, 3, 2000), np.int8)), to=1)), ["Add", "Cast", "Conv", "Neg"]),
        (lambda op, x: op.DequantizeLinear(op.const(np.ones((5, 3, 2000), np.int8)), op.const(np.float32(0.5))),
         ["Add", "Conv", "DequantizeLinear"]),
        (lambda op, x: op.Mul(op.Cast(op.const(np.ones((5, 3, 2000), np.int8)), to=1), op.ReduceMean(x)),
         ["Add", "Cast", "Conv", "Mul", "ReduceMean"]),
    ],
    ids=["computed from constants", "another operator", "quantized", "computed from the input"],
)  # fmt: skip
def test_biases_of_stored_weights(stored, left: list[str]) -> None:
    def emit(op, x):
        return op.Add(op.Conv(x, stored(op, x)), np.arange(5, dtype=np.float32).reshape(5, 1))

    model = graph(emit, floats("x", 1, 3, 2000))
    FuseBiases()(model)
    assert operators(model) == left


def test_operators_of_the_domain() -> None:
    """Those with a body are computed by it; random numbers remain."""

    def emit(op, x):
        data, updates = np.arange(6, dtype=np.float32), np.array([4, 5], np.float32)
        scattered = op.specops.ScatterElementsUpdate(data, np.array([1, 1]), updates, np.array([0]), reduction="sum")
        random = op.specops.RandomUniform(np.array([6]), np.float32(0), np.float32(1))
        return op.Add(x, scattered), op.Add(x, random)

    model = graph(emit, floats("x", 6))
    Simplify()(model)
    assert operators(model) == ["Add", "Add", "RandomUniform"]
    (result,) = (value.const_value for value in model.graph.initializers.values() if "folded" in (value.name or ""))
    np.testing.assert_array_equal(result.numpy(), np.float32([0, 10, 2, 3, 4, 5]), strict=True)


@pytest.mark.parametrize("operation", ["add", "subtract"])
def test_negative_zeros_of_neutral_arithmetic(operation: str, oracle: Oracle, tmp_path: Path) -> None:
    """OpenVINO keeps the sign of -0.0 + 0, because it removes the addition."""
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([4], np.float32)
    result = ops.divide(ops.constant(np.float32(1)), getattr(ops, operation)(x, ops.constant(np.float32(0))))
    model = converted(ov.Model([result], [x]), [np.array([-0.0, 0.0, -2.0, 4.0], np.float32)], oracle, tmp_path)
    assert [node.op_type for node in model.graph.node] in (["Div"], ["Reciprocal"])
