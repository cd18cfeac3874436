"""Layers with bodies: If, Loop, TensorIterator. A body is a random graph, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.random.graph import ANY, Graph, Unfit, Value, maker
from tests.conformance.random.recipe import Layer, Recipe

_DEEPEST = 2


def _body(g: Graph, inputs: list[tuple[str, list[int]]], most: int) -> Graph:
    if g.depth >= _DEEPEST:
        raise Unfit("deep enough")
    inner = Graph(g.rng, inputs, g.depth + 1)
    inner.grow(g.int(1, most))
    return inner


def _result(g: Graph, inner: Graph, type_: str, shape: tuple[int, ...]) -> Value:
    """Return a value of the type and shape: one of the body, preferably computed."""
    found = [value for value in inner.values if value.type == type_ and value.shape == shape]
    computed = [value for value in found if isinstance(inner.nodes[value.ref[0]], Layer)]
    return g.pick(*(computed or found))


def _recipe(inner: Graph, results: list[Value]) -> Recipe:
    return inner.recipe(results, keep_parameters=True)


@maker(2)
def branches(g: Graph) -> None:
    values = [g.value(ANY, (0, 4)) for _ in range(g.int(1, 3))]
    inputs = [(value.type, list(value.dims)) for value in values]
    condition = g.leaf(np.array(g.chance(0.5)), 0.2) if g.chance(0.7) else g.value(("boolean",), (0, 0))
    bodies = [_body(g, inputs, 4) for _ in range(2)]
    pairs = []
    for value in (bodies[0].unused() or bodies[0].values)[:3]:
        fits = [other for other in bodies[1].values if other.type == value.type and _alike(other, value)]
        computed = [other for other in fits if isinstance(bodies[1].nodes[other.ref[0]], Layer)]
        if fits:
            pairs.append((value, g.pick(*(computed or fits))))
    if not pairs:
        raise Unfit("no common output")
    recipes = tuple(_recipe(body, [pair[k] for pair in pairs]) for k, body in enumerate(bodies))
    ports: list[tuple[Any, ...]] = [("set_input", k + 1, k, k) for k in range(len(values))]
    ports += [("set_output", k, k) for k in range(len(pairs))]
    g.add(Layer("If", "opset8", tuple(v.ref for v in (condition, *values)), {}, recipes, tuple(ports)))


def _alike(one: Value, other: Value) -> bool:
    return one.shape is not None and other.shape is not None and len(one.shape) == len(other.shape)


def _iteration(g: Graph, first: int) -> tuple[list[Value], list[tuple[str, list[int]]], list[tuple[Any, ...]], Value, int]:
    """Return the inputs of a repeated body: a state, possibly slices of a value, and invariant values."""
    state = g.value(ANY, (0, 3), where=lambda v: 0 not in (v.shape or ()))
    values, inputs = [state], [(state.type, list(state.dims))]
    ports: list[tuple[Any, ...]] = []
    trips = g.int(1, 4)
    if g.chance(0.7):
        sliced = g.value(ANY, (1, 3), where=lambda v: 0 not in (v.shape or ()))
        axis = g.int(0, sliced.rank - 1)
        size = sliced.dims[axis]
        parts = g.pick(*(d for d in range(1, size + 1) if size % d == 0))
        backwards = g.chance(0.3)
        how = (-1, -parts, parts, 0, axis) if backwards else (0, parts, parts, -1, axis)
        trips = size // parts
        shape = list(sliced.dims)
        shape[axis] = parts
        ports.append(("set_sliced_input", len(values), first + len(values), *how))
        values.append(sliced)
        inputs.append((sliced.type, shape))
    for _ in range(g.int(0, 2)):
        value = g.value(ANY, (0, 3))
        ports.append(("set_invariant_input", len(values), first + len(values)))
        values.append(value)
        inputs.append((value.type, list(value.dims)))
    return values, inputs, ports, state, trips


def _outputs(g: Graph, inner: Graph, results: list[Value], ports: list[tuple[Any, ...]]) -> None:
    """Connect the body's further results: the last value of each, or all concatenated."""
    ports.append(("get_iter_value", 0, -1))
    for value in g.some(inner.unused(), 0, 2):
        if value.shape is None or None in value.shape:
            continue
        if value.rank and g.chance(0.6):
            part = value.dims[0]
            how = (0, part, part, -1, 0) if g.chance(0.7) else (-1, -part, part, 0, 0)
            if not part:
                continue
            ports.append(("get_concatenated_slices", len(results), *how))
        else:
            ports.append(("get_iter_value", len(results), -1))
        results.append(value)


@maker()
def iterator(g: Graph) -> None:
    values, inputs, ports, state, _ = _iteration(g, 0)
    if not any(port[0] == "set_sliced_input" for port in ports):
        raise Unfit("the number of iterations is undefined")
    inner = _body(g, inputs, 4)
    results = [_result(g, inner, state.type, state.dims)]
    ports.insert(0, ("set_merged_input", 0, 0, 0))
    _outputs(g, inner, results, ports)
    body = _recipe(inner, results)
    taken = {ref[0] for node in body.nodes if isinstance(node, Layer) for ref in node.inputs}
    taken |= {ref[0] for ref in body.results}
    if not any(port[2] in taken for port in ports if port[0] == "set_sliced_input"):
        raise Unfit("without a slice, the CPU plugin runs the body once")
    g.add(Layer("TensorIterator", "opset1", tuple(v.ref for v in values), {}, (body,), tuple(ports)))


@maker(2)
def loop(g: Graph) -> None:
    values, inputs, ports, state, trips = _iteration(g, 2)
    counted = g.chance(0.5)
    if counted:
        inputs.append(("i64", g.pick([], [1])))
    inner = _body(g, inputs, 4)
    results = [_result(g, inner, state.type, state.dims)]
    ports.insert(0, ("set_merged_input", 0, 2, 0))
    _outputs(g, inner, results, ports)
    go_on = inner.const(np.array(True)) if g.chance(0.8) else _decided(inner)
    results.append(go_on)
    joined = any(port[0] == "get_concatenated_slices" for port in ports)
    count = g.leaf(np.array(trips, g.pick(np.int32, np.int64)), 0.7 if joined else 0.5)
    special = (len(inputs) - 1 if counted else -1, len(results) - 1)
    start = g.leaf(np.array(True), 0.9)
    given = (count, start, *values)
    attributes = {"special": special}
    g.add(Layer("Loop", "opset5", tuple(v.ref for v in given), attributes, (_recipe(inner, results),), tuple(ports)))


def _decided(inner: Graph) -> Value:
    """Return the body's condition to continue."""
    found = [value for value in inner.values if value.type == "boolean" and value.shape in ((), (1,))]
    return inner.pick(*found) if found else inner.const(np.array(True))
