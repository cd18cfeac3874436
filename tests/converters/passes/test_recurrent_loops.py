"""Loops of recurrent cells as recurrent nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from converters.passes.recurrent_loops import FuseRecurrentLoops
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph, rewritten

STEPS, BATCH, SIZE, HIDDEN = 5, 2, 3, 4
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def weights(kind: str, directions: int = 1, size: int = SIZE) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    rows = GATES[kind] * HIDDEN
    shapes = [(directions, rows, size), (directions, rows, HIDDEN), (directions, 2 * rows)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def step(op: Builder, x: Value, iteration: Value, axis: int = 1, backward: bool = False) -> Value:
    """Return the input of one step, ``[1, batch, size]``."""
    place = op.Reshape(iteration, [1])
    if backward:
        place = op.Sub(op.Mul(place, -1), 1)
    taken: Value = op.Unsqueeze(op.Squeeze(op.Gather(x, place, axis=axis), [axis]), [0])
    return taken


def cell(
    op: Builder, kind: str, x: Value, states: Sequence[Value], given: Sequence[Any] | None = None, **changed: Any
) -> Any:
    """Emit a cell; return the new states, ``[batch, hidden]``."""
    given = weights(kind) if given is None else given
    first = [op.Unsqueeze(state, [0]) for state in states]
    results = op.node(
        kind, x, *given, changed.pop("lengths", None), *first, outputs=1 + len(states), hidden_size=HIDDEN, **changed
    )
    return [op.Squeeze(result, [0]) for result in results[1:]]


def recurrence(
    kind: str = "LSTM",
    *,
    axis: int = 1,
    backward: bool = False,
    count: Any = STEPS,
    of_step: Callable[..., Value] | None = None,
    of_cell: Callable[..., Any] | None = None,
    following: Callable[..., Sequence[Value]] = lambda op, states: states,
    joined: Callable[..., Sequence[Value]] = lambda op, states: [op.Unsqueeze(states[0], [1])],
    goes_on: Callable[..., Any] = lambda op, iteration: op.const(np.bool_(True)),
    more: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Return a function that emits a Loop; the arguments replace its parts."""

    def emit(op: Builder, x: Value, *states: Value) -> Any:
        def body(op: Builder, iteration: Value, condition: Value, *carried: Value) -> list[Value]:
            place = step(op, x, iteration, axis, backward) if of_step is None else of_step(op, x, iteration)
            now = carried[: len(states)]
            new = cell(op, kind, place, now) if of_cell is None else of_cell(op, place, now, iteration)
            return [goes_on(op, iteration), *following(op, new, *carried[len(states) :]), *joined(op, new)]

        trips = count(op, x) if callable(count) else op.const(np.int64(count))
        return op.loop(trips, op.const(np.bool_(True)), body, *states, *more)

    return emit


def found(emit: Callable[..., Any], *dims: int | None, states: int = 2, **options: Any) -> list[str]:
    """Return the operators after the pass."""
    given = floats("x", *(dims or (BATCH, STEPS, SIZE)))
    return rewritten(
        emit, given, *(floats(name, BATCH, HIDDEN) for name in "hc"[:states]), by=[FuseRecurrentLoops()], **options
    )


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", GATES)
def test_cells(kind: str, axis: int, backward: bool) -> None:
    emit = recurrence(kind, axis=axis, backward=backward)
    dims = (BATCH, STEPS, SIZE) if axis else (STEPS, BATCH, SIZE)
    emitted = found(emit, *dims, states=2 if kind == "LSTM" else 1)
    assert kind in emitted and "Loop" not in emitted


def shape_of_steps(op: Builder, x: Value) -> Value:
    taken: Value = op.Gather(op.Shape(x), op.const(np.int64(1)))
    return taken


def indexed(index: Callable[..., Value]) -> dict[str, Any]:
    """Return a step at a computed place."""
    return {"of_step": lambda op, x, i: op.Unsqueeze(op.Squeeze(op.Gather(x, index(op, i), axis=1), [1]), [0])}


def two_cells(op: Builder, x: Value, states: Sequence[Value], iteration: Value) -> Any:
    first = cell(op, "LSTM", x, states)
    return cell(op, "LSTM", op.Unsqueeze(first[0], [0]), states, weights("LSTM", size=HIDDEN))


def of_weights(change: Callable[..., Any]) -> dict[str, Any]:
    """Return a cell whose weights of the input are computed."""

    def emit(op: Builder, x: Value, states: Sequence[Value], iteration: Value) -> Any:
        first, *others = weights("LSTM")
        return cell(op, "LSTM", x, states, [change(op, op.const(first[0]), iteration), *others])

    return {"of_cell": emit}


def doubled(op: Builder, x: Value, count: int) -> Value:
    """Return the same numbers, computed by nodes that each use a result twice."""
    for _ in range(count):
        x = op.Max(x, x)
    return x


def of_cells(**changed: Any) -> dict[str, Any]:
    return {"of_cell": lambda op, x, states, iteration: cell(op, "LSTM", x, states, **changed)}


@pytest.mark.parametrize(
    ("changed", "dims", "is_fused"),
    [
        ({"count": STEPS - 1}, (), False),
        ({"count": shape_of_steps}, (), True),
        ({"count": shape_of_steps}, (BATCH, None, SIZE), True),
        ({"count": lambda op, x: op.Squeeze(op.Shape(x, start=1, end=2), [0])}, (BATCH, None, SIZE), True),
        ({"count": lambda op, x: op.Squeeze(op.Shape(x, start=-2, end=-1), [0])}, (BATCH, None, SIZE), True),
        ({"count": lambda op, x: op.Sub(shape_of_steps(op, x), 1)}, (BATCH, None, SIZE), False),
        ({"count": lambda op, x: op.Squeeze(op.Shape(x, start=0, end=1), [0])}, (BATCH, None, SIZE), False),
        ({"count": lambda op, x: op.Squeeze(op.Shape(op.Concat(x, x, axis=1), start=1, end=2), [0]), "axis": 1,
          **indexed(lambda op, i: op.Reshape(op.Mod(i, 5), [1]))}, (), False),
        (indexed(lambda op, i: op.Reshape(op.Sub(op.Add(i, 3), 3), [1])), (), True),
        (indexed(lambda op, i: op.Reshape(op.Sub(-1, i), [1])), (), True),
        (indexed(lambda op, i: op.Reshape(op.Neg(op.Add(i, 1)), [1])), (), True),
        (indexed(lambda op, i: op.Reshape(op.Mul(i, 0), [1])), (), False),
        (indexed(lambda op, i: op.Reshape(op.Sub(i, 1), [1])), (), False),  # the last one first
        ({**indexed(lambda op, i: op.Reshape(op.Mul(i, i), [1])), "count": 2}, (BATCH, 2, SIZE), False),
        ({**indexed(lambda op, i: op.Reshape(op.Mul(i, 2), [1])), "count": 3}, (), False),
        ({"of_step": lambda op, x, i: op.Unsqueeze(op.Gather(x, i, axis=1), [0])}, (), True),
        ({"of_step": lambda op, x, i: op.Reshape(op.Gather(x, i, axis=1), [1, 2, 3])}, (), True),
        ({"of_step": lambda op, x, i: op.Gather(x, op.Reshape(i, [1]), axis=0), "count": 1}, (1, BATCH, SIZE), True),
        ({"of_step": lambda op, x, i: op.Relu(step(op, x, i))}, (), False),
        ({"of_step": lambda op, x, i: op.Transpose(op.Gather(x, op.Reshape(i, [1]), axis=1), perm=[1, 0, 2])}, (), False),
        ({"of_step": lambda op, x, i: op.Reshape(op.Gather(x, i, axis=0), [1, 2, 3])}, (5, 3, 2), False),  # other rows
        ({"of_step": lambda op, x, i: op.Transpose(op.Gather(x, op.Reshape(i, [1]), axis=2), perm=[2, 0, 1])},
         (BATCH, SIZE, STEPS), False),
        ({"of_step": lambda op, x, i: op.Reshape(op.Gather(x, i, axis=1), [1, 2, 3])}, (BATCH, STEPS, 1, SIZE), False),
        ({"goes_on": lambda op, i: op.Less(i, 2), "joined": lambda op, states: []}, (), False),
        (of_cells(lengths=np.int32([1, 0])), (), False),
        (of_cells(direction="reverse"), (), True),  # of one step
        (of_cells(activations=["Sigmoid", "Relu", "Tanh"], clip=0.4, input_forget=1), (), True),
        ({"of_cell": two_cells}, (), False),
        (of_weights(lambda op, w, i: op.Unsqueeze(w, [0])), (), True),
        (of_weights(lambda op, w, i: op.Unsqueeze(op.Mul(w, op.Cast(i, to=1)), [0])), (), False),
        (of_weights(lambda op, w, i: op.Unsqueeze(op.Split(w, axis=1, num_outputs=1, outputs=1), [0])), (), True),
        ({"following": lambda op, states: states[::-1]}, (), False),
        ({"following": lambda op, states: [op.Mul(states[0], 0.5), states[1]]}, (), False),
        ({"following": lambda op, states, last: [*states, op.Reshape(states[1], [8])], "more": [np.zeros(8, np.float32)]},
         (), True),
        ({"following": lambda op, states, last: [*states, op.Add(last, 1)], "more": [np.zeros(8, np.float32)]}, (), False),
        ({"joined": lambda op, states: [op.Reshape(states[0], [-1]), op.Unsqueeze(states[0], [-1])]}, (), True),
        ({"joined": lambda op, states: [op.Reshape(states[0], [0, 2, 1, -1])]}, (), True),
        ({"joined": lambda op, states: []}, (), True),
        ({"joined": lambda op, states: [states[1]]}, (), False),  # cell states of all steps
        ({"joined": lambda op, states: [op.Relu(states[0])]}, (), False),
        ({"joined": lambda op, states: [op.Transpose(states[0], perm=[1, 0])]}, (), False),
    ],
)  # fmt: skip
def test_conditions(changed: dict[str, Any], dims: tuple[int, ...], is_fused: bool) -> None:
    emitted = found(recurrence(**changed), *dims)
    assert ("Loop" not in emitted) == is_fused
    assert "LSTM" in emitted


@pytest.mark.parametrize(("count", "is_fused"), [(60, True), (1000, False)])  # many nodes are not moved
def test_weights_of_many_paths(count: int, is_fused: bool) -> None:
    def emit(op: Builder, x: Value, h: Value, c: Value) -> Any:
        factor = op.ReduceMax(op.Sigmoid(x), keepdims=0)
        changed = of_weights(lambda op, w, i: op.Unsqueeze(op.Mul(w, doubled(op, factor, count)), [0]))
        return recurrence(**changed)(op, x, h, c)

    emitted = found(emit)
    assert ("Loop" not in emitted) == is_fused


def test_random_weights_differ_between_iterations() -> None:
    changed = of_weights(lambda op, w, i: op.Unsqueeze(op.RandomUniformLike(w), [0]))
    model = graph(recurrence(**changed), floats("x", BATCH, STEPS, SIZE), *(floats(name, BATCH, HIDDEN) for name in "hc"))
    assert not FuseRecurrentLoops()(model).modified


def test_a_reversed_result_is_not_reversed_again() -> None:
    def emit(op: Builder, *inputs: Value) -> Any:
        *lasts, joined = recurrence(backward=True)(op, *inputs)
        return [*lasts, op.Slice(joined, [-1], [-(2**62)], [0], [-1])]

    assert "Slice" not in found(emit)
    assert "Slice" in found(recurrence(backward=True))


@pytest.mark.parametrize(
    ("ends", "both"),
    [(-(2**62), True), (-3, False)],
    ids=["also used as it is", "a part of it"],
)
def test_other_uses_of_a_reversed_result(ends: int, both: bool) -> None:
    def emit(op: Builder, *inputs: Value) -> Any:
        *lasts, joined = recurrence(backward=True)(op, *inputs)
        return [*lasts, op.Slice(joined, [-1], [ends], [0], [-1]), *([op.Neg(joined)] if both else [])]

    assert found(emit).count("Slice") == 2


def test_bidirectional_cells_stay() -> None:
    def both(op: Builder, x: Value, states: Sequence[Value], iteration: Value) -> Any:
        first = [op.Concat(*[op.Unsqueeze(state, [0])] * 2, axis=0) for state in states]
        results = op.LSTM(x, *weights("LSTM", 2), None, *first, outputs=3, hidden_size=HIDDEN, direction="bidirectional")
        return [op.ReduceSum(result, [0], keepdims=0) for result in results[1:]]

    assert "Loop" in found(recurrence(of_cell=both))


def test_values_that_change_in_the_loop_stay() -> None:
    """The tensor of the steps is carried, too."""

    def emit(op: Builder, x: Value, *states: Value) -> Any:
        def body(op: Builder, iteration: Value, condition: Value, data: Value, *now: Value) -> list[Value]:
            return [op.const(np.bool_(True)), op.Neg(data), *cell(op, "LSTM", step(op, data, iteration), now)]

        return op.loop(op.const(np.int64(STEPS)), op.const(np.bool_(True)), body, x, *states)

    assert "Loop" in found(emit)


def test_a_loop_without_a_limit_stays() -> None:
    def emit(op: Builder, x: Value, *states: Value) -> Any:
        def body(op: Builder, iteration: Value, condition: Value, *now: Value) -> list[Value]:
            return [op.Less(iteration, STEPS - 1), *cell(op, "LSTM", step(op, x, iteration), now)]

        return op.loop(None, op.const(np.bool_(True)), body, *states)

    assert "Loop" in found(emit)


def test_a_loop_in_a_branch() -> None:
    def emit(op: Builder, x: Value, *states: Value) -> Any:
        condition = op.Greater(op.ReduceSum(x, keepdims=0), 0)
        return op.if_(condition, lambda op: recurrence()(op, x, *states)[0], lambda op: op.Identity(states[0]))

    assert "Loop" not in found(emit)


def iterator(kind: str, axis: int, backward: bool, batch: int, by_reshape: bool) -> ov.Model:
    """Return a TensorIterator with a cell."""
    rng = np.random.default_rng(0)
    outer = [batch, STEPS] if axis else [STEPS, batch]
    inputs = [ops.parameter([*outer, SIZE], np.float32)]
    inputs += [ops.parameter([batch, HIDDEN], np.float32) for _ in range(2 if kind == "LSTM" else 1)]
    slice_shape = [batch, 1] if axis else [1, batch]
    inner = [
        ops.parameter([*slice_shape, SIZE], np.float32),
        *(ops.parameter([batch, HIDDEN], np.float32) for _ in inputs[1:]),
    ]
    flat = ops.reshape(inner[0], [batch, SIZE], False) if by_reshape else ops.squeeze(inner[0], np.array([axis]))
    rows = GATES[kind] * HIDDEN
    given = [rng.standard_normal(shape).astype(np.float32) for shape in ((rows, SIZE), (rows, HIDDEN), (rows,))]
    build = {"LSTM": ops.lstm_cell, "GRU": ops.gru_cell, "RNN": ops.rnn_cell}[kind]
    extra = [["tanh"], [], []] if kind == "RNN" else []
    states = build(flat, *inner[1:], *map(ops.constant, given), HIDDEN, *extra).outputs()
    unflat = (
        ops.reshape(states[0], [*slice_shape, HIDDEN], False) if by_reshape else ops.unsqueeze(states[0], np.array([axis]))
    )
    joined, lasts = ops.result(unflat), [ops.result(state) for state in states]
    node = ops.tensor_iterator()
    node.set_body(ov.Model([joined, *lasts], inner))
    place = (-1, -1, 1, 0, axis) if backward else (0, 1, 1, -1, axis)
    node.set_sliced_input(inner[0], inputs[0].output(0), *place)
    for parameter, start, last in zip(inner[1:], inputs[1:], lasts, strict=True):
        node.set_merged_input(parameter, start.output(0), last.output(0))
    outputs = [node.get_concatenated_slices(joined.output(0), *place)]
    return ov.Model([*outputs, *(node.get_iter_value(last.output(0), -1) for last in lasts)], inputs)


def usual_operators(graph: ir.Graph) -> Iterator[str]:
    """Iterate over the operators of a graph and its subgraphs, without those of data that are not finite: an If of IsNaN."""
    for node in graph:
        yield node.op_type
        condition = node.inputs[0].producer() if node.op_type == "If" and node.inputs[0] is not None else None
        if condition is None or condition.op_type != "IsNaN":
            for value in node.attributes.values():
                if value.type == ir.AttributeType.GRAPH:
                    yield from usual_operators(value.as_graph())


@pytest.mark.parametrize("dynamic", [False, True], ids=["", "dynamic"])
@pytest.mark.parametrize("by_reshape", [False, True], ids=["squeeze", "reshape"])
@pytest.mark.parametrize(
    ("axis", "backward", "batch"), [(1, False, 2), (1, True, 2), (1, True, 1), (0, False, 2), (0, True, 1)]
)
@pytest.mark.parametrize("kind", GATES)
def test_tensor_iterators(
    kind: str, axis: int, backward: bool, batch: int, by_reshape: bool, dynamic: bool, tmp_path: Path
) -> None:
    model = iterator(kind, axis, backward, batch, by_reshape)
    rng = np.random.default_rng(1)
    given = [rng.standard_normal(list(value.shape)).astype(np.float32) for value in model.inputs]
    if dynamic:
        model.reshape({0: ov.PartialShape([batch, -1, SIZE] if axis else [-1, batch, SIZE])})
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    made, _ = convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    emitted = list(usual_operators(ir.from_proto(made).graph))
    assert kind in emitted and "Loop" not in emitted
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given).values()
    session = ort.InferenceSession(str(tmp_path / "model.onnx"))
    got = session.run(None, dict(zip((value.name for value in session.get_inputs()), given, strict=True)))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, strict=True)
