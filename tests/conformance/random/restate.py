"""Equivalent models: if OpenVINO agrees with us on one of them, it contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from converters.openvino.rule import find_rule
from tests.conformance.oracle import OracleError
from tests.conformance.random.judge import Judge, Verdict, differing
from tests.conformance.random.recipe import Layer, Leaf, Recipe, leaf_of

_ORDERS = 8
_AVERAGES = ("AdaptiveAvgPool", "AvgPool", "ReduceMean")
_SCALE = 2.0**20


def seconded_in_other_words(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether OpenVINO agrees with our results, in every form, on an equivalent model."""
    if verdict.kind not in ("parts", "reference"):
        return False
    ours = judge.ours(recipe)
    for other in _in_other_words(recipe, judge):
        answers = [judge.openvinos(other, name) for name in ("cpu", "evaluate")]
        for answer in answers:
            if not isinstance(answer, OracleError) and all(not differing(form, answer) for form in ours):
                return True
    return False


def _in_other_words(recipe: Recipe, judge: Judge) -> Iterator[Recipe]:
    yield from _told_shapes(recipe, judge)
    yield from _laid_as_numpy_does(recipe, judge)
    if isinstance(judge.openvinos(recipe), OracleError):
        yield recipe.static()  # the CPU plugin may accept it
    if len(recipe.layers()) == 1:
        yield from _of_known_dimensions(recipe)
        yield from _of_constant_bounds(recipe)
        yield from _without_masks(recipe)
        yield from _divided_before(recipe)
        yield from _scaled(recipe)
        yield from _reordered(recipe)


def _told_shapes(recipe: Recipe, judge: Judge) -> Iterator[Recipe]:
    """Yield the model with the shape inputs of layers as Parameters, because OpenVINO folds known ones."""
    places = [k for k, node in enumerate(recipe.nodes) if isinstance(node, Layer) and node.operation == "ShapeOf"]
    if not places or any(place in places for place, _ in recipe.results):
        return
    shapes = judge.openvinos(replace(recipe, results=tuple((place, 0) for place in places)))
    if isinstance(shapes, OracleError):
        return
    nodes = list(recipe.nodes)
    for place, shape in zip(places, shapes, strict=True):
        nodes[place] = leaf_of(shape)
    yield replace(recipe, nodes=tuple(nodes)).pruned()


def _laid_as_numpy_does(recipe: Recipe, judge: Judge) -> Iterator[Recipe]:
    """Yield the model with leaves that ``pdpd`` broadcasts from an axis on, reshaped to all following axes."""
    nodes = list(recipe.nodes)
    for k, layer in enumerate(recipe.nodes):
        axis = layer.attributes.get("auto_broadcast.auto_broadcast_axis", -1) if isinstance(layer, Layer) else -1
        if not isinstance(layer, Layer) or layer.attributes.get("auto_broadcast") != "pdpd" or axis < 0:
            continue
        leaf = recipe.nodes[layer.inputs[1][0]]
        data = judge.openvinos(replace(recipe, results=(layer.inputs[0],)).pruned())
        if isinstance(data, OracleError) or not isinstance(leaf, Leaf) or leaf.array is None:
            continue
        shape = (*leaf.array.shape, *(1,) * (data[0].ndim - axis - leaf.array.ndim))
        nodes[layer.inputs[1][0]] = replace(leaf, array=leaf.array.reshape(shape), dims=leaf.dims and shape)
        nodes[k] = replace(layer, attributes={"auto_broadcast": "numpy"})
    if any(one is not other for one, other in zip(nodes, recipe.nodes, strict=True)):
        yield replace(recipe, nodes=tuple(nodes))


def _of_known_dimensions(recipe: Recipe) -> Iterator[Recipe]:
    """Yield the model with known dimensions, for a layer with a departure of both of OpenVINO's implementations."""
    departures = [departure for layer in recipe.layers() for departure in find_rule(layer.operation, layer.opset).departs]
    if any(departure.of_both for departure in departures) and recipe.static() != recipe:
        yield recipe.static()


def _of_constant_bounds(recipe: Recipe) -> Iterator[Recipe]:
    """Yield a StridedSlice with constant begin, end and stride."""
    layer = recipe.nodes[-1]
    if not isinstance(layer, Layer) or layer.operation != "StridedSlice":
        return
    bounds = {place for place, _ in layer.inputs[1:]}
    nodes = [
        replace(n, constant=n.constant or k in bounds) if isinstance(n, Leaf) else n for k, n in enumerate(recipe.nodes)
    ]
    if nodes != list(recipe.nodes):
        yield replace(recipe, nodes=tuple(nodes))


def _without_masks(recipe: Recipe) -> Iterator[Recipe]:
    """Yield a StridedSlice whose shrunk axes are not an ellipsis as well, or start at 0 where ``begin_mask`` requires it."""
    layer = recipe.nodes[-1]
    if not isinstance(layer, Layer) or layer.operation != "StridedSlice":
        return
    ellipsis, kept = (np.array(layer.attributes[f"{name}_mask"], bool) for name in ("ellipsis", "shrink_axis"))
    if (ellipsis & kept).any():
        layer = replace(layer, attributes={**layer.attributes, "shrink_axis_mask": (kept & ~ellipsis).astype(int).tolist()})
        yield replace(recipe, nodes=(*recipe.nodes[:-1], layer))
    place = layer.inputs[1][0]
    begin = recipe.nodes[place]
    shrunk = np.flatnonzero(np.logical_and(layer.attributes["begin_mask"], layer.attributes["shrink_axis_mask"]))
    if not isinstance(begin, Leaf) or begin.array is None or not shrunk.size:
        return
    mask, begins = np.array(layer.attributes["begin_mask"]), begin.array.copy()
    mask[shrunk] = begins[shrunk] = 0
    own = replace(layer, inputs=(layer.inputs[0], (len(recipe.nodes), 0), *layer.inputs[2:]))
    own = replace(own, attributes={**layer.attributes, "begin_mask": mask.tolist()})
    nodes = (*recipe.nodes[:-1], layer, replace(begin, array=begins), own)
    yield Recipe(nodes, tuple((len(nodes) - 1, index) for _, index in recipe.results)).pruned()


def _divided_before(recipe: Recipe) -> Iterator[Recipe]:
    """Yield a remainder of floats from which multiples of the divisor were subtracted before."""
    layer = recipe.nodes[-1]
    if not isinstance(layer, Layer) or layer.operation not in ("Mod", "FloorMod"):
        return
    dividend, divisor = (recipe.nodes[place] for place, _ in layer.inputs)
    if not isinstance(dividend, Leaf) or not isinstance(divisor, Leaf) or dividend.type != "f32":
        return
    if dividend.array is None or divisor.array is None or layer.attributes["auto_broadcast"] == "pdpd":
        return
    with np.errstate(all="ignore"):
        left = leaf_of(np.fmod(dividend.array, divisor.array))
    yield replace(recipe, nodes=(left, divisor, replace(layer, inputs=((0, 0), (1, 0)))), results=((2, 0),))


def _scaled(recipe: Recipe) -> Iterator[Recipe]:
    """Yield an average of smaller numbers, whose sums do not overflow, scaled back afterwards."""
    layer, data = recipe.nodes[-1], recipe.nodes[0]
    if not isinstance(layer, Layer) or layer.operation not in _AVERAGES or len(recipe.results) > 1:
        return
    if not isinstance(data, Leaf) or data.type != "f32" or data.array is None or layer.inputs[0] != (0, 0):
        return
    last = len(recipe.nodes)
    smaller, scale = replace(data, array=data.array / np.float32(_SCALE)), leaf_of(np.array(_SCALE, np.float32))
    greater = Layer("Multiply", "opset1", ((last - 1, 0), (last, 0)), {"auto_broadcast": "numpy"})
    yield replace(recipe, nodes=(smaller, *recipe.nodes[1:], scale, greater), results=((last + 1, 0),))


def _reordered(recipe: Recipe) -> Iterator[Recipe]:
    """Yield a reduction with its elements in other orders: descending, ascending, and random."""
    layer = recipe.nodes[-1]
    if not isinstance(layer, Layer) or not layer.operation.startswith("Reduce"):
        return
    data, axes = (recipe.nodes[place] for place, _ in layer.inputs)
    if not isinstance(data, Leaf) or not isinstance(axes, Leaf) or data.array is None or axes.array is None:
        return
    along = sorted({int(axis) % data.array.ndim for axis in axes.array.reshape(-1)})
    last = range(-len(along), 0)
    turned = np.moveaxis(data.array, along, last)
    flat = turned.reshape(*turned.shape[: turned.ndim - len(along)], -1)
    sizes, rng = np.abs(flat.astype(np.float64)), np.random.default_rng(0)
    for keys in (-sizes, sizes, *(rng.random(flat.shape[-1:]) for _ in range(_ORDERS))):
        ordered = np.take_along_axis(flat, np.broadcast_to(np.argsort(keys, axis=-1), flat.shape), axis=-1)
        array = np.ascontiguousarray(np.moveaxis(ordered.reshape(turned.shape), last, along))
        yield replace(recipe, nodes=tuple(replace(data, array=array) if node is data else node for node in recipe.nodes))
