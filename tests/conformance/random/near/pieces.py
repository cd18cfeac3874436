"""A piece of a network: a layer and some of its neighbors, with OpenVINO's values at its border as inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.conformance.operation_models import TYPES
from tests.conformance.random.near.networks import Network
from tests.conformance.random.recipe import Layer, Leaf, Recipe, Ref

MOST_LAYERS = 30
_BACKWARDS = 0.85


def piece(network: Network, rng: np.random.Generator) -> Recipe:
    """Return some connected layers, with Parameters for values from other layers; values that others consume are results."""
    chosen = _chosen(network, int(rng.integers(1, MOST_LAYERS + 1)), rng)
    recipe = network.recipe
    known = rng.random() < 0.3  # all dimensions are known
    nodes: list[Leaf | Layer] = []
    places: dict[Ref, Ref] = {}
    for place, node in enumerate(recipe.nodes):
        if place not in chosen or not isinstance(node, Layer):
            continue
        for ref in node.inputs:
            if ref not in places:
                places[ref] = (len(nodes), 0)
                nodes.append(_border(network, ref, known))
        for index in range(_MOST_OUTPUTS):
            places[place, index] = (len(nodes), index)
        nodes.append(replace(node, inputs=tuple(places[ref] for ref in node.inputs)))
    taken = {ref for k, n in enumerate(recipe.nodes) if isinstance(n, Layer) and k not in chosen for ref in n.inputs}
    inner = {ref for k in chosen if isinstance(n := recipe.nodes[k], Layer) for ref in n.inputs}
    outputs = [ref for ref in network.values if ref[0] in chosen]
    results = [ref for ref in outputs if ref in taken or ref in recipe.results or ref not in inner]
    return Recipe(tuple(nodes), tuple(places[ref] for ref in results)).pruned()


# No layer of the networks has more.
_MOST_OUTPUTS = 64


def _chosen(network: Network, size: int, rng: np.random.Generator) -> set[int]:
    """Return the indices of ``size`` layers: one, and repeatedly a producer or consumer of the selected ones."""
    nodes = network.recipe.nodes
    layers = [k for k, node in enumerate(nodes) if isinstance(node, Layer)]
    chosen = {int(rng.choice(layers))}
    while len(chosen) < size:
        before = {source for k in chosen if isinstance(node := nodes[k], Layer) for source, _ in node.inputs}
        before = {k for k in before - chosen if isinstance(nodes[k], Layer)}
        behind = {k for k in layers if k not in chosen and any(s in chosen for s, _ in nodes[k].inputs)}
        side = before if before and (rng.random() < _BACKWARDS or not behind) else behind
        if not side:
            break
        chosen.add(int(rng.choice(sorted(side))))
    return chosen


def _border(network: Network, ref: Ref, known: bool) -> Leaf:
    """Return the replacement of a value at the border: the Constant itself, or a Parameter."""
    node = network.recipe.nodes[ref[0]]
    if isinstance(node, Leaf) and node.constant:
        return node
    array = network.values[ref]
    name = next(name for name, dtype in TYPES.items() if np.dtype(dtype) == array.dtype)
    return Leaf(name, array, array.shape if known else network.dims[ref])
