"""A rewrite whose result differs from the original is detected and rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

from converters.openvino import convert
from converters.passes.patterns import PatternPass, rewrite
from converters.passes.verification import Verifier
from converters.passes.verification.regions import copied_model
from converters.passes.verification.verifier import difference
from onnx_specops.building import Value, new_value
from onnx_specops.replacing import checked_by, replace_value
from tests.converters.passes.graphs import floats, graph, operators

pytestmark = pytest.mark.unverified


def applied(model: ir.Model, root: str, pattern: Callable, emit: Callable, verifier: Verifier, **options: Any) -> ir.Model:
    """Return the model after a pass of one rewrite."""

    class Pass(PatternPass):
        rewrites = (rewrite(root, pattern, **options)(emit),)

    with checked_by(verifier):
        Pass()(model)
    return model


def swish(op, x):
    return op.Mul(x, op.Sigmoid(x))


def test_equal_computations_are_verified() -> None:
    verifier = Verifier()
    model = graph(lambda op, x: op.Mul(x, op.Sigmoid(x)), floats("x", None, 3))
    applied(model, "Mul", swish, lambda op, x: op.Div(x, op.Add(1, op.Exp(op.Neg(x)))), verifier, finite=True)
    assert (operators(model), verifier.differences) == (["Add", "Div", "Exp", "Neg"], [])
    assert verifier.verified.total() == 1


@pytest.mark.parametrize(("number", "differences"), [(0, 0), (1, 1)])
def test_a_constant_instead_of_a_computed_value_is_verified(number: int, differences: int) -> None:
    verifier = Verifier()
    model = graph(lambda op, x: op.Add(op.ReduceSum(op.Mul(x, 0), keepdims=0), x), floats("x", 2, 3))
    pattern, emit = lambda op, x: op.ReduceSum(op.Mul(x, 0), keepdims=0), lambda op, x: op.const(np.float32(number))
    applied(model, "ReduceSum", pattern, emit, verifier, finite=True)
    assert len(verifier.differences) == differences
    assert verifier.verified.total() == 1 - differences


def test_a_wrong_rewrite_is_rejected_and_reported() -> None:
    verifier = Verifier()

    def as_softsign(op, x):
        return op.Softsign(x)

    model = applied(graph(lambda op, x: op.Mul(x, op.Sigmoid(x)), floats("x")), "Mul", swish, as_softsign, verifier)
    assert operators(model) == ["Mul", "Sigmoid"]
    (found,) = verifier.differences
    assert "as_softsign at Mul: with normal numbers" in str(found)
    assert "elements differ" in found.text


@pytest.mark.parametrize(
    ("emit", "what"),
    [
        (lambda op, x: op.Abs(x), "a number below zero"),
        (lambda op, x: op.Where(op.Greater(op.Abs(x), 1e-20), op.Relu(x), op.const(np.float32(1))), "zero and tiny ones"),
        (lambda op, x: op.Min(op.Relu(x), 3000), "large ones"),
        (lambda op, x: op.Where(op.Equal(x, np.float32(np.inf)), op.const(np.float32(0)), op.Relu(x)), "infinity"),
        (lambda op, x: op.Where(op.IsNaN(x), op.const(np.float32(7)), op.Relu(x)), "NaN"),
        (lambda op, x: op.Expand(op.Relu(x), op.Add(op.Shape(x), 1)), "another shape"),
        (lambda op, x: op.Slice(op.Relu(x), [0], [3], [0]), "more than three of them"),
        (lambda op, x: op.Reshape(op.Relu(op.Reshape(x, [3, -1])), [-1]), "a size that is no multiple of three"),
        (lambda op, x: op.Relu(op.Unsqueeze(op.ReduceMax(x, [0], keepdims=0), [0])), "more than one of them"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_corner_cases_are_evaluated(emit: Callable, what: str) -> None:
    verifier = Verifier()
    applied(graph(lambda op, x: op.Relu(x), floats("x")), "Relu", lambda op, x: op.Relu(x), emit, verifier)
    assert len(verifier.differences) == 1, what


@pytest.mark.parametrize(("size", "evaluated"), [(1, True), (2, True), (3, False)])
def test_sizes_of_large_inputs(size: int, evaluated: bool) -> None:
    """The first size of an image is 2. Smaller sizes are evaluated, larger ones take too long."""
    verifier = Verifier()

    def emit(op, x):
        return op.Where(op.Equal(op.Shape(x, start=0, end=1), size), op.Abs(x), op.Relu(x))

    model = graph(lambda op, x: op.Relu(x), floats("x", None, 1024, 1024))
    applied(model, "Relu", lambda op, x: op.Relu(x), emit, verifier)
    assert len(verifier.differences) == evaluated


@pytest.mark.parametrize(("size", "differences"), [(2, 0), (None, 1)])
def test_sizes_that_contradict_the_known_shape_of_the_result_are_not_evaluated(size: int | None, differences: int) -> None:
    """A file may state the number of a Loop's iterations only by the shape of a value that depends on its result."""
    verifier = Verifier()

    def build(op, x):
        value = op.Relu(x)
        value.shape = ir.Shape([size, 3])
        return op.Neg(value)

    def emit(op, x):
        return op.Relu(op.Reshape(x, [2, 3]))

    applied(graph(build, floats("x", None, 3)), "Relu", lambda op, x: op.Relu(x), emit, verifier)
    assert len(verifier.differences) == differences
    assert verifier.verified.total() == 1 - differences


@pytest.mark.parametrize("computed", [True, False])
def test_minus_one_without_elements_is_ambiguous(computed: bool) -> None:
    """A computed target can be [0, -1]. A constant target [-1, 6] is defined for any number of rows."""
    verifier = Verifier()

    def emit(op, x):
        if not computed:
            return op.Reshape(op.Neg(x), [-1, 6])
        rows = op.Mul(op.Shape(x, start=0, end=1), 2)
        return op.Reshape(op.Neg(x), op.Concat(rows, op.const(np.array([-1])), axis=0))

    def wrong_without_rows(op, x, target):
        rows = op.Max(op.Shape(x, start=0, end=1), 1)
        columns = op.Where(op.Equal(op.Shape(x, start=0, end=1), 0), 7, 6)
        return op.Reshape(x, op.Concat(op.Sub(op.Mul(rows, 2), op.Where(op.Equal(columns, 7), 2, 0)), columns, axis=0),
                          allowzero=1)  # fmt: skip

    model = graph(emit, floats("x", None, 12))
    applied(model, "Reshape", lambda op, x, target: op.Reshape(x, target), wrong_without_rows, verifier)
    assert len(verifier.differences) == (0 if computed else 1)


def test_dimensions_of_one_name_are_equal() -> None:
    """The computation accepts nothing else."""
    verifier = Verifier()
    x, y = (new_value(ir.DataType.FLOAT, ["n", 4], name) for name in "xy")
    model = graph(lambda op, x, y: op.Concat(op.Neg(x), op.Neg(y), axis=1), x, y)
    pattern = lambda op, x, y: op.Concat(op.Neg(x), op.Neg(y), axis=1)  # noqa: E731
    applied(model, "Concat", pattern, lambda op, x, y: op.Neg(op.Concat(x, y, axis=1)), verifier)
    assert verifier.verified.total() == 1, verifier.skipped


def test_dimensions_are_multiples_of_others() -> None:
    """The computation accepts nothing else."""
    verifier = Verifier()
    x, y = new_value(ir.DataType.FLOAT, ["n", 8], "x"), new_value(ir.DataType.FLOAT, ["2*n", 4], "y")
    model = graph(lambda op, x, y: op.Concat(op.Neg(op.Reshape(x, [-1, 4])), op.Neg(y), axis=1), x, y)
    pattern = lambda op, x, y: op.Concat(op.Neg(x), op.Neg(y), axis=1)  # noqa: E731
    applied(model, "Concat", pattern, lambda op, x, y: op.Neg(op.Concat(x, y, axis=1)), verifier)
    assert verifier.verified.total() == 1, verifier.skipped


def test_integers_are_computed_from_shapes() -> None:
    """The index is the number of columns minus one, for any number of columns."""
    verifier = Verifier()
    model = graph(
        lambda op, x: op.Gather(op.Neg(x), op.Sub(op.Shape(x, start=1, end=2), 1), axis=1), floats("x", None, None)
    )
    pattern = lambda op, x, k: op.Gather(x, k, axis=1)  # noqa: E731
    applied(model, "Gather", pattern, lambda op, x, k: op.Slice(x, [-1], [2**62], [1]), verifier)
    assert (verifier.verified.total(), verifier.differences) == (1, [])


def test_a_reshaped_input_has_the_elements_of_the_input() -> None:
    """The replacement reads both: the elements of the one, the shape of the other."""
    verifier = Verifier()

    def emit(op, x):
        y = op.Reshape(op.Relu(x), [0, -1])
        return op.Reshape(y, op.Concat(op.Div(op.Shape(y), [1, 2]), [2], axis=0), allowzero=1)

    applied(
        graph(emit, floats("x", None, 2, None)),
        "Reshape",
        lambda op, x, inner, outer: op.Reshape(op.Reshape(x, inner), outer, allowzero=1),
        lambda op, x, inner, outer: op.Reshape(x, outer, allowzero=1),
        verifier,
        exclusive=False,
    )
    assert (verifier.differences, verifier.verified.total()) == ([], 1)


def test_a_branch() -> None:
    verifier = Verifier()

    def emit(op, x):
        return op.if_(op.Greater(op.ReduceSum(x, keepdims=0), 0), lambda op: op.Mul(x, op.Sigmoid(x)), lambda op: op.Neg(x))

    model = applied(graph(emit, floats("x", 3)), "Mul", swish, lambda op, x: op.Softsign(x), verifier)
    assert "Softsign" not in operators(model)
    assert len(verifier.differences) == 1


def test_known_properties_of_a_producer() -> None:
    """A Relu's result is not negative. This is used only if the pass declares it."""

    def run(through: bool) -> Verifier:
        verifier = Verifier()
        model = graph(lambda op, x: op.Abs(op.Relu(x)), floats("x"))
        relu, absolute = model.graph
        result = Value(name="copy", type=relu.outputs[0].type, shape=relu.outputs[0].shape)
        model.graph.append(ir.Node("", "Identity", [relu.outputs[0]], outputs=[result]))
        with checked_by(verifier):
            replace_value(absolute.outputs[0], result, through=[relu.outputs[0]] if through else [])
        return verifier

    assert run(True).verified.total() == 1
    assert len(run(False).differences) == 1


def test_one_output_of_a_node_is_given() -> None:
    """The region contains the TopK for its indices, but its values are an input."""

    def emit(op, x):
        values, indices = op.TopK(x, [2])
        return op.Add(values, op.Cast(indices, to=ir.DataType.FLOAT))

    model = graph(emit, floats("x", 5))
    top, add = (next(node for node in model.graph if node.op_type == operator) for operator in ("TopK", "Add"))
    between = [node for node in model.graph if node.op_type in ("TopK", "Cast", "Add")]
    copied = copied_model(between, [model.graph.inputs[0], top.outputs[0]], [add.outputs[0]])
    assert [value.name for value in copied.graph.inputs] == ["v0", "v1"]
    session = ort.InferenceSession(ir.to_proto(copied).SerializeToString(), providers=["CPUExecutionProvider"])
    given = {"v0": np.array([3, 9, 4, 8, 1], np.float32), "v1": np.array([100, 200], np.float32)}
    np.testing.assert_array_equal(session.run(None, given)[0], np.float32([101, 203]), strict=True)


def test_failed_evaluations_are_counted() -> None:
    verifier = Verifier()
    x = new_value(ir.DataType.FLOAT, None, "x")
    applied(graph(lambda op, x: op.Relu(x), x), "Relu", lambda op, x: op.Relu(x), lambda op, x: op.Abs(x), verifier)
    assert (verifier.skipped.total(), verifier.differences) == (1, [])


@pytest.mark.parametrize(
    ("expected", "got", "differs"),
    [
        ([1.0, 2.0], [1.0, 2.0000001], False),
        ([1.0, 2.0], [1.0, 2.001], True),
        ([np.inf, np.nan], [np.inf, np.nan], False),
        ([-np.inf], [-1e30], True),
        ([0.0], [np.nan], True),
        ([[1.0]], [1.0], True),
    ],
)
def test_difference(expected: list, got: list, differs: bool) -> None:
    assert bool(difference(np.array(expected, np.float32), np.array(got, np.float32))) == differs


def test_tolerance() -> None:
    one, other = np.array([1.0], np.float32), np.array([1.2], np.float32)
    assert difference(one, other)
    assert not difference(one, other, noise=0.25)


def test_numbers_between_two_levels() -> None:
    one = np.zeros(2000, np.float32)
    other = one.copy()
    other[7] = 0.1
    assert difference(one, other)
    assert not difference(one, other, level=0.1)
    assert difference(one, other, level=0.05), "more than a level"
    other[:20] = 0.1
    assert difference(one, other, level=0.1), "too many to be chance"


@pytest.mark.parametrize("with_inputs", [True, False])
def test_a_conversion_is_verified(with_inputs: bool) -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([-1, 4], np.float32, name="x")
    x.output(0).set_names({"x"})
    weights = ops.constant(np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32))
    y = ops.add(ops.matmul(x, weights, False, False), ops.constant(np.ones((1, 3), np.float32)))
    report = convert(ov.Model([ops.multiply(y, ops.constant(np.float32(2)))], [x]), verify=_inputs(with_inputs)).report
    assert report.verified is not None
    assert report.verified.verified == {"as_vector": 1, "product_of_matrices": 1}
    assert not report.verified.differences
    assert not report.verified.skipped


def _inputs(given: bool) -> Any:
    return {"x": np.ones((2, 4), np.float32)} if given else True


def test_inputs_that_fail_are_reported() -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([-1, -1], np.float32, name="x")
    x.output(0).set_names({"x"})
    model = ov.Model([ops.matmul(x, ops.constant(np.ones((4, 3), np.float32)), False, False)], [x])
    report = convert(model, verify={"x": np.ones((2, 5), np.float32)}).report
    assert report.verified is not None
    assert any("ONNX Runtime cannot run it" in reason for reason in report.verified.skipped)
