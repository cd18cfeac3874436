"""Recurrent cells in the operators of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from converters.passes.recurrent_loops import FuseRecurrentLoops
from converters.passes.while_loops import CountIterations, RepeatRows, while_loops
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, rewritten
from tests.converters.passes.while_loops.loops import BATCH, HIDDEN, SIZE, STEPS, guarded, plain_step, recurrence

Step = Callable[..., Sequence[Value]]


def matrix(seed: int, *dims: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32) / 2


W, R = (lambda gates: matrix(1, SIZE, gates * HIDDEN)), (lambda gates: matrix(2, HIDDEN, gates * HIDDEN))
B, OWN = (lambda gates: matrix(3, 1, gates * HIDDEN)), (lambda gates: matrix(4, 1, gates * HIDDEN))


def gates_of(op: Builder, x: Value, h: Value, gates: int, bias: Any = None) -> Value:
    total = op.Add(op.MatMul(x, W(gates)), op.MatMul(h, R(gates)))
    result: Value = op.Add(total, B(gates) if bias is None else bias)
    return result


def lstm(
    total: Callable[..., Value] = lambda op, x, h, c: gates_of(op, x, h, 4),
    order: Sequence[int] = (0, 1, 2, 3),
    gate: Sequence[str] = ("Sigmoid",) * 3,
    functions: Sequence[str] = ("Tanh", "Tanh"),
    cell: Callable[..., Value] = lambda op, f, c, i, g: op.Add(op.Mul(f, c), op.Mul(i, g)),
    hidden: Callable[..., Value] = lambda op, o, c: op.Mul(o, c),
) -> Step:
    def emit(op: Builder, x: Value, h: Value, c: Value) -> list[Value]:
        parts = op.Split(total(op, x, h, c), axis=1, num_outputs=4, outputs=4)
        i, f, g, o = (parts[place] for place in order)
        i, f, o = (op.node(name, value) for name, value in zip(gate, (i, f, o), strict=True))
        after = cell(op, f, c, i, op.node(functions[0], g))
        return [hidden(op, o, op.node(functions[1], after)), after]

    return emit


def columns(op: Builder, value: Value, place: int) -> Value:
    result: Value = op.Slice(value, [place * HIDDEN], [(place + 1) * HIDDEN], [1])
    return result


def gru(
    before: bool = False,
    mixed: Callable[..., Value] = lambda op, z, h, new: op.Add(
        op.Mul(z, h), op.Mul(op.Sub(np.ones((1, 1), np.float32), z), new)
    ),
    functions: Sequence[str] = ("Sigmoid", "Sigmoid", "Tanh"),
    reset: Callable[..., Value] = lambda op, r, h: op.Mul(r, h),
    order: Sequence[int] = (0, 1, 2),
) -> Step:
    def emit(op: Builder, x: Value, h: Value) -> list[Value]:
        given = op.Add(op.MatMul(x, W(3)), B(3))
        parts = op.Split(given, axis=1, num_outputs=3, outputs=3)
        own = op.MatMul(h, R(2)) if before else op.Add(op.MatMul(h, R(3)), OWN(3))
        z = op.node(functions[0], op.Add(parts[order[0]], columns(op, own, order[0])))
        r = op.node(functions[1], op.Add(parts[order[1]], columns(op, own, order[1])))
        last = op.MatMul(reset(op, r, h), R(1)) if before else reset(op, r, columns(op, own, order[2]))
        return [mixed(op, z, h, op.node(functions[2], op.Add(parts[order[2]], last)))]

    return emit


def rnn(function: str = "Tanh", total: Callable[..., Value] = lambda op, x, h: gates_of(op, x, h, 1)) -> Step:
    return lambda op, x, h: [op.node(function, total(op, x, h))]


def found(cell: Step, states: int, **changed: Any) -> list[str]:
    """Return the operators after the passes."""
    dims = changed.pop("dims", (STEPS, BATCH, SIZE))
    rows = changed.pop("rows", BATCH)
    inputs = [floats("x", *dims), *(floats(name, rows, HIDDEN) for name in "hc"[:states])]
    return rewritten(recurrence(cell=cell, **changed), *inputs, by=[*while_loops(), FuseRecurrentLoops()])


def more(op: Builder, h: Value, value: Any) -> Value:
    """Return weights that depend on the state."""
    result: Value = op.Add(op.const(value), op.ReduceMean(h, keepdims=0))
    return result


@pytest.mark.parametrize(
    ("cell", "is_fused"),
    [
        (lstm(), True),
        (lstm(order=(1, 3, 0, 2)), True),
        (lstm(order=(0, 0, 2, 3)), True),  # one gate used twice
        (lstm(gate=("Sigmoid", "Sigmoid", "Relu")), False),
        (lstm(gate=("Relu",) * 3), True),
        (lstm(gate=("HardSigmoid",) * 3), False),
        (lstm(functions=("Relu", "Tanh")), True),
        (lstm(functions=("Sigmoid", "Sigmoid")), True),
        (lstm(functions=("Softsign", "Tanh")), False),
        (lstm(cell=lambda op, f, c, i, g: op.Add(op.Mul(g, i), op.Mul(c, f))), True),
        (lstm(cell=lambda op, f, c, i, g: op.Sub(op.Mul(f, c), op.Mul(i, g))), False),
        (lstm(cell=lambda op, f, c, i, g: op.Add(op.Mul(f, i), op.Mul(c, g))), False),
        (lstm(cell=lambda op, f, c, i, g: op.Add(op.Mul(f, op.Neg(c)), op.Mul(i, g))), False),
        (lstm(hidden=lambda op, o, c: op.Mul(c, o)), True),
        (lstm(hidden=lambda op, o, c: op.Mul(op.Mul(o, c), 0.5)), False),
        (lstm(lambda op, x, h, c: op.Add(op.MatMul(x, W(4)), op.MatMul(h, R(4)))), True),
        (lstm(lambda op, x, h, c: op.Add(op.MatMul(x, W(4)), op.Add(op.Add(OWN(4)[0], op.MatMul(h, R(4))), B(4)))), True),
        (lstm(lambda op, x, h, c: op.Add(gates_of(op, x, h, 4), 0.5)), False),  # a bias of one element
        (lstm(lambda op, x, h, c: op.Add(gates_of(op, x, h, 4), matrix(5, BATCH, 16))), False),  # a bias for each row
        (lstm(lambda op, x, h, c: gates_of(op, x, c, 4)), False),
        (lstm(lambda op, x, h, c: gates_of(op, op.Neg(x), h, 4)), False),
        (lstm(lambda op, x, h, c: op.Add(gates_of(op, x, h, 4), op.MatMul(c, R(4)))), False),
        (lstm(lambda op, x, h, c: op.Add(op.MatMul(x, W(4)), B(4))), False),
        (lstm(lambda op, x, h, c: op.Add(op.MatMul(h, R(4)), B(4))), False),
        (lstm(lambda op, x, h, c: gates_of(op, x, h, 4, op.Mul(op.ReduceMean(h, [0]), np.ones((1, 16)))) if False else
              op.Add(op.MatMul(x, more(op, h, W(4))), op.MatMul(h, R(4)))), False),
        (lstm(lambda op, x, h, c: op.Sub(op.MatMul(x, W(4)), op.MatMul(h, R(4)))), False),
        (lstm(lambda op, x, h, c: op.Relu(gates_of(op, x, h, 4))), False),
    ],
)  # fmt: skip
def test_lstm(cell: Step, is_fused: bool) -> None:
    emitted = found(cell, 2)
    assert ("LSTM" in emitted, "Loop" in emitted) == (is_fused, not is_fused)


def test_lstm_with_its_own_functions() -> None:
    """The results do not depend on the other functions of the operator."""
    assert "LSTM" in found(lstm(functions=("Relu", "Sigmoid"), gate=("Tanh",) * 3), 2)


@pytest.mark.parametrize(
    ("cell", "is_fused"),
    [
        (gru(), True),
        (gru(True), True),
        (gru(order=(1, 0, 2)), True),
        (gru(functions=("Sigmoid", "Tanh", "Tanh")), False),
        (gru(True, functions=("Sigmoid", "Tanh", "Tanh")), False),
        (gru(functions=("Tanh", "Tanh", "Relu")), True),
        (gru(functions=("Sigmoid", "Sigmoid", "Elu")), False),
        (gru(mixed=lambda op, z, h, new: op.Add(op.Mul(op.Sub(1.0, z), new), op.Mul(h, z))), True),
        (gru(mixed=lambda op, z, h, new: op.Add(op.Mul(z, new), op.Mul(op.Sub(1.0, z), h))), False),
        (gru(mixed=lambda op, z, h, new: op.Add(op.Mul(z, h), op.Mul(op.Sub(2.0, z), new))), False),
        (gru(mixed=lambda op, z, h, new: op.Add(op.Mul(z, h), op.Mul(op.Sub(z, 1.0), new))), False),
        (gru(mixed=lambda op, z, h, new: op.Add(op.Mul(z, h), op.Mul(op.Sub(np.float32([[1, 1, 1, 0.5]]), z), new))), False),
        (gru(reset=lambda op, r, h: op.Mul(h, r)), True),
        (gru(True, reset=lambda op, r, h: op.Mul(h, r)), True),
        (gru(reset=lambda op, r, h: op.Add(r, h)), False),
        (gru(True, reset=lambda op, r, h: op.Add(r, h)), False),
        (gru(True, reset=lambda op, r, h: h), False),
    ],
)
def test_gru(cell: Step, is_fused: bool) -> None:
    emitted = found(cell, 1)
    assert ("GRU" in emitted, "Loop" in emitted) == (is_fused, not is_fused)


@pytest.mark.parametrize(
    ("cell", "is_fused"),
    [
        (rnn(), True),
        (rnn("Relu"), True),
        (rnn("Sigmoid"), True),
        (rnn("Erf"), False),
        (rnn(total=lambda op, x, h: op.Add(op.MatMul(x, W(1)), op.MatMul(h, R(1)))), True),
        (rnn(total=lambda op, x, h: op.Add(op.MatMul(x, W(1)), h)), False),
        (rnn(total=lambda op, x, h: op.Add(op.MatMul(x, W(1)), op.MatMul(op.Mul(h, 0.5), R(1)))), False),
        (rnn(total=lambda op, x, h: op.Add(columns(op, op.MatMul(x, W(2)), 1), columns(op, op.MatMul(h, R(3)), 2))), True),
        (rnn(total=lambda op, x, h: op.Add(op.MatMul(x, W(1)), op.Slice(op.MatMul(h, R(2)), [0], [8], [1], [2]))), False),
        (
            rnn(
                total=lambda op, x, h: op.Add(op.MatMul(x, W(1)), op.Split(op.MatMul(h, R(2)), [4, 4], axis=1, outputs=2)[1])
            ),
            True,
        ),
    ],
)
def test_rnn(cell: Step, is_fused: bool) -> None:
    emitted = found(cell, 1)
    assert ("RNN" in emitted, "Loop" in emitted) == (is_fused, not is_fused)


def last_only(op: Builder, counter: Value, lists: Value, *states: Value) -> list[Value]:
    return list(states)


@pytest.mark.parametrize(
    ("changed", "is_fused"),
    [
        ({}, True),
        ({"results": last_only}, True),
        ({"results": lambda op, counter, lists, *states: [counter, lists]}, True),
        ({"limit": STEPS - 1}, False),
        ({"limit": STEPS - 1, "length": STEPS - 1}, False),  # not all steps
        ({"start": 1}, False),
        ({"following": lambda op, counter: op.Add(counter, np.int32(2))}, False),
        ({"step": lambda op, x, counter: op.Mul(guarded(op, x, counter), 0.5)}, False),
        ({"step": lambda op, x, counter: guarded(op, x, op.Sub(np.int32(STEPS - 1), counter))}, False),  # its guard stays
        ({"step": lambda op, x, counter: op.Gather(x, op.Sub(np.int32(-1), counter), axis=0)}, True),  # backward
        ({"step": lambda op, x, counter: op.Gather(op.Relu(x), counter, axis=0)}, False),
        ({"dims": (STEPS, None, SIZE), "rows": None}, True),
        ({"dims": (STEPS, 1, SIZE), "rows": 1}, True),
        ({"dims": (STEPS, 1, SIZE)}, True),
        ({"rows": 1}, True),
    ],
)  # fmt: skip
def test_loops(changed: dict[str, Any], is_fused: bool) -> None:
    emitted = found(lstm(), 2, **changed)
    assert ("LSTM" in emitted, "Loop" in emitted) == (is_fused, not is_fused)


@pytest.mark.parametrize("rows", [(1, 1, 1), (3, 3, 3), (3, 1, 1), (1, 3, 1), (1, 1, 3), (3, 1, 3), (1, 3, 3)])
def test_repeated_rows(rows: tuple[int, int, int]) -> None:
    """Data or a state of one row is used for all rows of the others."""
    shapes = (STEPS, rows[0], SIZE), (rows[1], HIDDEN), (rows[2], HIDDEN)
    rng = np.random.default_rng(0)
    numbers = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    inputs = floats("x", STEPS, None, SIZE), floats("h", None, HIDDEN), floats("c", None, HIDDEN)
    emit = recurrence(cell=lstm(), step=plain_step)
    assert "LSTM" in rewritten(emit, *inputs, by=[*while_loops(), FuseRecurrentLoops()], numbers=numbers)


@pytest.mark.parametrize(
    ("changed", "is_repeated"),
    [
        ({}, True),
        ({"limit": 0}, True),  # one iteration
        ({"most": np.int64(0)}, False),  # the last states are the initial ones
        ({"cell": lambda op, x, h: [op.Tanh(h)]}, False),
        ({"cell": rnn("Erf")}, False),
        ({"step": lambda op, x, counter: op.Relu(op.Gather(x, counter, axis=0))}, False),
        ({"step": lambda op, x, counter: op.Gather(x, counter, axis=1)}, True),
        ({"step": lambda op, x, counter: op.Transpose(op.Gather(x, counter, axis=2), perm=[0, 1])}, False),
        ({"step": lambda op, x, counter: op.Squeeze(op.Gather(x, op.Reshape(counter, [1]), axis=0), [0])}, False),
    ],
)
def test_conditions_of_repetitions(changed: dict[str, Any], is_repeated: bool) -> None:
    given = {"cell": rnn(), "step": plain_step, "write": lambda op, lists, counter, tensor: lists, **changed}
    x, h = floats("x", 4, 4, SIZE), floats("h", None, HIDDEN)
    x.shape[0 if changed.get("step") and is_repeated else 1] = None  # type: ignore[index]
    model = graph(recurrence(**{"limit": 3, **given}), x, h)
    for step in (CountIterations(), RepeatRows()):
        found = step(model)
    assert found.modified == is_repeated


def test_a_mask_stays_in_the_loop() -> None:
    """A masked step keeps the state."""

    def masked(op: Builder, x: Value, h: Value) -> list[Any]:
        is_masked = op.Equal(op.ReduceMax(op.Abs(x), [1]), 0.0)
        return [op.Where(is_masked, h, rnn()(op, x, h)[0])]

    assert "Loop" in found(masked, 1)


def test_zeros_of_as_many_rows_as_the_data() -> None:
    """The initial state is computed from the batch, which is unknown."""

    def emit(op: Builder, x: Value) -> Any:
        zeros = op.Expand(np.float32(0), op.Concat(op.Shape(x, start=1, end=2), [HIDDEN], axis=0))
        return recurrence(cell=rnn())(op, x, zeros)

    x = floats("x", STEPS, None, SIZE)
    x.shape[1] = "batch"  # type: ignore[index]
    assert "RNN" in rewritten(emit, x, by=[*while_loops(), FuseRecurrentLoops()])


def test_weights_of_float16() -> None:
    """A Cast of weights leaves the Loop."""

    def total(op: Builder, x: Value, h: Value) -> Any:
        large = op.const(matrix(5, SIZE, HIDDEN).astype(np.float16))
        return op.Add(op.MatMul(x, op.Cast(op.Reshape(large, [SIZE, HIDDEN]), to=1)), op.MatMul(h, R(1)))

    assert "RNN" in found(rnn(total=total), 1)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["data", "state"])
def test_numbers_that_are_not_finite(number: float, place: str) -> None:
    from converters.passes.onnxruntime.recurrent import NaNOfSequences

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((STEPS, BATCH, SIZE), (BATCH, HIDDEN))]
    arrays[0 if place == "data" else 1][(2, 1, 0) if place == "data" else (1, 2)] = number
    for kind in (gru(), gru(True), gru(functions=("Sigmoid", "Sigmoid", "Relu"))):
        emitted = rewritten(
            recurrence(cell=kind),
            floats("x", STEPS, BATCH, SIZE),
            floats("h", BATCH, HIDDEN),
            by=[*while_loops(), FuseRecurrentLoops(), NaNOfSequences()],
            numbers=arrays,
        )
        assert "GRU" in emitted
