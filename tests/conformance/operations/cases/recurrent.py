"""Recurrent cells and sequences."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from tests.conformance.operation_models import decided, dynamic, edited, layer_case, static, statics

N, T, INPUT, HIDDEN = 3, 4, 5, 2

# operation -> its opset, gates, number of states, activations
_CELLS = {
    "RNNCell": ("opset1", 1, 1, ["tanh"]),
    "GRUCell": ("opset3", 3, 1, ["sigmoid", "tanh"]),
    "LSTMCell": ("opset4", 4, 2, ["sigmoid", "tanh", "tanh"]),
}


def _values(*shape, dtype=np.float32, seed=0, scale=1.0):
    return (np.random.default_rng(seed + sum(shape)).normal(size=shape) * scale).astype(dtype)


def _weights(gates, dtype=np.float32, bias_gates=None, directions=None):
    """Return weights of the input, of the recurrence, and biases: numbers that float32 represents, in any type."""
    lead = [] if directions is None else [directions]
    shapes = (gates * HIDDEN, INPUT), (gates * HIDDEN, HIDDEN), ((bias_gates or gates) * HIDDEN,)
    arrays = [_values(*lead, *shape, dtype=dtype, seed=k, scale=0.5) for k, shape in enumerate(shapes, 1)]
    return [array.astype(np.float32).astype(dtype) for array in arrays]


def _input(batches, make, dims):
    """Return a Parameter with an array from ``make`` for each batch; with several, their sizes are unknown."""
    arrays = [make(*batch) for batch in batches]
    return static(*arrays) if len(arrays) == 1 else dynamic(*arrays, dims=dims)


def _with(array, place):
    """Return the array with a NaN at a place, if there is one."""
    if place is not None:
        array[place] = np.nan
    return array


def _cell(operation, name, *, opset=None, dtype=np.float32, run_time=False, batches=(N,), nan=None, nan_of_state=None,
          **changes):  # fmt: skip
    """``batches``: the batch of each run; with several, it is unknown. ``nan``: the place of a NaN in the data."""
    since, gates, states, activations = _CELLS[operation]
    bias_gates = 4 if operation == "GRUCell" and changes.get("linear_before_reset") else None
    weights = _weights(gates, dtype, bias_gates)
    attributes = {"hidden_size": HIDDEN, "activations": activations} | changes
    sizes = [(n,) for n in batches]
    inputs = [_input(sizes, lambda n: _with(_values(n, INPUT, dtype=dtype), nan), (-1, INPUT))]
    for seed in range(7, 7 + states):

        def state(n, seed=seed):
            return _with(_values(n, HIDDEN, dtype=dtype, seed=seed), nan_of_state if seed == 7 else None)

        inputs.append(_input(sizes, state, (-1, HIDDEN)))
    inputs += statics(weights) if run_time else weights
    return layer_case(operation, opset or since, operation, name, inputs, attributes)


def _cells():
    for operation, (_, _, _, activations) in _CELLS.items():
        yield _cell(operation, "plain")
        yield _cell(operation, "dynamic-batch", batches=(1, 0, 4))
        yield _cell(operation, "run-time-weights", run_time=True)
        yield _cell(operation, "clip", clip=0.3)
        yield _cell(operation, "activations", activations=["tanh", "relu", "sigmoid"][: len(activations)])
        yield _cell(operation, "relu-clip", activations=["relu"] * len(activations), clip=0.7)
        yield _cell(operation, "float16", dtype=np.float16)
        yield _cell(operation, "nan", nan=(1, 2))
        yield _cell(operation, "nan-of-state", nan_of_state=(1, 0))
    for name, changes in (("clip", {"clip": 0.3}), ("activations", {"activations": ["tanh", "relu"]}), ("plain", {})):
        yield _cell("GRUCell", f"linear-before-reset-{name}", linear_before_reset=True, **changes)
    yield _cell("GRUCell", "linear-before-reset-dynamic", linear_before_reset=True, batches=(1, 0, 4))
    original: dict[str, dict] = {
        "plain": {},
        "dynamic-batch": {"batches": (1, 0, 4)},
        "clip": {"clip": 0.3},
        "activations": {"activations": ["tanh", "relu", "sigmoid"]},
        "run-time-weights": {"run_time": True},
    }
    for name, changes in original.items():
        yield _cell("LSTMCell", name, opset="opset1", **changes)
    yield _cell("LSTMCell", "weights-format-without-meaning", opset="opset1", weights_format="iofc")
    yield from _peepholes()


def _peepholes():
    """Gates with only peepholes and, for c, a bias, so that the equations are short."""
    cell, bias = np.array([[1, -2], [0.5, 3]], np.float32), 0.7
    f, i, o = np.array([[1, 2], [-1, 0.5], [3, -1]], np.float32)
    biases = np.array([0] * 4 + [bias] * 2 + [0] * 2, np.float32)
    for name, input_forget in (("peepholes", False), ("peepholes-input-forget", True)):
        forget, enter = _sigmoid(f * cell), _sigmoid(i * cell)
        state = forget * cell + (1 - forget if input_forget else enter) * np.tanh(bias)
        hidden = _sigmoid(o * state) * np.tanh(state)
        reason = "the CPU plugin ignores peepholes and input_forget; values by the reference kernel's equations"
        settings = decided("expected", reason, hidden.astype(np.float32), state.astype(np.float32))
        zeros = np.zeros((8, 3), np.float32), np.zeros((8, 2), np.float32)
        inputs = [*statics([_values(2, 3), _values(2, 2), cell]), *zeros, biases]
        model = layer_case("LSTMCell", "opset1", "LSTMCell", name, inputs, {"hidden_size": 2}, **settings)
        yield _with_peepholes(model, np.concatenate([f, i, o]), input_forget)


def _with_peepholes(model, peepholes, input_forget):
    """OpenVINO's API replaces the seventh input by zeros and does not write it; here it is written and filled."""

    def edit(text, weights):
        root = ElementTree.fromstring(text)
        layers = {layer.get("type"): layer for layer in root.iter("layer")}
        unused = next(data for data in layers["Const"].iter("data") if data.get("shape") == "6")
        cell, data = layers["LSTMCell"], peepholes.astype(np.float32).tobytes()
        port = ElementTree.SubElement(cell.find("input"), "port", id="6", precision="FP32")
        ElementTree.SubElement(port, "dim").text = "6"
        ends = {"from-layer": layers["Const"].get("id"), "from-port": "0", "to-layer": cell.get("id"), "to-port": "6"}
        ElementTree.SubElement(root.find("edges"), "edge", ends)
        if input_forget:
            cell.find("data").set("input_forget", "true")
        offset = int(unused.get("offset"))
        filled = weights[:offset] + data + weights[offset + len(data) :]
        return ElementTree.tostring(root, "unicode"), filled

    return edited(model, edit)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


_SEQUENCES = {
    "RNNSequence": (1, 1, ["tanh"]),
    "GRUSequence": (3, 1, ["sigmoid", "tanh"]),
    "LSTMSequence": (4, 2, ["sigmoid", "tanh", "tanh"]),
}


def _sequence(operation, name, *, direction="forward", lengths=None, dtype=np.float32, run_time=False,
              runs=((N, T, [T, 1, 2]),), nan=None, **changes):  # fmt: skip
    """``lengths``: the constant lengths; ``None`` makes them an input. ``runs``: each one's batch, time and lengths. ``nan``:
    the place of a NaN in the data.
    """
    gates, states, activations = _SEQUENCES[operation]
    directions = 2 if direction == "bidirectional" else 1
    bias_gates = 4 if operation == "GRUSequence" and changes.get("linear_before_reset") else None
    weights = _weights(gates, dtype, bias_gates, directions)
    attributes = {"hidden_size": HIDDEN, "activations": activations, "direction": direction} | changes
    inputs = [_input(runs, lambda n, t, _: _with(_values(n, t, INPUT, dtype=dtype), nan), (-1, -1, INPUT))]
    for seed in range(7, 7 + states):

        def state(n, t, _, seed=seed):
            return _values(n, directions, HIDDEN, dtype=dtype, seed=seed)

        inputs.append(_input(runs, state, (-1, directions, HIDDEN)))
    if lengths is None:
        inputs.append(_input(runs, lambda n, t, given: np.array(given, np.int64), (-1,)))
    else:
        inputs.append(np.array(lengths))
    inputs += statics(weights) if run_time else weights
    return layer_case(operation, "opset5", operation, name, inputs, attributes)


def _sequences():
    for operation, (_, _, activations) in _SEQUENCES.items():
        for direction in ("forward", "reverse", "bidirectional"):
            yield _sequence(operation, direction, direction=direction)
            yield _sequence(operation, f"{direction}-whole", direction=direction, lengths=[T] * N)
            yield _sequence(
                operation,
                f"{direction}-dynamic",
                direction=direction,
                runs=((2, 3, [3, 3]), (0, 4, []), (1, 5, [5])),  # the CPU plugin ignores other lengths of dynamic shapes
            )
            yield _sequence(operation, f"{direction}-clip", direction=direction, clip=0.3)
            yield _sequence(operation, f"{direction}-nan", direction=direction, nan=(2, 1, 3))
            yield _sequence(operation, f"{direction}-nan-beyond", direction=direction, nan=(2, 2, 3))
            yield _sequence(operation, f"{direction}-nan-whole", direction=direction, lengths=[T] * N, nan=(0, 2, 3))
            yield _sequence(
                operation,
                f"{direction}-activations",
                direction=direction,
                activations=["tanh", "relu", "sigmoid"][: len(activations)],
            )
        yield _sequence(operation, "run-time-weights", run_time=True)
        yield _sequence(operation, "one-step", runs=((N, 1, [1, 1, 1]),))
        yield _sequence(operation, "float16", dtype=np.float16)
        yield _sequence(operation, "float64", dtype=np.float64)
        if operation == "GRUSequence":
            for direction in ("forward", "reverse", "bidirectional"):
                yield _sequence(operation, f"linear-before-reset-{direction}", direction=direction, linear_before_reset=True)


CASES = [*_cells(), *_sequences()]
