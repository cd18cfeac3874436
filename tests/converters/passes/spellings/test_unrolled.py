"""Recurrent layers and Loops as the operators of each step, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.openvino import convert
from converters.passes.spellings.unrolled import UnrolledForms, UnrolledLoops, UnrolledRecurrence
from converters.targets import limits
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, rewritten

STEPS, BATCH, SIZE, HIDDEN = 3, 2, 4, 5
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
BOTH = "bidirectional"
FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64


def _emit(kind: str, direction: str = "forward", *, given: str = "", lengths: Any = None, whole: bool = True, **attributes):
    """Return a layer with the inputs whose names are in ``given``."""
    rng = np.random.default_rng(0)
    count = 2 if direction == BOTH else 1

    def numbers(*dims: int) -> np.ndarray:
        return rng.standard_normal(dims).astype(np.float32)

    weights, recurrence = (numbers(count, GATES[kind] * HIDDEN, size) for size in (SIZE, HIDDEN))
    bias = numbers(count, 2 * GATES[kind] * HIDDEN) if "bias" in given else None
    hidden, cell = (numbers(count, BATCH, HIDDEN) if "state" in given else None for _ in range(2))
    peepholes = numbers(count, 3 * HIDDEN) if "peepholes" in given else None
    lengths = None if lengths is None else np.array(lengths, np.int32)
    states = 2 if kind == "LSTM" else 1

    def emit(op, x):
        inputs = [x, weights, recurrence, bias, lengths, hidden]
        inputs += [cell, peepholes] if kind == "LSTM" else []
        found = op.node(kind, *inputs, direction=direction, hidden_size=HIDDEN, outputs=1 + states, **attributes)
        return list(found) if whole else found[0]

    return emit


def _kept(emit: Any, *dims: int | None) -> bool:
    """Whether the layer is kept."""
    numbers = [np.random.default_rng(1).standard_normal((STEPS, BATCH, SIZE)).astype(np.float32)]
    found = rewritten(emit, floats("x", *(dims or (STEPS, BATCH, SIZE))), by=[UnrolledRecurrence()], numbers=numbers)
    return not GATES.keys().isdisjoint(found)


@pytest.mark.parametrize("direction", ["forward", "reverse", BOTH])
@pytest.mark.parametrize("given", ["", "bias", "bias state"])
@pytest.mark.parametrize(
    ("kind", "attributes"),
    [("GRU", {"linear_before_reset": 0}), ("GRU", {"linear_before_reset": 1}), ("LSTM", {}), ("RNN", {})],
)
def test_directions(kind: str, attributes: dict[str, Any], given: str, direction: str) -> None:
    assert not _kept(_emit(kind, direction, given=given, **attributes))
    assert not _kept(_emit(kind, direction, given=given, whole=False, **attributes))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", BOTH])
@pytest.mark.parametrize("lengths", [[1, 3], [3, 3], [2, 1], [0, 3]])
def test_lengths(kind: str, direction: str, lengths: list[int]) -> None:
    """The last states of an empty sequence are 0, not the first ones."""
    assert not _kept(_emit(kind, direction, given="bias state", lengths=lengths))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", BOTH])
@pytest.mark.parametrize("given", ["bias", "state"])
def test_computed_lengths(kind: str, direction: str, given: str) -> None:
    def emit(op, x, lengths):
        found = _emit(kind, direction, given=given, lengths=[1, 1])(op, x)
        found[0].producer().replace_input_with(4, lengths)
        return found

    x = np.random.default_rng(1).standard_normal((STEPS, BATCH, SIZE)).astype(np.float32)
    for lengths in ([0, 2], [3, 0], [1, 3]):
        inputs = floats("x", STEPS, BATCH, SIZE), new_value(ir.DataType.INT32, [BATCH], "lengths")
        found = rewritten(emit, *inputs, by=[UnrolledRecurrence()], numbers=[x, np.array(lengths, np.int32)])
        assert GATES.keys().isdisjoint(found)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", BOTH])
def test_limited_and_other_functions(kind: str, direction: str) -> None:
    functions = {"GRU": ["Tanh", "Relu"], "LSTM": ["Tanh", "Relu", "Sigmoid"], "RNN": ["Relu"]}[kind]
    functions = functions if direction == "forward" else [*functions, *functions[::-1]]
    assert not _kept(_emit(kind, direction, given="bias state", activations=functions))
    assert not _kept(_emit(kind, direction, given="bias", clip=0.3))


def test_peepholes() -> None:
    assert not _kept(_emit("LSTM", BOTH, given="bias state peepholes"))
    assert not _kept(_emit("LSTM", given="peepholes"))


@pytest.mark.parametrize(
    ("emit", "dims"),
    [
        (_emit("GRU"), (None, BATCH, SIZE)),
        (_emit("LSTM"), (STEPS, None, SIZE)),
        (_emit("RNN", activations=["LeakyRelu"], activation_alpha=[0.1]), ()),
        (_emit("RNN", activations=["Softsign"]), ()),
        (_emit("LSTM", input_forget=1), ()),
    ],
)
def test_near_misses(emit: Any, dims: tuple[int | None, ...]) -> None:
    assert _kept(emit, *dims)


def test_many_steps() -> None:
    numbers = [np.zeros((1025, 1, SIZE), np.float32)]
    emit = _emit("RNN", whole=False)
    assert rewritten(emit, floats("x", 1025, 1, SIZE), by=[UnrolledRecurrence()], numbers=numbers) == ["RNN"]


@pytest.mark.parametrize(
    ("emit", "by", "kept"),
    [
        (_emit("LSTM", "reverse"), limits.recurrent, False),
        (_emit("LSTM"), limits.recurrent, True),
        (_emit("GRU"), limits.reset_before, False),
        (_emit("GRU", linear_before_reset=1), limits.reset_before, True),
        (_emit("LSTM"), limits.reset_before, True),
        (_emit("RNN"), limits.several_sequences, False),
    ],
)
def test_forms(emit: Any, by: limits.Limit, kept: bool) -> None:
    found = rewritten(emit, floats("x", STEPS, BATCH, SIZE), by=[UnrolledForms((by,))])
    assert GATES.keys().isdisjoint(found) is not kept


@pytest.mark.parametrize("kind", sorted(GATES))
def test_missing_operators(kind: str) -> None:
    found = rewritten(_emit(kind), floats("x", STEPS, BATCH, SIZE), by=[UnrolledForms((), {"RNN": ""})])
    assert GATES.keys().isdisjoint(found) is (kind == "RNN")


@pytest.mark.parametrize("target", ["mnn", "opencv", "opencv4", "tract"])
@pytest.mark.parametrize(
    ("activations", "clip", "kept"), [(["tanh"], 0.0, True), (["relu"], 0.0, False), (["tanh"], 0.3, False)]
)
def test_targets(target: str, activations: list[str], clip: float, kept: bool) -> None:
    """tract ignores the function and the clip in silence, as MNN does. OpenCV has no RNN."""
    import openvino as ov
    from openvino import opset5 as ops

    data, state = ops.parameter([1, STEPS, SIZE], np.float32), ops.parameter([1, 1, 4], np.float32)
    weights = [np.ones((1, 4, size), np.float32) for size in (SIZE, 4)]
    layer = ops.rnn_sequence(
        data, state, np.array([STEPS]), *weights, np.ones((1, 4), np.float32), 4, "forward", activations, clip=clip
    )
    model = convert(ov.Model([layer.output(0)], [data, state]), target=target).model
    assert ("RNN" in {node.op_type for node in model.graph.node}) is (kept and "opencv" not in target)


def _loop(count: Any = 3, condition: Any = None, going: Any = None, inner: Any = None):
    """Return a Loop that appends to one carried value, multiplies another one, and stacks its sums."""

    def emit(op, x):
        def body(op, iteration, before, rows, factor):
            factor = op.Mul(factor, op.Add(op.Cast(iteration, to=FLOAT), 2))
            rows = op.Concat(rows, op.Mul(x, factor), axis=0)
            total = op.ReduceSum(rows, [0], keepdims=0)
            total = total if inner is None else inner(op, total)
            return before if going is None else going(op, total), rows, factor, total

        trips = op.const(count) if isinstance(count, int) else count(op, x)
        return op.loop(trips, condition, body, x, op.const(1.0), carried_dims=[[None, 3], []])

    return emit


def _branches(op, total):
    return op.if_(op.Less(op.ReduceMax(total, keepdims=0), 0.0), lambda op: op.Neg(total), lambda op: op.Abs(total))


@pytest.mark.parametrize(
    "emit",
    [
        _loop(),
        _loop(1),
        _loop(condition=True),
        _loop(going=lambda op, total: op.const(True)),
        _loop(inner=lambda op, total: op.loop(2, None, lambda op, i, c, y: (c, op.Add(y, op.Cast(i, to=FLOAT))), total)),
        _loop(lambda op, x: op.Squeeze(op.Shape(x, start=1, end=2), [0])),
    ],
)
def test_loops(emit: Any) -> None:
    assert "Loop" not in rewritten(emit, floats("x", 2, 3), by=[UnrolledLoops()])


def _counted(
    bound: Any = 5, start: Any = 0, step: Any = 2, trips: int | None = None, condition: Any = True, operator: str = "Less"
):
    """Return a Loop that doubles a value as long as a counter is below a bound, as TensorFlow writes it."""

    def emit(op, x):
        def body(op, iteration, before, counter, total):
            counter = op.Add(counter, op.const(step) if isinstance(step, int) else step(op, total))
            total = op.Add(total, op.Mul(total, op.Cast(iteration, to=FLOAT)))
            goes_on = op.node(operator, counter, op.const(bound) if isinstance(bound, int) else bound(op, x))
            return op.Reshape(op.And(goes_on, op.Less(op.Neg(counter), 9)), []), counter, total, op.Neg(total)

        first = op.const(start) if isinstance(start, int) else start(op, x)
        return op.loop(trips, condition, body, first, op.Neg(x))[1:]

    return emit


def _rounded(op, x):
    return op.Cast(op.Round(op.ReduceMax(op.Abs(x), keepdims=0)), to=INT64)


@pytest.mark.parametrize(
    ("emit", "rows"),
    [
        (_counted(), 3),
        (_counted(step=5), 1),
        (_counted(bound=4), 2),
        (_counted(trips=2), 2),
        (_counted(trips=3), 3),
        (_counted(trips=7), 3),
        (_counted(condition=None), 3),
        (_counted(start=9, step=-3, operator="Greater"), 2),
        (_counted(lambda op, x: op.Squeeze(op.Shape(x, start=1, end=2), [0])), 2),
    ],
)
def test_counted_loops(emit: Any, rows: int) -> None:
    names = rewritten(emit, floats("x", 2, 3), by=[UnrolledLoops()])
    assert "Loop" not in names and names.count("Neg") == rows + 1


@pytest.mark.parametrize(
    "emit",
    [
        _counted(_rounded),
        _counted(start=_rounded),
        _counted(step=lambda op, total: op.Add(_rounded(op, total), 1)),
        _counted(9000, step=1),
        _counted(condition=False),
    ],
)
def test_counted_loops_that_stay(emit: Any) -> None:
    assert not UnrolledLoops()(graph(emit, floats("x", 2, 3))).modified


@pytest.mark.parametrize(
    "emit",
    [
        _loop(lambda op, x: op.Cast(op.ReduceMax(op.Abs(x), keepdims=0), to=INT64)),
        _loop(going=lambda op, total: op.Less(op.ReduceMax(op.Abs(total), keepdims=0), 1e9)),
        _loop(inner=lambda op, total: _branches(op, total)),
        _loop(2000),
    ],
)
def test_loops_that_stay(emit: Any) -> None:
    numbers = [np.full((2, 3), 1e-3, np.float32)]
    model = graph(emit, floats("x", 2, 3))
    assert not UnrolledLoops()(model).modified
    assert "Loop" in rewritten(emit, floats("x", 2, 3), by=[UnrolledLoops()], numbers=numbers)
