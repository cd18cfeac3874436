"""Bodies with long contents, bodies in bodies, and layers with bodies one after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.fuzz.deep.net import Net, Port
from tests.fuzz.deep.repeated import CHAINED, DOUBLED, Step, binary, i64, matmul, number, reshape
from tests.fuzz.deep.rows import ROWS

_SHAPE = (1, 8, 32)
_COUNTS = {"doubled": DOUBLED, "chained": CHAINED}
Maker = Callable[[], tuple[bytes, bytes]]


# -- layers with bodies -----------------------------------------------------------------------------------------------------


def _maps(inputs: list[tuple[int, str]], outputs: list[tuple[int, str]], first: int, prefix: str = "") -> str:
    """Return a port map: the layers in the body, and further attributes, of each input and output."""
    entry = '<{} external_port_id="{}" internal_layer_id="{}"{}/>\n'
    text = "".join(entry.format("input", k, layer, more) for k, (layer, more) in enumerate(inputs) if k >= 0)
    text += "".join(entry.format("output", first + k, layer, more) for k, (layer, more) in enumerate(outputs))
    return f"<{prefix}port_map>\n{text}</{prefix}port_map>\n"


def iterated(net: Net, x: Port, step: Step) -> Port:
    """Add a TensorIterator over the tokens, with a state."""
    inner = net.body()
    part, state = inner.parameter(1, 1, 32), inner.parameter(1, 1, 32)
    after = step(inner, binary(inner, "Add", part, state))
    results = inner.result(after)
    start = net.const(np.zeros((1, 1, 32)))
    piece = ' axis="1" start="0" end="-1" stride="1" part_size="1"'
    extra = _maps([(part.layer, piece), (state.layer, "")], [(results[0], piece)], 2)
    back = f'<back_edges><edge from-layer="{results[0]}" to-layer="{state.layer}"/></back_edges>\n'
    extra += f"{back}<body>\n{inner.graph()}</body>\n"
    return net.layer("TensorIterator", x, start, extra=extra, shape=_SHAPE, kind="f32")


def looped(net: Net, x: Port, step: Step, trips: int = 3) -> Port:
    """Add a Loop with the state ``x``."""
    inner = net.body()
    state = inner.parameter(*x.shape)
    after = step(inner, state)
    results = inner.result(after, inner.const(True, np.bool_))
    count, condition = net.const(trips, np.int64), net.const(True, np.bool_)
    text = f'<input external_port_id="2" internal_layer_id="{state.layer}"/>\n'
    text += f'<output external_port_id="3" internal_layer_id="{results[0]}"/>\n'
    text += f'<output external_port_id="-1" internal_layer_id="{results[1]}" purpose="execution_condition"/>\n'
    back = f'<back_edges><edge from-layer="{results[0]}" to-layer="{state.layer}"/></back_edges>\n'
    extra = f"<port_map>\n{text}</port_map>\n{back}<body>\n{inner.graph()}</body>\n"
    return net.layer("Loop", count, condition, x, extra=extra, shape=x.shape, kind="f32", version=5)


def chosen(net: Net, x: Port, then: Step, other: Step | None = None, condition: Port | None = None) -> Port:
    """Add an If; by default, the other branch returns its input's Relu."""
    if condition is None:
        total = net.layer("ReduceSum", x, i64(net, 0, 1, 2), data={"keep_dims": False}, shape=[])
        condition = binary(net, "Greater", total, 0.0, "boolean")
    extra = ""
    for name, step in (("then", then), ("else", other or (lambda inner, value: inner.layer("ReLU", value)))):
        inner = net.body()
        given = inner.parameter(*x.shape)
        results = inner.result(step(inner, given))
        text = f'<input external_port_id="1" internal_layer_id="{given.layer}"/>\n'
        text += f'<output external_port_id="2" internal_layer_id="{results[0]}"/>\n'
        extra += f"<{name}_port_map>\n{text}</{name}_port_map>\n<{name}_body>\n{inner.graph()}</{name}_body>\n"
    return net.layer("If", condition, x, extra=extra, shape=x.shape, kind="f32", version=8)


_LAYERS: dict[str, Callable[[Net, Port, Step], Port]] = {"iterator": iterated, "loop": looped, "if": chosen}


# -- contents ---------------------------------------------------------------------------------------------------------------


def _times(step: Step, count: int) -> Step:
    def repeated(net: Net, x: Port) -> Port:
        for _ in range(count):
            x = step(net, x)
        return x

    return repeated


def _with(layer: Callable[[Net, Port, Step], Port], step: Step) -> Step:
    """Return a step that adds a layer with a body."""
    return lambda net, x: layer(net, x, step)


def _cell(kind: str, gates: int) -> Step:
    """Return a recurrent cell with the states of its input."""

    def step(net: Net, x: Port) -> Port:
        rows = reshape(net, x, -1, 32) if x.shape[1] != 1 else reshape(net, x, 1, 32)
        weights = np.linspace(-1, 1, gates * 32 * 32).reshape(gates * 32, 32)
        states = [rows] * (2 if kind == "LSTM" else 1)
        given = [net.const(weights), net.const(weights), net.const(np.zeros(gates * 32))]
        version = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
        shapes = [(1, 32)] * len(states)
        found = net.layer(f"{kind}Cell", rows, *states, *given, data={"hidden_size": 32}, shapes=shapes, version=version)
        return reshape(net, found[-1], 1, 1, 32)

    return step


def _gate(net: Net, x: Port) -> Port:
    """A cell written out, whose weights are computed."""
    weights = net.layer("Tanh", net.const(np.linspace(-1, 1, 1024).reshape(32, 32)))
    return binary(net, "Multiply", net.layer("Sigmoid", matmul(net, x, weights)), net.layer("Tanh", x))


def _computed_weights(count: int) -> Step:
    def step(net: Net, x: Port) -> Port:
        weights = net.const(np.linspace(-1, 1, 1024).reshape(32, 32))
        for _ in range(count):
            weights = binary(net, "Multiply", binary(net, "Add", weights, weights), 0.5)
        return net.layer("Sigmoid", matmul(net, x, weights))

    return step


_CONTENTS = ("half sum", "sigmoid gate", "select", "dense", "16 bits", "layer norm", "squeeze", "quantized sum", "einsum")
"""Steps that do not depend on the number of tokens."""


def _one(make: Callable[[Net, Port], Port], *shape: int) -> Maker:
    def files() -> tuple[bytes, bytes]:
        net = Net()
        net.result(make(net, net.parameter(*(shape or _SHAPE))))
        return net.files()

    return files


def _contained() -> dict[str, Maker]:
    """Return layers with long bodies, and long rows of layers with bodies."""
    found = {}
    for layer_name, layer in _LAYERS.items():
        for name in _CONTENTS:
            if layer is iterated and name == "squeeze":  # its shapes are those of all tokens
                continue
            step = ROWS.steps[name]
            for form, count in _COUNTS.items():
                found[f"{layer_name} of {name}, {form}"] = _one(_with(layer, _times(step, count)))
            found[f"{layer_name} of {name} in a row"] = _one(_times(_with(layer, step), DOUBLED))
        for form, count in _COUNTS.items():
            found[f"{layer_name} of computed weights, {form}"] = _one(_with(layer, _computed_weights(count)))
    cells = {"LSTM": _cell("LSTM", 4), "GRU": _cell("GRU", 3), "RNN": _cell("RNN", 1), "gate": _gate}
    for name, cell in cells.items():
        for count in (1, DOUBLED):
            found[f"iterator of {count} {name}"] = _one(_with(iterated, _times(cell, count)))
    return found


# -- bodies in bodies -------------------------------------------------------------------------------------------------------


def _nested(layer: Callable[[Net, Port, Step], Port], depth: int) -> Step:
    def step(net: Net, x: Port) -> Port:
        return layer(net, x, _nested(layer, depth - 1)) if depth else binary(net, "Add", x, x)

    return step


def _nested_twice(net: Net, x: Port, depth: int) -> Port:
    """An If in both branches of an If ..."""
    if depth == 0:
        return binary(net, "Add", x, x)
    branch = lambda inner, y: _nested_twice(inner, y, depth - 1)  # noqa: E731
    return chosen(net, x, branch, branch)


def _alternating(net: Net, x: Port, depth: int) -> Port:
    if depth == 0:
        return binary(net, "Add", x, x)
    layer = looped if depth % 2 else chosen
    return layer(net, x, lambda inner, y: _alternating(inner, y, depth - 1))


def _nests() -> dict[str, Maker]:
    found = {}
    for depth in (8, 20, 31, 32, 33, 60, 200):
        for name, layer in (("loop", looped), ("if", chosen)):
            found[f"{name} in {name}, {depth} deep"] = _one(_nested(layer, depth))
        found[f"loop in if in loop, {depth} deep"] = _one(lambda net, x, depth=depth: _alternating(net, x, depth))
    for depth in (4, 9):
        found[f"if in both branches, {depth} deep"] = _one(lambda net, x, depth=depth: _nested_twice(net, x, depth))
    for trips in (100, 10**6, 2**40, 2**62):
        found[f"loop of {trips}"] = _one(lambda net, x, trips=trips: looped(net, x, ROWS.steps["dense"], trips))
        found[f"loop of {trips} in a loop of {trips} in a loop"] = _one(
            lambda net, x, trips=trips: looped(
                net, x, lambda inner, y: looped(inner, y, lambda last, z: looped(last, z, ROWS.steps["sine"], trips), trips),
                trips,
            )
        )  # fmt: skip
    return found


def _long_sequences() -> dict[str, Maker]:
    """Return recurrent layers of many steps, which some targets write out."""
    found = {}
    for steps in (500, 1024, 100_000, 2**31):

        def make(net: Net, x: Port, steps: int = steps) -> Port:
            weights = np.zeros((1, 128, 32))
            state = net.const(np.zeros((1, 1, 32)))
            given = [net.const([steps], np.int64), net.const(weights), net.const(weights), net.const(np.zeros((1, 128)))]
            shapes = [(1, 1, steps, 32), (1, 1, 32), (1, 1, 32)]
            data = {"hidden_size": 32, "direction": "forward"}
            return net.layer("LSTMSequence", x, state, state, *given, data=data, shapes=shapes, version=5)[0]

        found[f"LSTM of {steps} steps"] = _one(make, 1, steps, 32)
    return found


def _reads() -> dict[str, Maker]:
    """Return variables in bodies."""

    def make(net: Net, x: Port) -> Port:
        def step(inner: Net, y: Port) -> Port:
            data = {"variable_id": f"v{len(net.layers)}", "variable_type": "f32", "variable_shape": "1,8,32"}
            before = inner.layer("ReadValue", y, data=data, version=6)
            after = binary(inner, "Add", before, before)
            inner.layer("Assign", after, data={"variable_id": data["variable_id"]}, version=6)
            return after

        return _times(lambda inner, y: chosen(inner, y, step), DOUBLED)(net, x)

    return {"variables in branches": _one(make)}


def _condition(net: Net, x: Port) -> Port:
    """An If whose condition has many paths."""
    truth = binary(net, "Greater", net.layer("Gather", reshape(net, x, 256), number(net, 0), number(net, 0),
                                             data={"batch_dims": 0}, shape=[], version=8), 0.0, "boolean")  # fmt: skip
    for _ in range(DOUBLED):
        truth = binary(net, "LogicalAnd", truth, truth)
    return chosen(net, x, ROWS.steps["sine"], None, truth)


MAKERS: dict[str, Maker] = {
    **_contained(),
    **_nests(),
    **_long_sequences(),
    **_reads(),
    "condition of many paths": _one(_condition),
}
