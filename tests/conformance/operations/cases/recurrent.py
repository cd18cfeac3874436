"""Recurrent cells and sequences."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from tests.conformance.case import Case, IRText

N, T, INPUT, HIDDEN = 3, 4, 5, 2

# operation -> its opset, gates, how many states, activations
_CELLS = {
    "RNNCell": ("opset1", 1, 1, ["tanh"]),
    "GRUCell": ("opset3", 3, 1, ["sigmoid", "tanh"]),
    "LSTMCell": ("opset4", 4, 2, ["sigmoid", "tanh", "tanh"]),
}


def _values(*shape, dtype=np.float32, seed=0, scale=1.0):
    return (np.random.default_rng(seed + sum(shape)).normal(size=shape) * scale).astype(dtype)


def _model(opset, operation, shapes, attributes, constants, dtype=np.float32, lengths_at=None):
    """A model of one node; of its inputs those in ``constants`` are constants."""

    def build():
        import openvino as ov
        from openvino import opset1
        from openvino.utils.node_factory import NodeFactory

        nodes, inputs = [], []
        for k, shape in enumerate(shapes):
            if k in constants:
                nodes.append(opset1.constant(constants[k]))
            else:
                nodes.append(opset1.parameter(ov.PartialShape(list(shape)), np.int64 if k == lengths_at else dtype))
                inputs.append(nodes[-1])
        return ov.Model(NodeFactory(opset).create(operation, nodes, attributes).outputs(), inputs)

    return build


def _weights(gates, dtype=np.float32, bias_gates=None, directions=None, scale=0.5):
    """Weights of the input, of the recurrence, and biases."""
    lead = [] if directions is None else [directions]
    return [
        _values(*lead, gates * HIDDEN, INPUT, dtype=dtype, seed=1, scale=scale),
        _values(*lead, gates * HIDDEN, HIDDEN, dtype=dtype, seed=2, scale=scale),
        _values(*lead, (bias_gates or gates) * HIDDEN, dtype=dtype, seed=3, scale=scale),
    ]


def _cell(
    operation, name, *, opset=None, batch=N, dtype=np.float32, run_time=False, biases=True, extra=None, runs=None, **changes
):
    since, gates, states, activations = _CELLS[operation]
    bias_gates = 4 if operation == "GRUCell" and changes.get("linear_before_reset") else None
    weights = _weights(gates, dtype, bias_gates)
    attributes = {"hidden_size": HIDDEN, "activations": activations} | changes
    first = 1 + states
    shapes = [(batch, INPUT), *[(batch, HIDDEN)] * states, *(w.shape for w in weights)]
    constants = {} if run_time else {first + k: w for k, w in enumerate(weights)}
    data = [
        (
            _values(n, INPUT, dtype=dtype),
            *(_values(n, HIDDEN, dtype=dtype, seed=7 + k) for k in range(states)),
            *(weights if run_time else ()),
        )
        for n in runs or (batch,)
    ]
    return Case(
        operation, opset or since, name, _model(opset or since, operation, shapes, attributes, constants, dtype), data
    )


def _cells():
    for operation, (_, _, _, activations) in _CELLS.items():
        yield _cell(operation, "plain")
        yield _cell(operation, "dynamic-batch", batch=-1, runs=(1, 0, 4))
        yield _cell(operation, "run-time-weights", run_time=True)
        yield _cell(operation, "clip", clip=0.3)
        yield _cell(operation, "activations", activations=["tanh", "relu", "sigmoid"][: len(activations)])
        yield _cell(operation, "relu-clip", activations=["relu"] * len(activations), clip=0.7)
        yield _cell(operation, "float16", dtype=np.float16)
    for name, changes in (("clip", {"clip": 0.3}), ("activations", {"activations": ["tanh", "relu"]}), ("plain", {})):
        yield _cell("GRUCell", f"linear-before-reset-{name}", linear_before_reset=True, **changes)
    yield _cell("GRUCell", "linear-before-reset-dynamic", linear_before_reset=True, batch=-1, runs=(1, 0, 4))
    original: dict[str, dict] = {
        "plain": {},
        "dynamic-batch": {"batch": -1, "runs": (1, 0, 4)},
        "clip": {"clip": 0.3},
        "activations": {"activations": ["tanh", "relu", "sigmoid"]},
        "run-time-weights": {"run_time": True},
    }
    for name, changes in original.items():
        yield _cell("LSTMCell", name, opset="opset1", **changes)
    yield _cell("LSTMCell", "weights-format-without-meaning", opset="opset1", weights_format="iofc")
    yield from _peepholes()


def _peepholes():
    """Gates of nothing but peepholes and, for c, a bias: then the equations fit on a line."""
    cell, bias = np.array([[1, -2], [0.5, 3]], np.float32), 0.7
    f, i, o = np.array([[1, 2], [-1, 0.5], [3, -1]], np.float32)
    biases = np.array([0] * 4 + [bias] * 2 + [0] * 2, np.float32)
    for name, input_forget in (("peepholes", False), ("peepholes-input-forget", True)):
        forget, enter = _sigmoid(f * cell), _sigmoid(i * cell)
        state = forget * cell + (1 - forget if input_forget else enter) * np.tanh(bias)
        hidden = _sigmoid(o * state) * np.tanh(state)
        yield Case(
            "LSTMCell",
            "opset1",
            name,
            _with_peepholes(biases, np.concatenate([f, i, o]), input_forget),
            [(_values(2, 3), _values(2, 2), cell)],
            oracle="expected",
            reason="the CPU plugin leaves out peepholes and input_forget; values by the reference kernel's equations",
            expected=[[hidden.astype(np.float32), state.astype(np.float32)]],
        )


def _with_peepholes(biases, peepholes, input_forget):
    """OpenVINO's API puts zeros in the place of the seventh input and does not write it: here it is written, and filled."""

    def build():
        import openvino as ov

        constants = {3: np.zeros((8, 3), np.float32), 4: np.zeros((8, 2), np.float32), 5: biases}
        shapes = [(2, 3), (2, 2), (2, 2), *(constant.shape for constant in constants.values())]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            ov.save_model(
                _model("opset1", "LSTMCell", shapes, {"hidden_size": 2}, constants)(), path, compress_to_fp16=False
            )
            root, weights = ElementTree.parse(path).getroot(), path.with_suffix(".bin").read_bytes()
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
        return IRText(ElementTree.tostring(root, "unicode"), weights[:offset] + data + weights[offset + len(data) :])

    return build


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


_SEQUENCES = {
    "RNNSequence": (1, 1, ["tanh"]),
    "GRUSequence": (3, 1, ["sigmoid", "tanh"]),
    "LSTMSequence": (4, 2, ["sigmoid", "tanh", "tanh"]),
}


def _sequence(
    operation,
    name,
    *,
    direction="forward",
    lengths=None,
    batch=N,
    time=T,
    dtype=np.float32,
    run_time=False,
    runs=None,
    **changes,
):
    """``lengths``: the constant lengths; ``None`` makes them an input."""
    gates, states, activations = _SEQUENCES[operation]
    directions = 2 if direction == "bidirectional" else 1
    bias_gates = 4 if operation == "GRUSequence" and changes.get("linear_before_reset") else None
    weights = _weights(gates, dtype, bias_gates, directions)
    attributes = {"hidden_size": HIDDEN, "activations": activations, "direction": direction} | changes
    at = 1 + states
    shapes = [
        (batch, time, INPUT),
        *[(batch, directions, HIDDEN)] * states,
        (batch,),
        *(w.shape for w in weights),
    ]
    constants = {} if run_time else {at + 1 + k: w for k, w in enumerate(weights)}
    if lengths is not None:
        constants[at] = np.array(lengths, np.int64)
    data = []
    for n, t, given in runs or ((batch, time, [time, 1, 2]),):
        row = [_values(n, t, INPUT, dtype=dtype)]
        row += [_values(n, directions, HIDDEN, dtype=dtype, seed=7 + k) for k in range(states)]
        row += [np.array(given, np.int64)] if lengths is None else []
        data.append((*row, *(weights if run_time else ())))
    return Case(operation, "opset5", name, _model("opset5", operation, shapes, attributes, constants, dtype, at), data)


def _sequences():
    for operation, (_, _, activations) in _SEQUENCES.items():
        for direction in ("forward", "reverse", "bidirectional"):
            yield _sequence(operation, direction, direction=direction)
            yield _sequence(operation, f"{direction}-whole", direction=direction, lengths=[T] * N)
            yield _sequence(
                operation,
                f"{direction}-dynamic",
                direction=direction,
                batch=-1,
                time=-1,
                runs=((2, 3, [3, 3]), (0, 4, []), (1, 5, [5])),  # the CPU plugin ignores other lengths of dynamic shapes
            )
            yield _sequence(operation, f"{direction}-clip", direction=direction, clip=0.3)
            yield _sequence(
                operation,
                f"{direction}-activations",
                direction=direction,
                activations=["tanh", "relu", "sigmoid"][: len(activations)],
            )
        yield _sequence(operation, "run-time-weights", run_time=True)
        yield _sequence(operation, "one-step", time=1, runs=((N, 1, [1, 1, 1]),))
        yield _sequence(operation, "float16", dtype=np.float16)
        yield _sequence(operation, "float64", dtype=np.float64)
        if operation == "GRUSequence":
            for direction in ("forward", "reverse", "bidirectional"):
                yield _sequence(operation, f"linear-before-reset-{direction}", direction=direction, linear_before_reset=True)


CASES = [*_cells(), *_sequences()]
