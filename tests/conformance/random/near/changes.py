"""Small changes to a model: the result resembles a pattern but does not match, or matches another one."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from converters.openvino import rules as _rules  # noqa: F401  (importing it registers the rules)
from converters.openvino.rule import find_rule
from tests.conformance.operation_models import TYPES
from tests.conformance.random.graph import FLOATS
from tests.conformance.random.recipe import Layer, Leaf, Recipe, Ref, build, layer, leaf

Change = Callable[[Recipe, np.random.Generator], Recipe | None]

_TRIES = 20
_COUNTS = (0.05, 0.5, 0.3, 0.15)
"""The probabilities of no, one, two and three changes."""
_OF_BODIES = 0.6
"""The probability that a change of a model with bodies is one of a body or its ports."""
_OF_PORTS = 0.2
"""The probability that such a change is one of a port."""

# Operations that replace each other, with their opsets.
_ALIKE = (
    ("opset1", ("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference", "Power", "Mod")),
    ("opset1", ("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Negative", "Sqrt", "Sin", "Cos", "Erf", "Floor", "Sign")),
    ("opset1", ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")),
    ("opset1", ("LogicalAnd", "LogicalOr", "LogicalXor")),
    ("opset1", ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")),
    ("opset4", ("ReduceL1", "ReduceL2")),
    ("opset4", ("HSwish", "SoftPlus", "Mish")),
)
_UNARY = ("Relu", "Negative", "Sigmoid", "Abs", "Tanh")


def changed(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    """Return the recipe with up to three changes that OpenVINO accepts; runs in its process."""
    count = int(rng.choice(len(_COUNTS), p=_COUNTS))
    for _ in range(_TRIES * count):
        if not count:
            break
        has_bodies = any(isinstance(node, Layer) and node.bodies for node in recipe.nodes)
        change = another_body if has_bodies and rng.random() < _OF_BODIES else CHANGES[rng.integers(len(CHANGES))]
        other = change(recipe, rng)
        if other is None:
            continue
        try:
            build(other)
        except Exception:  # any error of OpenVINO about contradictions
            continue
        recipe, count = other, count - 1
    return recipe.pruned()


def _picked(places: Sequence[Any], rng: np.random.Generator) -> Any:
    return places[rng.integers(len(places))] if places else None


def _with(recipe: Recipe, place: int, node: Leaf | Layer) -> Recipe:
    return replace(recipe, nodes=(*recipe.nodes[:place], node, *recipe.nodes[place + 1 :]))


def _inserted(recipe: Recipe, place: int, new: Sequence[Leaf | Layer]) -> Recipe:
    """Return the recipe with nodes inserted before a place; their inputs do not count inserted nodes."""

    def moved(ref: Ref) -> Ref:
        return (ref[0] + len(new) * (ref[0] >= place), ref[1])

    nodes = [replace(n, inputs=tuple(map(moved, n.inputs))) if isinstance(n, Layer) else n for n in recipe.nodes]
    return Recipe((*nodes[:place], *new, *nodes[place:]), tuple(map(moved, recipe.results)))


def _constants(recipe: Recipe, most: int = 4096) -> list[tuple[int, Any]]:
    return [
        (k, n)
        for k, n in enumerate(recipe.nodes)
        if isinstance(n, Leaf) and n.constant and n.type in TYPES and n.array is not None and 0 < n.array.size <= most
    ]


def _parameters(recipe: Recipe) -> list[tuple[int, Any]]:
    return [(k, n) for k in recipe.parameters() if isinstance(n := recipe.nodes[k], Leaf) and n.array is not None]


def _layers(recipe: Recipe) -> list[tuple[int, Layer]]:
    return [(k, n) for k, n in enumerate(recipe.nodes) if isinstance(n, Layer)]


def another_number(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Change one or all elements of a Constant."""
    place, node = _picked(_constants(recipe), rng) or (None, None)
    if node is None:
        return None
    array = node.array.copy().reshape(-1)
    at = rng.integers(array.size)
    one = array[at]
    if array.dtype == np.bool_:
        array[at] = not one
    elif array.dtype.kind in "iu":
        number = _picked([int(one) + 1, int(one) - 1, -int(one), 0, int(array[rng.integers(array.size)])], rng)
        array[at] = np.clip(number, *(getattr(np.iinfo(array.dtype), end) for end in ("min", "max")))
        array = array[::-1].copy() if rng.random() < 0.2 else array
    elif rng.random() < 0.4:
        array = (array * array.dtype.type(_picked([-1, 1.25, 0, 2], rng))).astype(array.dtype)
    else:
        array[at] = _picked([0, 1, -1, 2 * one, one + array.dtype.type(0.5), -one], rng)
    return _with(recipe, place, replace(node, array=array.reshape(node.array.shape)))


def another_shape(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Change a Constant's shape: a dimension of 1 more or fewer, another order, fewer or more elements."""
    place, node = _picked(_constants(recipe), rng) or (None, None)
    if node is None:
        return None
    array, rank = node.array, node.array.ndim
    how = rng.integers(6)
    if how == 0:
        array = np.expand_dims(array, int(rng.integers(rank + 1)))
    elif how == 1 and 1 in array.shape:
        array = np.squeeze(array, int(_picked([k for k, size in enumerate(array.shape) if size == 1], rng)))
    elif how == 2 and rank > 1:
        array = np.transpose(array, rng.permutation(rank))
    elif how == 3 and rank and max(array.shape) > 1:
        axis = int(_picked([k for k, size in enumerate(array.shape) if size > 1], rng))
        array = np.take(array, [0], axis)
    elif how == 4 and rank and 1 in array.shape:
        axis = int(_picked([k for k, size in enumerate(array.shape) if size == 1], rng))
        array = np.repeat(array, int(rng.choice([2, 3, 5, 8, 16, 32])), axis)
    elif how == 5:
        array = array.reshape(-1)[:1].reshape(() if rng.random() < 0.5 else (1,) * int(rng.integers(1, 5)))
    else:
        return None
    if array.shape == node.array.shape:
        return None
    return _with(recipe, place, replace(node, array=np.ascontiguousarray(array), dims=array.shape))


def another_kind(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Turn a Constant into a Parameter or vice versa."""
    leaves = [(k, n) for k, n in enumerate(recipe.nodes) if isinstance(n, Leaf) and n.type in TYPES and n.array is not None]
    place, node = _picked(leaves, rng) or (None, None)
    if node is None or (not node.constant and len(recipe.parameters()) < 2):
        return None
    return _with(recipe, place, replace(node, constant=not node.constant, dims=node.array.shape))


def another_attribute(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Change an attribute."""
    found = [(k, n, name) for k, n in _layers(recipe) if not n.bodies for name in n.attributes]
    place, node, name = _picked(found, rng) or (None, None, None)
    if node is None:
        return None
    rule = find_rule(node.operation, node.opset)
    known = rule.attributes.get(name) if rule is not None else None
    value = node.attributes[name]
    if known is not None and typing.get_origin(known.annotation) is Literal:
        new = _picked(typing.get_args(known.annotation), rng)
    elif isinstance(value, bool):
        new = not value
    elif isinstance(value, int):
        new = value + _picked([-1, 1], rng)
        if name == "levels" and new < 2:  # the specification does not allow it
            return None
    elif isinstance(value, float):
        new = _picked([0.0, 1.0, 0.1, 1e-3, 1e-12, -value, 2 * value], rng)
    elif isinstance(value, list | tuple | np.ndarray) and np.asarray(value).dtype.kind == "i" and len(value):
        new = [int(number) for number in value]
        new[rng.integers(len(new))] += _picked([-1, 1], rng)
    else:
        return None
    if str(new) == str(value):
        return None
    return _with(recipe, place, replace(node, attributes={**node.attributes, name: new}))


def another_operation(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Replace an operation by one with the same inputs."""
    found = [(k, n, opset, alike) for k, n in _layers(recipe) for opset, alike in _ALIKE if n.operation in alike]
    place, node, opset, alike = _picked(found, rng) or (None, None, None, ())
    if node is None:
        return None
    operation = _picked([name for name in alike if name != node.operation], rng)
    return _with(recipe, place, replace(node, operation=operation, opset=opset))


def other_order(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Swap two inputs of a layer."""
    place, node = _picked([(k, n) for k, n in _layers(recipe) if len(set(n.inputs)) > 1], rng) or (None, None)
    if node is None:
        return None
    inputs = list(node.inputs)
    one, other = rng.choice(len(inputs), 2, replace=False)
    inputs[one], inputs[other] = inputs[other], inputs[one]
    return _with(recipe, place, replace(node, inputs=tuple(inputs)))


def another_source(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Connect an input to another value of the same type, usually of the same dimensions."""
    place, node = _picked(_layers(recipe), rng) or (None, None)
    if node is None or not node.inputs:
        return None
    at = int(rng.integers(len(node.inputs)))
    kinds = _kinds(recipe, place)
    type_, shape = kinds[node.inputs[at]]
    same = rng.random() < 0.8
    found = [ref for ref, kind in kinds.items() if kind[0] == type_ and (kind[1] == shape or not same)]
    ref = _picked([ref for ref in found if ref != node.inputs[at]], rng)
    if ref is None:
        return None
    return _with(recipe, place, replace(node, inputs=(*node.inputs[:at], ref, *node.inputs[at + 1 :])))


def without_a_layer(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Remove a layer; its consumers use one of its inputs of the same type."""
    place, node = _picked(_layers(recipe), rng) or (None, None)
    if node is None:
        return None
    kinds = _kinds(recipe, place + 1)
    ref = _picked([ref for ref in node.inputs if kinds[ref][0] == kinds[place, 0][0]], rng)
    if ref is None:
        return None

    def moved(other: Ref) -> Ref:
        return ref if other == (place, 0) else other

    nodes = [replace(n, inputs=tuple(map(moved, n.inputs))) if isinstance(n, Layer) else n for n in recipe.nodes]
    results = tuple(r for r in map(moved, recipe.results) if isinstance(nodes[r[0]], Layer))
    return Recipe(tuple(nodes), tuple(dict.fromkeys(results))) if results else None


def with_a_layer(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Insert a function, a Transpose, a scale, or a pair of Converts before an input."""
    place, node = _picked(_layers(recipe), rng) or (None, None)
    if node is None or not node.inputs:
        return None
    at = int(rng.integers(len(node.inputs)))
    ref = node.inputs[at]
    type_, shape = _kinds(recipe, place)[ref]
    how = rng.integers(4)
    new: list[Leaf | Layer]
    if how == 0 and shape is not None and len(shape) > 1:
        order = np.array(rng.permutation(len(shape)))
        new = [Leaf("i64", order, order.shape, constant=True), Layer("Transpose", "opset1", (ref, (place, 0)), {})]
    elif type_ not in FLOATS:
        return None
    elif how == 1:
        new = [Layer(_picked(_UNARY, rng), "opset1", (ref,), {})]
    elif how == 2:
        number = np.array(_picked([2, -1, 0.5, 1], rng), TYPES[type_]).reshape((1,) * int(rng.integers(3)))
        operation = _picked(["Multiply", "Add", "Divide", "Subtract"], rng)
        new = [Leaf(type_, number, number.shape, constant=True), Layer(operation, "opset1", (ref, (place, 0)), {})]
    else:
        wide = Layer("Convert", "opset1", (ref,), {"destination_type": "f16" if type_ != "f16" else "f32"})
        new = [wide, Layer("Convert", "opset1", ((place, 0),), {"destination_type": type_})]
    other = _inserted(recipe, place, new)
    inputs = list(other.nodes[place + len(new)].inputs)
    inputs[at] = (place + len(new) - 1, 0)
    return _with(other, place + len(new), replace(other.nodes[place + len(new)], inputs=tuple(inputs)))


def another_result(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Make an inner value a result, too."""
    kinds = _kinds(recipe, len(recipe.nodes))
    found = [r for r in kinds if isinstance(recipe.nodes[r[0]], Layer) and r not in recipe.results and kinds[r][0] in TYPES]
    ref = _picked(found, rng)
    return None if ref is None else replace(recipe, results=(*recipe.results, ref))


def other_values(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Change a Parameter of floats: larger, all 0, one 0, or one large negative number."""
    found = [(k, n) for k, n in _parameters(recipe) if n.type in ("f32", "f16") and n.array.size]
    place, node = _picked(found, rng) or (None, None)
    if node is None:
        return None
    array = node.array.copy()
    how = rng.integers(4)
    if how < 2:
        array *= array.dtype.type((0, 8)[how])
    else:
        array.reshape(-1)[rng.integers(array.size)] = (0, -1000)[how - 2]
    return _with(recipe, place, replace(node, array=array))


def special_value(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Set one element of a Parameter of floats to NaN, infinity, -0, or a very large or small number."""
    found = [(k, n) for k, n in _parameters(recipe) if n.type == "f32" and n.array.size]
    place, node = _picked(found, rng) or (None, None)
    if node is None:
        return None
    array = node.array.copy()
    array.reshape(-1)[rng.integers(array.size)] = _picked([np.nan, np.inf, -np.inf, -0.0, 1e6, -1e30, 1e-30], rng)
    return _with(recipe, place, replace(node, array=array))


def fewer_rows(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Reduce the common first or last dimension of Parameters to 1 or 0, which may be unknown in the model.

    Kernels of convolutions do not become empty: OpenVINO's results are uninitialized then, and ONNX Runtime may not return.
    """
    sizes = {(end, n.array.shape[end]) for _, n in _parameters(recipe) if n.array.ndim for end in (0, -1)}
    end, size = _picked(sorted(sizes), rng) or (0, 0)
    count = int(rng.random() < 0.7)
    if size <= count:
        return None
    nodes, is_unknown = list(recipe.nodes), rng.random() < 0.7
    for place, node in _parameters(recipe):
        if not node.array.ndim or node.array.shape[end] != size or node.dims is None:
            continue
        if not count and _is_in_kernel(recipe, place):
            return None
        dims = list(node.dims)
        dims[end] = -1 if is_unknown or dims[end] == -1 else count
        nodes[place] = replace(node, array=np.take(node.array, range(count), end), dims=tuple(dims))
    return replace(recipe, nodes=tuple(nodes))


def _is_in_kernel(recipe: Recipe, place: int) -> bool:
    """Return whether the kernel of a convolution depends on a node, other than through a convolution."""
    dependent = {place}
    for k, node in _layers(recipe):
        used = [source in dependent for source, _ in node.inputs]
        is_convolution = "Convolution" in node.operation
        if is_convolution and any(used[1:]):
            return True
        if any(used) and not is_convolution:
            dependent.add(k)
    return False


def other_limits(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Change a FakeQuantize: limits along another axis, different limits along one, or another number of levels."""
    place, node = _picked([(k, n) for k, n in _layers(recipe) if n.operation == "FakeQuantize"], rng) or (None, None)
    if node is None:
        return None
    shape = _kinds(recipe, place)[node.inputs[0]][1]
    if rng.random() < 0.2:
        levels = int(_picked([2, 4, 16, 255, 256, 257, 65535, 65536], rng))
        return _with(recipe, place, replace(node, attributes={**node.attributes, "levels": levels}))
    if not shape:
        return None
    axis = int(rng.integers(len(shape)))
    size = shape[axis] if shape[axis] > 0 else int(rng.choice([2, 3, 8]))
    dims = [size if k == axis else 1 for k in range(len(shape))]
    spread = 1 + rng.integers(0, 3, size) / 2 if rng.random() < 0.8 else np.ones(size)
    taken = list(node.inputs)
    new: list[Leaf | Layer] = []
    only = rng.random() < 0.2  # only the input's or the output's limits
    for at in (1, 2, 3, 4):
        leaf_ = recipe.nodes[taken[at][0]]
        if not isinstance(leaf_, Leaf) or leaf_.array is None or not leaf_.array.size or leaf_.type != "f32":
            return None
        array = leaf_.array.reshape(-1)
        array = array if array.size == size else np.full(size, array[0])
        scale = np.ones(size) if only and at > 2 else spread
        array = (array * scale).astype(np.float32).reshape(dims)
        new.append(Leaf("f32", array, array.shape, constant=True))
    other = _inserted(recipe, place, new)
    node = other.nodes[place + 4]
    assert isinstance(node, Layer)
    return _with(other, place + 4, replace(node, inputs=(node.inputs[0], *((place + k, 0) for k in range(4)))))


def another_type(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Change the type of a Convert, or insert another Convert."""
    place, node = _picked([(k, n) for k, n in _layers(recipe) if n.operation == "Convert"], rng) or (None, None)
    if node is None:
        return None
    type_ = _picked(["i8", "u8", "i16", "u16", "i32", "u32", "i64", "f16", "f32", "boolean"], rng)
    if rng.random() < 0.3:
        return _with(recipe, place, replace(node, attributes={"destination_type": type_}))
    other = _inserted(recipe, place, [Layer("Convert", "opset1", node.inputs, {"destination_type": type_})])
    return _with(other, place + 1, replace(node, inputs=((place, 0),)))


def other_rows(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Enlarge the common first or last dimension of Parameters: the batch, or the tokens."""
    sizes = {(end, n.array.shape[end]) for _, n in _parameters(recipe) if n.array.ndim for end in (0, -1)}
    end, size = _picked(sorted(sizes), rng) or (0, 0)
    if not size:
        return None
    more = int(_picked([1, 2, 3, size], rng))
    some = rng.random() < 0.2  # only some of them
    nodes = list(recipe.nodes)
    for place, node in _parameters(recipe):
        array, dims = node.array, node.dims
        if not array.ndim or array.shape[end] != size or dims is None:
            continue
        array = np.concatenate([array, np.take(array, range(more), end, mode="wrap")], end)
        dims = list(dims)
        dims[end] = -1 if dims[end] == -1 else size + more
        nodes[place] = replace(node, array=array, dims=tuple(dims))
        if some:
            break
    return replace(recipe, nodes=tuple(nodes))


def other_mask(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Set zeros in a Parameter of booleans or integers: on the left, on the right, in a row, or everywhere."""
    found = [(k, n) for k, n in _parameters(recipe) if n.array.dtype.kind in "biu" and n.array.ndim and n.array.size]
    place, node = _picked(found, rng) or (None, None)
    if node is None:
        return None
    array = node.array.copy()
    count = int(rng.integers(1, array.shape[-1] + 1))
    how = rng.integers(4)
    if how == 0:
        array[..., :count] = 0
    elif how == 1:
        array[..., -count:] = 0
    elif how == 2:
        array[int(rng.integers(array.shape[0]))] = 0
    else:
        array[...] = 0
    return _with(recipe, place, replace(node, array=array))


def other_dims(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Make a dimension of a Parameter known or unknown."""
    place, node = _picked([(k, n) for k, n in _parameters(recipe) if n.dims], rng) or (None, None)
    if node is None:
        return None
    dims = list(node.dims)
    at = rng.integers(len(dims))
    dims[at] = node.array.shape[at] if dims[at] == -1 else -1
    return _with(recipe, place, replace(node, dims=tuple(dims)))


def another_body(recipe: Recipe, rng: np.random.Generator) -> Recipe | None:
    """Change a layer of a body, or a port of a Loop: another iteration, another part of an input, or another source."""
    place, node = _picked([(k, n) for k, n in _layers(recipe) if n.bodies], rng) or (None, None)
    if node is None:
        return None
    if node.operation != "If" and rng.random() < _OF_PORTS:
        at = int(rng.integers(len(node.ports)))
        name, *given = node.ports[at]
        if name == "set_sliced_input":  # from the last to the first
            given[2:] = [given[5], -given[3], given[4], given[2], given[6]]
        elif name == "set_merged_input":  # the first value in each iteration
            name, given = "set_invariant_input", given[:2]
        elif name == "get_iter_value":
            given[1] = 0 if given[1] == -1 else -1
        else:
            return None
        return _with(recipe, place, replace(node, ports=(*node.ports[:at], (name, *given), *node.ports[at + 1 :])))
    branch = int(rng.integers(len(node.bodies)))
    body = node.bodies[branch]
    other = CHANGES[rng.integers(len(CHANGES))](body, rng)
    # Ports have the numbers of Parameters and results.
    if other is None or len(other.parameters()) != len(body.parameters()) or len(other.results) != len(body.results):
        return None
    return _with(recipe, place, replace(node, bodies=(*node.bodies[:branch], other, *node.bodies[branch + 1 :])))


def _kinds(recipe: Recipe, end: int) -> dict[Ref, tuple[str, tuple[int, ...] | None]]:
    """Return the type and dimensions of each value before ``end``, with -1 for unknown dimensions."""
    made: list[Sequence[Any]] = []
    found = {}
    for place, node in enumerate(recipe.nodes[:end]):
        outputs = leaf(node) if isinstance(node, Leaf) else layer(node, [made[s][i] for s, i in node.inputs])
        made.append(outputs)
        for index, output in enumerate(outputs):
            shape = output.get_partial_shape()
            dims = tuple(d.get_length() if d.is_static else -1 for d in shape) if shape.rank.is_static else None
            found[place, index] = (output.get_element_type().get_type_name(), dims)
    return found


CHANGES: tuple[Change, ...] = (
    another_number,
    another_number,
    another_shape,
    another_shape,
    another_shape,
    another_kind,
    another_attribute,
    another_attribute,
    another_operation,
    another_operation,
    other_order,
    another_source,
    without_a_layer,
    with_a_layer,
    with_a_layer,
    another_result,
    other_values,
    special_value,
    fewer_rows,
    other_dims,
    other_limits,
    other_limits,
    another_type,
    other_rows,
    other_mask,
)
"""The changes with their frequencies."""
