# ruff: noqa: E501
"""Recurrent cells, sequences, iterators and memory."""

from __future__ import annotations

from tests.conformance.inference_engine.case import Case, one, random
from tests.conformance.inference_engine.model import Net, Port
from tests.ir_elements import edge

_GATES = {"LSTM": (4, 4), "GRU": (3, 3), "RNN": (1, 1)}


def _cell(kind, name, data=None, batch=2, size=5, hidden=4, bias=True, **options) -> Case:
    data = data or {}
    gates, bias_gates = _GATES[kind]
    if data.get("linear_before_reset"):
        bias_gates = 4
    states = 2 if kind == "LSTM" else 1
    blobs = {"weights": random(1, gates * hidden, size + hidden)}
    if bias:
        blobs["biases"] = random(2, bias_gates * hidden)
    shapes = [(batch, size), *[(batch, hidden)] * states]
    return one(
        f"{kind}Cell", name, shapes, [(batch, hidden)] * states, {"hidden_size": hidden, **data}, blobs=blobs, **options
    )


def _sequence(kind, name, data=None, batch=2, steps=3, size=5, hidden=4, axis=1, **options) -> Case:
    data = {"hidden_size": hidden, "axis": axis, "direction": "Forward", **(data or {})}
    gates, bias_gates = _GATES[kind]
    if data.get("linear_before_reset"):
        bias_gates = 4
    states = 2 if kind == "LSTM" else 1
    blobs = {"weights": random(1, gates * hidden, size + hidden), "biases": random(2, bias_gates * hidden)}
    outer = (batch, steps) if axis == 1 else (steps, batch)
    shapes = [(*outer, size), *[(batch, hidden)] * states]
    outs = [(*outer, hidden), *[(batch, hidden)] * states]
    return one(f"{kind}Sequence", name, shapes, outs, data, blobs=blobs, **options)


def _iterator(name, backwards=False, last_only=False, version=6) -> Case:
    def make(net: Net) -> None:
        x, state = net.input(1, 4, 3), net.input(1, 3)
        body = Net(version, net.precision)
        body.blob = net.blob
        flat_id = body.count
        body.layers.append(
            f'<layer id="{flat_id}" name="flat" precision="FP32" type="Reshape"><data dim="-1,3"/><input><port id="0"><dim>1</dim>'
            "<dim>1</dim><dim>3</dim></port></input><output>" + _out(1, (1, 3), version) + "</output></layer>"
        )
        body.layers.append(
            f'<layer id="{flat_id + 1}" name="total" precision="FP32" type="Eltwise"><data operation="sum"/><input><port id="0"><dim>1'
            '</dim><dim>3</dim></port><port id="1"><dim>1</dim><dim>3</dim></port></input><output>'
            + _out(2, (1, 3), version)
            + "</output></layer>"
        )
        body.count += 2
        body.edges.append(edge(flat_id, 1, flat_id + 1, 0))
        total = Port(flat_id + 1, 2, (1, 3), "FP32")
        ends = {"x": (flat_id, 0), "state": (flat_id + 1, 1)}
        half = body.layer(
            "FullyConnected",
            [total],
            [(1, 3)],
            {"out-size": 3},
            blobs={"weights": random(5, 3, 3), "biases": random(6, 3)},
            name="half",
        )
        squashed = body.layer("TanH", [half], [(1, 3)], {}, name="squashed")
        wide = body.layer("Reshape", [squashed], [(1, 1, 3)], {"dim": "-1,1,3"}, name="wide")
        step = 'stride="-1" start="-1" end="0"' if backwards else 'stride="1" start="0" end="-1"'
        joined = f'<output external_port_id="2" internal_layer_id="{wide.layer}" internal_port_id="{wide.port}" axis="1" part_size="1" {step}/>'
        last = f'<output external_port_id="{2 if last_only else 3}" internal_layer_id="{squashed.layer}" internal_port_id="{squashed.port}"/>'
        text = (
            "<port_map>"
            f'<input external_port_id="0" internal_layer_id="{ends["x"][0]}" internal_port_id="{ends["x"][1]}" axis="1" part_size="1" {step}/>'
            f'<input external_port_id="1" internal_layer_id="{ends["state"][0]}" internal_port_id="{ends["state"][1]}"/>'
            f"{'' if last_only else joined}{last}</port_map><back_edges>"
            f'<edge from-layer="{squashed.layer}" from-port="{squashed.port}" to-layer="{ends["state"][0]}" to-port="{ends["state"][1]}"/>'
            "</back_edges>" + body.xml("body")
        )
        outs = [(1, 3)] if last_only else [(1, 4, 3), (1, 3)]
        net.layer("TensorIterator", [x, state], outs, None, name="out", body=text)

    return Case("TensorIterator", name, make, version)


def _cells(kind, name, backwards=False, version=6, batch=2, steps=4, size=3, hidden=5, axis=1) -> Case:
    """An iterator over the steps of one cell."""
    gates, bias_gates = _GATES[kind]
    count = 2 if kind == "LSTM" else 1

    def make(net: Net) -> None:
        outer = (batch, steps) if axis == 1 else (steps, batch)
        x, *states = net.input(*outer, size), *(net.input(batch, hidden) for _ in range(count))
        body = Net(version, net.precision)
        body.blob = net.blob
        inner = (batch, 1, size) if axis == 1 else (1, batch, size)
        body.layers.append(
            f'<layer id="0" name="flat" precision="FP32" type="Reshape"><data dim="{batch},{size}"/><input>'
            f"{_out(0, inner, 0)}</input><output>{_out(1, (batch, size), version)}</output></layer>"
        )
        given = "".join(_out(k, (batch, width), 0) for k, width in enumerate([size, *[hidden] * count]))
        made = "".join(_out(1 + count + k, (batch, hidden), version) for k in range(count))
        blobs = body.segment("weights", random(1, gates * hidden, size + hidden))
        blobs += body.segment("biases", random(2, bias_gates * hidden))
        body.layers.append(
            f'<layer id="1" name="cell" precision="FP32" type="{kind}Cell"><data hidden_size="{hidden}"/>'
            f"<input>{given}</input><output>{made}</output><blobs>{blobs}</blobs></layer>"
        )
        body.edges.append(edge(0, 1, 1, 0))
        body.count = 2
        new = [Port(1, 1 + count + k, (batch, hidden), "FP32") for k in range(count)]
        shape = (batch, 1, hidden) if axis == 1 else (1, batch, hidden)
        wide = body.layer("Reshape", [new[0]], [shape], {"dim": ",".join(map(str, shape))}, name="wide")
        step = 'stride="-1" start="-1" end="0"' if backwards else 'stride="1" start="0" end="-1"'
        text = f'<port_map><input external_port_id="0" internal_layer_id="0" internal_port_id="0" axis="{axis}" part_size="1" {step}/>'
        for k in range(count):
            text += f'<input external_port_id="{1 + k}" internal_layer_id="1" internal_port_id="{1 + k}"/>'
        first = 1 + count
        text += f'<output external_port_id="{first}" internal_layer_id="2" internal_port_id="{wide.port}" axis="{axis}" part_size="1" {step}/>'
        for k, state in enumerate(new):
            text += f'<output external_port_id="{first + 1 + k}" internal_layer_id="1" internal_port_id="{state.port}"/>'
        text += "</port_map><back_edges>" + "".join(
            f'<edge from-layer="1" from-port="{state.port}" to-layer="1" to-port="{1 + k}"/>' for k, state in enumerate(new)
        )
        outs = [(*outer, hidden), *[(batch, hidden)] * count]
        net.layer("TensorIterator", [x, *states], outs, None, name="out", body=f"{text}</back_edges>{body.xml('body')}")

    return Case("TensorIterator", name, make, version)


def _out(number, dims, version):
    precision = ' precision="FP32"' if version >= 7 else ""
    return f'<port id="{number}"{precision}>' + "".join(f"<dim>{d}</dim>" for d in dims) + "</port>"


def _memory(name, version, dims) -> Case:
    def make(net: Net) -> None:
        x = net.input(*dims)
        old = net.layer("Memory", [], [dims], {"id": "state", "index": 1, "size": 2}, name="old")
        net.layer("Eltwise", [x, old], [dims], {"operation": "sum"}, name="out")
        twice = net.layer("Power", [x], [dims], {"power": 1, "scale": 2, "shift": 0}, name="twice")
        net.layer("Memory", [twice], [], {"id": "state", "index": 0, "size": 2}, name="new")

    # In the Inference Engine the memory is undefined before the first run.
    return Case("ReadValue", name, make, version, runs=2)


def _own_memory(name, version, data, other) -> Case:
    """The memory has another shape than the input, which changes."""

    def make(net: Net) -> None:
        old = net.layer("Memory", [], [(1, 4)], {"id": "state", "index": 1, "size": 2}, name="old")
        net.layer("Concat", [net.input(*data, name="data"), old], [(1, 10)], {"axis": 1}, name="out")
        new = net.layer("Power", [old], [(1, 4)], {"power": 1, "scale": 0, "shift": 0.5}, name="new")
        net.layer("Memory", [new], [], {"id": "state", "index": 0, "size": 2}, name="written")

    return Case("ReadValue", name, make, version, runs=3, shapes={"data": other})


CASES = [
    *[
        case
        for kind in ("LSTM", "GRU", "RNN")
        for case in (
            _cell(kind, "plain"),
            _cell(kind, "half", precision="FP16"),
            _cell(kind, "one_row", batch=1, size=3, hidden=6),
            _cell(kind, "version7", version=7),
            _sequence(kind, "plain"),
            _sequence(kind, "backward", {"direction": "Backward"}),
            _sequence(kind, "time_first", axis=0),
            _sequence(kind, "half", precision="FP16"),
        )
    ],
    *[
        one(
            f"{kind}Sequence",
            "no_states",
            (2, 3, 5),
            (2, 3, 4),
            {"hidden_size": 4, "axis": 1, "direction": "Forward"},
            blobs={"weights": random(1, gates * 4, 9), "biases": random(2, gates * 4)},
        )
        for kind, (gates, _) in _GATES.items()
    ],
    _cell("GRU", "linear_before_reset", {"linear_before_reset": 1}),
    _sequence("GRU", "linear_before_reset", {"linear_before_reset": 1}),
    _cell("RNN", "relu", {"activations": "relu"}),
    _iterator("plain"),
    _iterator("backwards", backwards=True),
    _iterator("last_only", last_only=True),
    _iterator("version5", version=5),
    _iterator("version7", version=7),
    *[
        _cells(kind, f"{kind}{'_backwards' * backwards}_version{version}", backwards, version)
        for kind in ("LSTM", "GRU", "RNN")
        for backwards, version in ((False, 5), (True, 6), (False, 7))
    ],
    _cells("LSTM", "LSTM_time_first", axis=0, backwards=True),
    _cells("LSTM", "LSTM_one_row", batch=1),
    _memory("rows", 6, (1, 6)),
    _memory("images", 6, (1, 2, 3, 3)),
    _memory("version7", 7, (1, 6)),
    _memory("version5", 5, (1, 6)),
    _own_memory("of_other_shapes", 6, (1, 6), (1, 9)),
    _own_memory("of_other_shapes_of_version_7", 7, (1, 6), (1, 3)),
]
