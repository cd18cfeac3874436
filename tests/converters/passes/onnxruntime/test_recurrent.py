"""Recurrent nodes with a possibly empty batch, possibly no steps, or NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from converters.options import TargetName
from converters.passes.onnxruntime.recurrent import EmptySequences, NaNOfSequences
from converters.passes.onnxruntime.recurrent_steps import emit_steps, has_steps
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, operators, run

KINDS = {"GRU": (3, 2), "LSTM": (4, 3), "RNN": (1, 2)}


def _emit(kind: str, direction: str = "forward") -> Any:
    gates, count, directions = KINDS[kind] + (2 if direction == "bidirectional" else 1,)
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((directions, gates * 2, size)).astype(np.float32) for size in (3, 2)]

    def emit(op: Builder, x: Value, *states: Value) -> list[Value]:
        found: list[Value] = op.node(
            kind, x, *weights, None, None, *states, outputs=count, hidden_size=2, direction=direction
        )
        return found

    return emit


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("steps", "batch", "guarded"),
    [(4, None, ("GRU", "LSTM")), (None, 2, KINDS), (None, None, KINDS), (4, 2, ()), (1, 1, ())],
)
def test_conditions(kind: str, steps: int | None, batch: int | None, guarded: Any) -> None:
    model = graph(_emit(kind), floats("x", steps, batch, 3))
    assert EmptySequences()(model).modified is (kind in guarded)
    assert ("If" in operators(model)) is (kind in guarded)


@pytest.mark.parametrize("shape", [(4, 0, 3), (0, 2, 3)], ids=["batch", "steps"])
def test_a_size_known_to_be_0(shape: tuple[int, ...]) -> None:
    model = graph(_emit("LSTM"), floats("x", *shape))
    EmptySequences()(model)
    assert "LSTM" not in operators(model) and "If" not in operators(model)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind", KINDS)
def test_results(kind: str, direction: str) -> None:
    plain, model = (graph(_emit(kind, direction), floats("x", None, None, 3)) for _ in range(2))
    EmptySequences()(model)
    x = np.random.default_rng(1).standard_normal((4, 2, 3)).astype(np.float32)
    for got, expected in zip(run(model, x), run(plain, x), strict=True):
        np.testing.assert_array_equal(got, expected, strict=True)
    directions = 2 if direction == "bidirectional" else 1
    every, *states = run(model, x[:, :0])
    assert every.shape == (4, directions, 0, 2) and all(state.shape == (directions, 0, 2) for state in states)
    every, *states = run(model, x[:0])
    assert every.shape == (0, directions, 2, 2)
    assert all(state.shape == (directions, 2, 2) and not state.any() for state in states)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_states_of_no_steps_are_the_initial_ones(kind: str) -> None:
    starts = np.random.default_rng(2).standard_normal((KINDS[kind][1] - 1, 1, 2, 2)).astype(np.float32)
    model = graph(_emit(kind), floats("x", None, 2, 3), *(floats(name, 1, 2, 2) for name in "hc"[: len(starts)]))
    EmptySequences()(model)
    _, *states = run(model, np.zeros((0, 2, 3), np.float32), *starts)
    np.testing.assert_array_equal(states, starts, strict=True)


def _with_nan(kind: str, inputs: list[Value], *numbers: np.ndarray, **attributes: Any) -> list[np.ndarray]:
    """Return the results with `NaNOfSequences`. All inputs after the data are optional: lengths, then initial states."""
    gates, count = KINDS[kind]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((directions, gates * 2, size)).astype(np.float32) for size in (3, 2)]

    def emit(op: Builder, x: Value, *others: Value) -> list[Value]:
        lengths = [value for value in others if value.name == "lengths"]
        states = [value for value in others if value.name != "lengths"]
        found: list[Value] = op.node(
            kind, x, *weights, None, *(lengths or [None]), *states, outputs=count, hidden_size=2, **attributes
        )
        return found

    model = graph(emit, *inputs)
    plain = run(model, *(np.where(np.isnan(array), 0, array).astype(array.dtype) for array in numbers))
    assert NaNOfSequences()(model).modified
    got = run(model, *numbers)
    for one, other in zip(got, plain, strict=True):  # numbers are those without a NaN before them
        np.testing.assert_array_equal(np.where(np.isnan(one), other, one), other, strict=True)
    return got


def _data(steps: int, *places: tuple[int, int], number: float = np.nan) -> np.ndarray:
    x = np.random.default_rng(1).standard_normal((steps, 2, 3)).astype(np.float32)
    for step, row in places:
        x[step, row, 1] = number
    return x


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize("steps", [5, None])
@pytest.mark.parametrize(
    ("direction", "missing"),
    [("forward", [slice(2, 5)]), ("reverse", [slice(0, 3)]), ("bidirectional", [slice(2, 5), slice(0, 3)])],
)
def test_nan_of_a_step(kind: str, direction: str, missing: list[slice], steps: int | None) -> None:
    every, *states = _with_nan(kind, [floats("x", steps, 2, 3)], _data(5, (2, 1)), direction=direction)
    expected = np.zeros(every.shape, bool)
    for index, of in enumerate(missing):
        expected[of, index, 1] = True
    np.testing.assert_array_equal(np.isnan(every), expected, strict=True)
    for state in states:
        assert np.isnan(state[:, 1]).all() and np.isfinite(state[:, 0]).all()


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize("steps", [1, 3])
def test_nan_of_a_state(kind: str, steps: int) -> None:
    count = KINDS[kind][1] - 1
    states = [np.random.default_rng(2).standard_normal((1, 2, 2)).astype(np.float32) for _ in range(count)]
    for index in range(count):
        numbers = [state.copy() for state in states]
        numbers[index][0, 1, 0] = np.nan
        inputs = [floats("x", steps, 2, 3), *(floats(f"state{i}", 1, 2, 2) for i in range(count))]
        every, *last = _with_nan(kind, inputs, _data(steps), *numbers)
        affected = [True, index == 0]  # a NaN of the cell state affects its element, and from the next step on the others
        np.testing.assert_array_equal(np.isnan(every[:, 0, 1]), [affected] + [[True, True]] * (steps - 1), strict=True)
        assert all(np.array_equal(np.isnan(state[0, 1]), [True, True] if steps > 1 else affected) for state in last)
        assert all(np.isfinite(array[..., 0, :]).all() for array in (every, *last))


@pytest.mark.parametrize("branches", [True, False])
@pytest.mark.parametrize("dims", [(None, 2, None), (None, None, None)])
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_nan_of_unknown_sizes(kind: str, dims: tuple[int | None, ...], branches: bool) -> None:
    """The weights and the attributes have the sizes."""
    states = [np.random.default_rng(2).standard_normal((1, 2, 2)).astype(np.float32) for _ in range(KINDS[kind][1] - 1)]
    inputs = [new_value(ir.DataType.FLOAT, dims, name) for name in ("x", "h", "c")[: 1 + len(states)]]
    model = graph(_emit(kind), *inputs)
    assert NaNOfSequences(branches=branches)(model).modified
    for place in range(len(inputs)):
        numbers = [_data(4), *states]
        numbers[place] = numbers[place].copy()
        numbers[place][..., 0, 1] = np.nan
        every, *last = run(model, *numbers)
        if place == 2 and branches:  # the other element of the cell state becomes NaN in the second step
            assert np.isfinite(every[0, 0, 0, 0])
            every[0, 0, 0, 0] = np.nan
        for got in (every, *last):
            assert np.isnan(got[..., 0, :]).all() and np.isfinite(got[..., 1, :]).all()


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_nan_beyond_the_length(kind: str, direction: str) -> None:
    lengths = new_value(ir.DataType.INT32, [2], "lengths")
    x = _data(4, (3, 0), (1, 1))
    every, *states = _with_nan(kind, [floats("x", 4, 2, 3), lengths], x, np.array([3, 2], np.int32), direction=direction)
    expected = np.zeros((4, 1, 2, 2), bool)
    expected[1 if direction == "forward" else 0 : 2, 0, 1] = True
    np.testing.assert_array_equal(np.isnan(every), expected, strict=True)
    assert all(np.isnan(state[0, 1]).all() and np.isfinite(state[0, 0]).all() for state in states)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_infinity_is_a_number(kind: str) -> None:
    every, *_ = _with_nan(kind, [floats("x", 4, 2, 3)], _data(4, (1, 0), number=np.inf))
    assert np.isfinite(every).all()


SIZE, HIDDEN = 3, 4


def _sequence(
    kind: str,
    direction: str,
    lengths: list[int] | None,
    steps: int = 5,
    clip: float = 0.0,
    *,
    given: bool = False,
    columns: slice | None = None,
) -> ov.Model:
    """Return a layer of two sequences; without ``lengths``, the number of steps is unknown.

    Args:
        kind: the layer, see `KINDS`, or ``GRU_linear``.
        direction, lengths, clip: its attributes and input.
        steps: the number of steps.
        given: whether the first state is an input.
        columns: the elements of the hidden state that the weights multiply by 0.
    """
    rng = np.random.default_rng(3)
    gates, directions = KINDS[kind[:4].strip("_")][0], 2 if direction == "bidirectional" else 1
    x = ops.parameter([2, steps if lengths else -1, SIZE], np.float32, name="x")
    zeros = ops.constant(np.zeros((2, directions, HIDDEN), np.float32))
    start = ops.parameter(list(zeros.shape), np.float32, name="start") if given else zeros
    count = ops.constant(np.array(lengths)) if lengths else ops.broadcast(ops.gather(ops.shape_of(x), 1, 0), [2])
    weights = [rng.standard_normal((directions, gates * HIDDEN, size)).astype(np.float32) for size in (SIZE, HIDDEN)]
    if columns is not None:
        weights[1][..., columns] = 0
    is_linear = kind == "GRU_linear"
    biases = np.zeros((directions, (gates + is_linear) * HIDDEN), np.float32)
    if kind == "LSTM":
        layer = ops.lstm_sequence(x, start, zeros, count, *weights, biases, HIDDEN, direction, clip=clip)
    else:
        layer = ops.gru_sequence(
            x, start, count, *weights, biases, HIDDEN, direction, linear_before_reset=is_linear, clip=clip
        )
    return ov.Model(layer.outputs(), [x, start] if given else [x])


@pytest.mark.parametrize("kind", ["GRU", "GRU_linear", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, [5, 3], [1, 5]])
@pytest.mark.parametrize(
    ("numbers", "columns"),
    [
        ([np.inf, 1, 1, 1], None),  # of one sign: the gates are infinite
        ([1, -np.inf, 1, np.inf], None),  # of both signs
        ([1, 1, -np.inf, 1], slice(2, 3)),  # the weights have zeros for it
        ([20, 1, -20, 1], None),  # finite
    ],
)
@pytest.mark.parametrize("opset", [11, 13, 21])
def test_infinite_states(
    kind: str, direction: str, lengths: list[int] | None, numbers: list[float], columns: slice | None, opset: int
) -> None:
    model = _sequence(kind, direction, lengths, given=True, columns=columns)
    rng = np.random.default_rng(4)
    feeds = {name: rng.standard_normal((2, *shape)).astype(np.float32) for name, shape in (("x", (5, 3)), ("start", (1, 4)))}
    feeds["start"] = np.repeat(feeds["start"], 2 if direction == "bidirectional" else 1, axis=1)
    feeds["start"][0, -1] = numbers
    compiled = ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    wanted = list(compiled(list(feeds.values())).values())
    session = ort.InferenceSession(convert(model, opset=opset).model.SerializeToString())
    for got, expected in zip(session.run(None, feeds), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["GRU", "GRU_linear", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, [5, 3]])
@pytest.mark.parametrize(
    ("place", "numbers", "is_nan"),
    [
        ((0, 2), [-np.inf, -np.inf, -np.inf], True),  # the logarithms of a silent frame
        ((1, 2), [np.inf, np.nan, 1], True),
        ((0, 2), [1, -np.inf, 1], False),  # each product is infinite or a number
        ((1, 2), [1e38, -1e38, 1e38], False),
    ],
)
@pytest.mark.parametrize("opset", [11, 13, 21])
def test_infinite_data(
    kind: str,
    direction: str,
    lengths: list[int] | None,
    place: tuple[int, int],
    numbers: list[float],
    is_nan: bool,
    opset: int,
) -> None:
    model = _sequence(kind, direction, lengths)
    x = np.random.default_rng(4).standard_normal((2, 5, SIZE)).astype(np.float32)
    x[place] = numbers
    wanted = list(ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x).values())
    assert is_nan == any(np.isnan(array).any() for array in wanted)
    session = ort.InferenceSession(convert(model, opset=opset).model.SerializeToString())
    for got, expected in zip(session.run(None, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def _cell(kind: str) -> ov.Model:
    rng = np.random.default_rng(3)
    x, hidden, state = (
        ops.parameter([2, size], np.float32, name=name) for name, size in zip("xhc", (SIZE, 4, 4), strict=True)
    )
    weights = [rng.standard_normal((KINDS[kind][0] * HIDDEN, size)).astype(np.float32) for size in (SIZE, HIDDEN)]
    biases = rng.standard_normal(KINDS[kind][0] * HIDDEN).astype(np.float32)
    if kind == "GRU":
        return ov.Model([ops.gru_cell(x, hidden, *weights, biases, HIDDEN)], [x, hidden])
    return ov.Model(ops.lstm_cell(x, hidden, state, *weights, biases, HIDDEN).outputs(), [x, hidden, state])


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize("opset", [11, 21])
@pytest.mark.parametrize(
    ("x", "hidden", "cell"),
    [
        ([1, -np.inf, 1], [np.inf, 1, 1, 1], None),  # products of both signs, each of which is a number
        ([1, -np.inf, 1], None, [np.inf, np.inf, -np.inf, np.nan]),  # gates of 0 times infinity
        (None, None, [1, np.nan, 1, 1]),  # the other elements are numbers
        (None, [1, np.nan, 1, 1], None),
        (None, None, [np.inf, -np.inf, 1, 1]),
    ],
)
def test_a_step_of_infinities(kind: str, opset: int, x: Any, hidden: Any, cell: Any) -> None:
    model = _cell(kind)
    feeds = {}
    for port, numbers in zip(model.inputs, (x, hidden, cell), strict=False):
        feeds[port.any_name] = np.random.default_rng(4).standard_normal(tuple(port.shape)).astype(np.float32)
        if numbers is not None:
            feeds[port.any_name][0] = numbers
    compiled = ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    wanted = list(compiled(list(feeds.values())).values())
    for target in ("onnxruntime", "standard"):
        session = ort.InferenceSession(convert(model, target=target, opset=opset).model.SerializeToString())
        for got, expected in zip(session.run(None, feeds), wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["GRU", "GRU_linear", "LSTM"])
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_steps_compute_the_layer(kind: str, direction: str, clip: float) -> None:
    """The steps, of which only NaN is used."""
    operator = kind[:4].strip("_")
    gates, count = KINDS[operator]
    directions = 2 if direction == "bidirectional" else 1
    rng = np.random.default_rng(5)
    shapes = [(gates * 2, 3), (gates * 2, 2), (2 * gates * 2,), (3 * 2,)]
    weights = [rng.standard_normal((directions, *shape)).astype(np.float32) for shape in shapes]
    attributes: dict[str, Any] = {"hidden_size": 2, "direction": direction} | ({"clip": clip} if clip else {})
    if operator == "GRU":
        attributes["linear_before_reset"] = int(kind == "GRU_linear")

    def emit(op: Builder, x: Value, lengths: Value, *states: Value) -> list[Value]:
        peepholes = weights[3:] if operator == "LSTM" else []
        plain = op.node(operator, x, *weights[:3], lengths, *states, *peepholes, outputs=count, **attributes)
        return [*plain, *emit_steps(op, plain[0].producer())]

    lengths = new_value(ir.DataType.INT32, [2], "lengths")
    model = graph(emit, floats("x", None, 2, 3), lengths, *(floats(name, directions, 2, 2) for name in "hc"[: count - 1]))
    states = [rng.standard_normal((directions, 2, 2)).astype(np.float32) for _ in range(count - 1)]
    found = run(model, _data(4), np.array([4, 2], np.int32), *states)
    for got, expected in zip(found[count:], found[:count], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "supported"),
    [
        ({}, True),
        ({"activations": ["Sigmoid", "Tanh", "Relu"]}, True),
        ({"activations": ["Sigmoid", "Tanh", "Relu"] * 2, "direction": "bidirectional"}, True),
        ({"activations": ["Sigmoid", "Tanh", "Relu", "Sigmoid", "Tanh", "Tanh"], "direction": "bidirectional"}, False),
        ({"activations": ["Sigmoid", "Tanh", "Elu"]}, False),
        ({"input_forget": 0}, True),
        ({"input_forget": 1}, False),
    ],
)
def test_layers_with_steps(attributes: dict[str, Any], supported: bool) -> None:
    directions = 2 if "direction" in attributes else 1

    def emit(op: Builder, x: Value) -> Value:
        weights = [np.ones((directions, 8, size), np.float32) for size in (3, 2)]
        results: list[Value] = op.LSTM(x, *weights, outputs=3, hidden_size=2, **attributes)
        return results[0]

    model = graph(emit, floats("x", 4, 2, 3))
    assert has_steps(next(node for node in model.graph if node.op_type == "LSTM")) is supported
    assert NaNOfSequences()(model).modified
    assert ("If" in operators(model)) is supported and ("CumSum" in operators(model)) is not supported


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize(("number", "is_nan"), [(np.nan, True), (-np.inf, False), (1e30, False)])
def test_clipped_numbers(kind: str, number: float, is_nan: bool) -> None:
    """OpenVINO's CPU plugin clips a NaN to -0.5; ONNX Runtime would compute with another number."""
    model = _sequence(kind, "forward", [5, 5], clip=0.5)
    x = np.random.default_rng(4).standard_normal((2, 5, SIZE)).astype(np.float32)
    x[1, 2, 0] = number
    wanted = list(ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x).values())
    every, *states = ort.InferenceSession(convert(model).model.SerializeToString()).run(None, {"x": x})
    if is_nan:
        assert np.isnan(every[1, 0, 2:]).all() and all(np.isnan(state[1]).all() for state in states)
        wanted[0][1, 0, 2:] = np.nan
        for state in wanted[1:]:
            state[1] = np.nan
    for got, expected in zip([every, *states], wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_nodes_for_nan() -> None:
    def lstm(op: Builder, x: Value, **attributes: Any) -> Value:
        weights = [op.const(np.ones((1, 8, size)), x.dtype) for size in (3, 2)]
        zeros = op.const(np.zeros((1, 2, 2)), x.dtype)
        results: list[Value] = op.LSTM(x, *weights, None, None, zeros, zeros, outputs=3, hidden_size=2, **attributes)
        return results[1]

    model = graph(lstm, floats("x", 1, 2, 3))
    NaNOfSequences(branches=False)(model)
    assert operators(model) == ["Add", "Clip", "LSTM", "MatMul"]  # one step: the sum of steps is the step
    model = graph(lstm, floats("x", 1, 2, 3))
    NaNOfSequences()(model)
    assert [node.op_type for node in model.graph] == ["LSTM", "Sub", "ReduceSum", "IsNaN", "If"]
    model = graph(lstm, new_value(ir.DataType.FLOAT16, [1, 2, 3], "x"))
    assert NaNOfSequences()(model).modified
    model = graph(lstm, new_value(ir.DataType.DOUBLE, [1, 2, 3], "x"))
    assert not NaNOfSequences()(model).modified


@pytest.mark.parametrize(("target", "has_if"), [("onnxruntime", True), ("cuda", False)])
def test_devices_do_not_wait(target: TargetName, has_if: bool) -> None:
    nodes = convert(_sequence("LSTM", "forward", [5, 5]), target=target).report.nodes
    assert nodes["LSTM"] == 1 and ("If" in nodes) is has_if


@pytest.mark.parametrize("target", ["coreml", "directml", "standard"])  # WebGPU's language has no rule for NaN
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_nan_in_files_that_the_cpu_computes(kind: str, target: TargetName) -> None:
    model = _sequence(kind, "forward", [5, 5])
    x = np.random.default_rng(4).standard_normal((2, 5, SIZE)).astype(np.float32)
    x[1, 2, 0] = np.nan
    wanted = list(ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x).values())
    assert np.isnan(wanted[0][1, 0, 2:]).all()
    session = ort.InferenceSession(convert(model, target=target).model.SerializeToString())
    for got, expected in zip(session.run(None, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("target", "opset"),
    [("onnxruntime", 21), ("onnxruntime", 13), ("onnxruntime", 11), ("cuda", None), ("directml", None), ("standard", None)],
)
@pytest.mark.parametrize("kind", ["GRU", "GRU_linear", "LSTM"])
@pytest.mark.parametrize(("direction", "lengths"), [("forward", [5, 5]), ("reverse", [5, 5]), ("bidirectional", [5, 3])])
def test_nan_in_float16(kind: str, direction: str, lengths: list[int], target: TargetName, opset: int | None) -> None:
    """A NaN in the data of one sequence, and in the state of the other."""
    model = _sequence(kind, direction, lengths, given=True)
    rng = np.random.default_rng(4)
    feeds = {port.any_name: rng.standard_normal(list(port.shape)).astype(np.float32) for port in model.inputs}
    feeds["x"][1, 2, 0] = feeds["start"][0, -1, 1] = np.nan
    compiled = ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    wanted = list(compiled(list(feeds.values())).values())
    assert 0 < np.isnan(wanted[0]).mean() < 1
    converted = convert(model, target=target, precision="float16", opset=opset)
    assert {"GRU", "LSTM"} & set(converted.report.nodes)
    session = ort.InferenceSession(converted.model.SerializeToString())
    for got, expected in zip(session.run(None, feeds), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("opset", [11, 13, 21])
@pytest.mark.parametrize("kind", ["GRU", "GRU_linear", "LSTM"])
@pytest.mark.parametrize(
    ("numbers", "is_nan"),
    [
        ([-np.inf, -np.inf, -np.inf], True),
        ([1, -np.inf, 1], False),
        ([6e4, -6e4, 6e4], False),  # their products are not float16 numbers
        ([np.nan, 6e4, -6e4], True),
    ],
)
def test_infinite_data_in_float16(kind: str, numbers: list[float], is_nan: bool, opset: int) -> None:
    model = _sequence(kind, "forward", [5, 5])
    x = np.random.default_rng(4).standard_normal((2, 5, SIZE)).astype(np.float32)
    x[1, 2] = numbers
    x[0, 4] = np.nan
    wanted = list(ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x).values())
    assert np.isnan(wanted[0][1]).any() == is_nan
    session = ort.InferenceSession(convert(model, precision="float16", opset=opset).model.SerializeToString())
    for got, expected in zip(session.run(None, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-2, atol=1e-2)
