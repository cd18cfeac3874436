"""A part of a model in a body: an If, a Loop or a TensorIterator.

A pass must respect which values a body can use, and when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.conformance.operation_models import TYPES
from tests.conformance.random.recipe import Layer, Leaf, Recipe, Ref, build

_INSIDE = 0.7
"""The probability that a Constant of the layers in the body is there, too. Types that a Parameter cannot have always are."""


@dataclass(frozen=True)
class _Part:
    """Layers to put in a body.

    Attributes:
        places: their indices, and those of Constants in the body.
        inputs: the values that the body receives.
        outputs: the values that others use.
    """

    places: frozenset[int]
    inputs: tuple[Ref, ...]
    outputs: tuple[Ref, ...]


def enclosed(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Put consecutive layers of a model into a body that computes the same. Return ``None`` if OpenVINO rejects it."""
    if any(isinstance(node, Layer) and (node.bodies or node.operation in ("ReadValue", "Assign")) for node in recipe.nodes):
        return None
    part = _part(recipe, rng)
    varying = recipe.needing(recipe.parameters())
    if any(place not in varying for place, _ in part.outputs):
        return None  # OpenVINO rounds compressed weights that leave a body
    try:
        body = _body(recipe, part, rng)
        chosen = (_if, _loop, _iterator)[rng.choice(3, p=(0.5, 0.35, 0.15))]
        made = chosen(recipe, part, body, rng)
        build(made)
    except Exception:  # any error of OpenVINO
        return None
    return made


def _part(recipe: Recipe, rng: np.random.Generator) -> _Part:
    layers = [place for place, node in enumerate(recipe.nodes) if isinstance(node, Layer)]
    first, last = sorted(int(k) for k in rng.integers(0, len(layers), 2))
    inner = set(layers[first : last + 1])
    given = [ref for place in sorted(inner) if isinstance(node := recipe.nodes[place], Layer) for ref in node.inputs]
    for place in sorted({place for place, _ in given}):
        node = recipe.nodes[place]
        if isinstance(node, Leaf) and node.constant and (node.type not in TYPES or rng.random() < _INSIDE):
            inner.add(place)
    outside = [node for place, node in enumerate(recipe.nodes) if place not in inner and isinstance(node, Layer)]
    used = {ref for node in outside for ref in node.inputs} | set(recipe.results)
    outputs = [ref for ref in sorted(used) if ref[0] in inner and isinstance(recipe.nodes[ref[0]], Layer)]
    inputs = dict.fromkeys(ref for ref in given if ref[0] not in inner)
    return _Part(frozenset(inner), tuple(inputs), tuple(outputs))


def _body(recipe: Recipe, part: _Part, rng: np.random.Generator) -> Recipe:
    """Return the body, whose Parameters are the part's inputs, and whose results are its outputs."""
    outer = build(replace(recipe, results=part.inputs)).outputs if part.inputs else []
    known = rng.random() < 0.8
    parameters = [_parameter(output, known) for output in outer]
    places: dict[Ref, Ref] = {ref: (k, 0) for k, ref in enumerate(part.inputs)}
    nodes: list[Leaf | Layer] = list(parameters)
    moved: dict[int, int] = {}
    for place in sorted(part.places):
        node = recipe.nodes[place]
        if isinstance(node, Layer):
            node = replace(node, inputs=tuple(_at(ref, places, moved) for ref in node.inputs))
        moved[place] = len(nodes)
        nodes.append(node)
    return Recipe(tuple(nodes), tuple(_at(ref, places, moved) for ref in part.outputs))


def _at(ref: Ref, places: dict[Ref, Ref], moved: dict[int, int]) -> Ref:
    return places[ref] if ref in places else (moved[ref[0]], ref[1])


def _parameter(output: Any, known: bool) -> Leaf:
    shape = output.get_partial_shape()
    dims = tuple(d.get_length() if d.is_static and known else -1 for d in shape) if shape.rank.is_static else None
    return Leaf(output.get_element_type().get_type_name(), None, dims)


def _if(recipe: Recipe, part: _Part, body: Recipe, rng: np.random.Generator) -> Recipe:
    condition = Leaf("boolean", np.array(rng.random() < 0.5), (), constant=rng.random() < 0.2)
    inputs = [("set_input", 1 + k, k, k) for k in range(len(part.inputs))]
    outputs = [("set_output", k, k) for k in range(len(part.outputs))]
    return _replaced(recipe, part, [condition], Layer("If", "opset8", (), {}, (body, body), (*inputs, *outputs)))


def _loop(recipe: Recipe, part: _Part, body: Recipe, rng: np.random.Generator) -> Recipe:
    """A Loop whose body repeats the same computation; sometimes, an input of the next iteration is an output."""
    trips = Leaf("i64", np.array(int(rng.integers(1, 4))), (), constant=rng.random() < 0.7)
    start = Leaf("boolean", np.array(True), (), constant=rng.random() < 0.9)
    nodes = (*body.nodes, Leaf("boolean", np.array(True), (), constant=True))
    going = Recipe(nodes, (*body.results, (len(body.nodes), 0)))
    carried = _carried(body) if rng.random() < 0.4 else None
    ports: list[tuple[Any, ...]] = []
    for k in range(len(part.inputs)):
        if carried is not None and carried[0] == k:
            ports.append(("set_merged_input", k, 2 + k, carried[1]))
        else:
            ports.append(("set_invariant_input", k, 2 + k))
    ports += [("get_iter_value", k, -1) for k in range(len(part.outputs))]
    attributes = {"special": (-1, len(body.results))}
    return _replaced(recipe, part, [trips, start], Layer("Loop", "opset5", (), attributes, (going,), tuple(ports)))


def _iterator(recipe: Recipe, part: _Part, body: Recipe, rng: np.random.Generator) -> Recipe:
    """A TensorIterator over a separate vector, whose last element is a further result of the model."""
    steps = Leaf("f32", np.arange(1 + rng.integers(3), dtype=np.float32), (-1,), constant=rng.random() < 0.3)
    step = len(body.nodes)
    nodes = (*body.nodes, Leaf("f32", None, (1,)), Layer("Relu", "opset1", ((step, 0),), {}))
    counting = Recipe(nodes, (*body.results, (step + 1, 0)))
    ports: list[tuple[Any, ...]] = [("set_sliced_input", len(part.inputs), 0, 0, 1, 1, -1, 0)]
    ports += [("set_invariant_input", k, 1 + k) for k in range(len(part.inputs))]
    ports += [("get_iter_value", k, -1) for k in range(len(body.results) + 1)]
    layer = Layer("TensorIterator", "opset1", (), {}, (counting,), tuple(ports))
    made = _replaced(recipe, part, [steps], layer)
    place = next(k for k, node in enumerate(made.nodes) if isinstance(node, Layer) and node.bodies)
    return replace(made, results=(*made.results, (place, len(body.results))))


def _carried(body: Recipe) -> tuple[int, int] | None:
    """Return an input and an output of a body with the same type and shape."""
    results = [(output.get_element_type().get_type_name(), output.get_partial_shape()) for output in build(body).outputs]
    for k, node in enumerate(body.nodes):
        if not isinstance(node, Leaf) or node.constant:
            break
        for index, (type_, shape) in enumerate(results):
            if node.dims is not None and type_ == node.type and str(list(node.dims)) == str(_dims(shape)):
                return k, index
    return None


def _dims(shape: Any) -> list[int] | None:
    return [d.get_length() if d.is_static else -1 for d in shape] if shape.rank.is_static else None


def _replaced(recipe: Recipe, part: _Part, own: Sequence[Leaf], layer: Layer) -> Recipe:
    """Return the recipe with ``layer`` instead of the part. Its inputs are ``own``, then the part's inputs."""
    nodes: list[Leaf | Layer] = []
    moved: dict[int, int] = {}
    last = max(place for place in part.places if isinstance(recipe.nodes[place], Layer))
    outputs: dict[Ref, Ref] = {}

    def at(ref: Ref) -> Ref:
        return outputs[ref] if ref in outputs else (moved[ref[0]], ref[1])

    for place, node in enumerate(recipe.nodes):
        if place == last:
            first = len(nodes)
            nodes += own
            given = tuple((first + k, 0) for k in range(len(own)))
            outputs = {ref: (len(nodes), k) for k, ref in enumerate(part.outputs)}
            nodes.append(replace(layer, inputs=(*given, *map(at, part.inputs))))
        elif place not in part.places or isinstance(node, Leaf):  # layers outside may use a Constant of the body, too
            moved[place] = len(nodes)
            nodes.append(replace(node, inputs=tuple(map(at, node.inputs))) if isinstance(node, Layer) else node)
    return Recipe(tuple(nodes), tuple(map(at, recipe.results))).pruned()
