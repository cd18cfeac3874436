"""A random model as data: its nodes, how OpenVINO builds it, and its text form."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.conformance.operation_models import TYPES, constant

Ref = tuple[int, int]
"""A value: the index of its node, and the index of the output."""

Dims = tuple[Any, ...] | None
"""A Parameter's dimensions: a number, -1, or an interval as a pair; ``None`` for any rank."""


@dataclass(frozen=True)
class Leaf:
    """A Parameter or a Constant.

    Attributes:
        type: the element type, by OpenVINO's name.
        array: its value; ``None`` for Parameters of bodies. For a Constant of a type that NumPy lacks, its bytes.
        dims: the dimensions of a Parameter, or of such a Constant.
        constant: whether it is a Constant.
    """

    type: str
    array: np.ndarray | None
    dims: Dims
    constant: bool = False


@dataclass(frozen=True)
class Layer:
    """An operation.

    Attributes:
        operation: its name in the specification.
        opset: the opset of the operation.
        inputs: its inputs.
        attributes: its attributes, in the form of ``NodeFactory``.
        bodies: the bodies of If, Loop and TensorIterator.
        ports: the connections of the bodies: names of the Python API's methods with their arguments, see `_connected`.
    """

    operation: str
    opset: str
    inputs: tuple[Ref, ...]
    attributes: Mapping[str, Any]
    bodies: tuple[Recipe, ...] = ()
    ports: tuple[tuple[Any, ...], ...] = ()

    def layers(self) -> list[Layer]:
        """Return the layer and those of its bodies."""
        return [self, *(layer for body in self.bodies for layer in body.layers())]


@dataclass(frozen=True)
class Recipe:
    """A model: its nodes in topological order, and its results."""

    nodes: tuple[Leaf | Layer, ...]
    results: tuple[Ref, ...]

    def parameters(self) -> list[int]:
        """Return the indices of the Parameters."""
        return [k for k, node in enumerate(self.nodes) if isinstance(node, Leaf) and not node.constant]

    def arrays(self) -> list[np.ndarray]:
        """Return the Parameters' values."""
        return [node.array for node in self.nodes if isinstance(node, Leaf) and not node.constant and node.array is not None]

    def layers(self) -> list[Layer]:
        """Return the layers, including those of bodies."""
        return [layer for node in self.nodes if isinstance(node, Layer) for layer in node.layers()]

    def pruned(self, keep_parameters: bool = False) -> Recipe:
        """Return the recipe without nodes that no result depends on."""
        needed = {place for place, _ in self.results}
        for place in reversed(range(len(self.nodes))):
            node = self.nodes[place]
            if place in needed and isinstance(node, Layer):
                needed |= {source for source, _ in node.inputs}
            elif keep_parameters and isinstance(node, Leaf) and not node.constant:
                needed.add(place)
        places = {old: new for new, old in enumerate(sorted(needed))}
        nodes = []
        for old in places:
            node = self.nodes[old]
            if isinstance(node, Layer):
                node = replace(node, inputs=tuple((places[source], index) for source, index in node.inputs))
            nodes.append(node)
        return Recipe(tuple(nodes), tuple((places[source], index) for source, index in self.results))

    def needing(self, places: Collection[int]) -> set[int]:
        """Return the indices of the given nodes and of all that depend on them."""
        found = set(places)
        for k, node in enumerate(self.nodes):
            if isinstance(node, Layer) and any(source in found for source, _ in node.inputs):
                found.add(k)
        return found

    def without(self, place: int) -> Recipe:
        """Return the recipe without a node and all that depend on it; without results if nothing remains."""
        gone = self.needing([place])
        return self._ending([k for k in range(len(self.nodes)) if k not in gone])

    def outputs(self, place: int) -> list[int]:
        """Return the outputs of a layer with consumers; its first output if there are none."""
        taken = {ref for other in self.nodes if isinstance(other, Layer) for ref in other.inputs} | set(self.results)
        return sorted({index for source, index in taken if source == place}) or [0]

    def alone(self, place: int, leaves: Mapping[Ref, Leaf]) -> Recipe:
        """Return a layer as a separate model, with a leaf for each of its inputs; its results are its `outputs`."""
        node = self.nodes[place]
        assert isinstance(node, Layer)
        places = {ref: at for at, ref in enumerate(leaves)}
        own = replace(node, inputs=tuple((places[ref], 0) for ref in node.inputs))
        return Recipe((*leaves.values(), own), tuple((len(leaves), index) for index in self.outputs(place)))

    def apart_from(self, places: Collection[int]) -> Recipe:
        """Return the recipe of the results that do not depend on the given nodes."""
        needing = self.needing(places)
        return replace(self, results=tuple(ref for ref in self.results if ref[0] not in needing)).pruned()

    def first(self, layers: int) -> Recipe:
        """Return the recipe of the first layers."""
        places = [k for k, node in enumerate(self.nodes) if isinstance(node, Layer)]
        return self._ending(range(places[layers])) if layers < len(places) else self

    def _ending(self, places: Collection[int]) -> Recipe:
        """Return the given nodes; results are the outputs that lost their consumers."""
        taken = {ref for place in places if isinstance(node := self.nodes[place], Layer) for ref in node.inputs}
        known = {ref for node in self.nodes if isinstance(node, Layer) for ref in node.inputs} | set(self.results)
        results = [r for r in sorted(known - taken) if r[0] in places and isinstance(self.nodes[r[0]], Layer)]
        return Recipe(self.nodes, tuple(results)).pruned()

    def ranked(self) -> Recipe:
        """Return the recipe with known ranks."""
        return replace(self, nodes=tuple(_ranked(node) for node in self.nodes))

    def static(self) -> Recipe:
        """Return the recipe with its Parameters' shapes as their dimensions."""
        return replace(self, nodes=tuple(_static(node) for node in self.nodes))

    def filled(self) -> Recipe:
        """Return the recipe with one element along each empty dimension of a leaf."""
        return replace(self, nodes=tuple(_filled(node) for node in self.nodes))

    def decided(self) -> Recipe:
        """Return the recipe with each If replaced by the taken branch, if its condition is a leaf."""
        nodes: list[Leaf | Layer] = []
        results = _laid(self, {}, nodes)
        return Recipe(tuple(nodes), tuple(results))

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def leaf_of(array: np.ndarray) -> Leaf:
    """Return a Parameter with a value; booleans are normalized to 0 or 1."""
    if array.dtype == np.bool_:
        array = array.view(np.uint8) != 0
    name = next((name for name, dtype in TYPES.items() if np.dtype(dtype) == array.dtype), "string")
    return Leaf(name, array, array.shape)


def side_by_side(recipes: Sequence[Recipe]) -> Recipe:
    """Combine independent recipes into one model."""
    nodes: list[Leaf | Layer] = []
    results: list[Ref] = []
    for recipe in recipes:
        first = len(nodes)
        for node in recipe.nodes:
            if isinstance(node, Layer):
                node = replace(node, inputs=tuple((source + first, index) for source, index in node.inputs))
            nodes.append(node)
        results += [(source + first, index) for source, index in recipe.results]
    return Recipe(tuple(nodes), tuple(results))


def _laid(recipe: Recipe, given: Mapping[int, Ref], nodes: list[Leaf | Layer]) -> list[Ref]:
    """Append a recipe's nodes, with only one branch of an If; return its results. ``given`` replaces Parameters."""
    moved: dict[int, int | list[Ref]] = {place: [ref] for place, ref in given.items()}

    def at(ref: Ref) -> Ref:
        to = moved[ref[0]]
        return (to, ref[1]) if isinstance(to, int) else to[ref[1]]

    for place, node in enumerate(recipe.nodes):
        if place in moved:
            continue
        if isinstance(node, Layer):
            node = replace(node, inputs=tuple(map(at, node.inputs)))
            condition = nodes[node.inputs[0][0]] if node.operation == "If" else node
            if isinstance(condition, Leaf) and condition.array is not None:
                moved[place] = _laid_branch(node, 0 if condition.array.all() else 1, nodes)
                continue
        moved[place] = len(nodes)
        nodes.append(node)
    return [at(ref) for ref in recipe.results]


def _laid_branch(node: Layer, branch: int, nodes: list[Leaf | Layer]) -> list[Ref]:
    """Append the nodes of an If's branch; return its outputs."""
    body = node.bodies[branch]
    parameters, given, taken = body.parameters(), {}, []
    for name, *ports in node.ports:
        if name == "set_output":
            taken.append(ports[branch])
        elif ports[1 + branch] is not None:
            given[parameters[ports[1 + branch]]] = node.inputs[ports[0]]
    results = _laid(body, given, nodes)
    return [results[k] for k in taken]


def _static(node: Leaf | Layer) -> Leaf | Layer:
    if isinstance(node, Leaf) and node.array is not None and not node.constant:
        return replace(node, dims=node.array.shape)
    return node


def _filled(node: Leaf | Layer) -> Leaf | Layer:
    if isinstance(node, Layer) or node.array is None or node.array.size:
        return node
    array = np.full([size or 1 for size in node.array.shape], "" if node.type == "string" else 1, node.array.dtype)
    return replace(node, array=array, dims=node.dims and tuple(dim or 1 for dim in node.dims))


def _ranked(node: Leaf | Layer) -> Leaf | Layer:
    if isinstance(node, Leaf) and node.dims is None and node.array is not None:
        return replace(node, dims=(-1,) * node.array.ndim)
    return node


def _lines(recipe: Recipe, indent: str = "") -> list[str]:
    lines = []
    for place, node in enumerate(recipe.nodes):
        if isinstance(node, Leaf):
            kind = "Constant" if node.constant else f"Parameter {_dims_text(node.dims)}"
            value = "" if node.array is None else f" = {_array_text(node.array)}"
            lines.append(f"{indent}v{place}: {kind} {node.type}{value}")
            continue
        given = ", ".join([_name(ref) for ref in node.inputs] + [f"{k}={v!r}" for k, v in node.attributes.items()])
        lines.append(f"{indent}v{place} = {node.operation} of {node.opset} ({given})")
        for body in node.bodies:
            lines += [f"{indent}  body:", *_lines(body, indent + "    ")]
        lines += [f"{indent}  {port[0]}{port[1:]}" for port in node.ports]
    return [*lines, f"{indent}results: {', '.join(map(_name, recipe.results))}"]


def _name(ref: Ref) -> str:
    return f"v{ref[0]}" if ref[1] == 0 else f"v{ref[0]}.{ref[1]}"


def _dims_text(dims: Dims) -> str:
    return "[...]" if dims is None else str(list(dims))


def _array_text(array: np.ndarray) -> str:
    if array.size > 64:
        return f"{array.dtype} of shape {list(array.shape)}"
    return " ".join(np.array2string(array, separator=", ", threshold=100).split()) + f" {list(array.shape)}"


# -- building with OpenVINO ------------------------------------------------------------------------------------------------


def build(recipe: Recipe) -> Any:
    """Build the ``openvino.Model``; raise OpenVINO's exceptions for contradictions."""
    import openvino as ov
    from openvino import opset1

    made: list[Sequence[Any]] = []
    parameters, sinks = [], []
    for place, node in enumerate(recipe.nodes):
        outputs = leaf(node) if isinstance(node, Leaf) else layer(node, [made[s][i] for s, i in node.inputs])
        made.append(outputs)
        if isinstance(node, Leaf) and not node.constant:
            parameters.append(outputs[0].get_node())
        if not (isinstance(node, Leaf) and node.constant):
            outputs[0].get_node().set_friendly_name(f"v{place}")
        if isinstance(node, Layer) and node.operation == "Assign":
            sinks.append(outputs[0].get_node())
    results = [opset1.result(made[source][index]) for source, index in recipe.results]
    return ov.Model(results, sinks, parameters)


def leaf(node: Leaf) -> list[Any]:
    """Return the output of a leaf's node."""
    import openvino as ov
    from openvino import opset1

    if node.constant:
        assert node.array is not None
        if node.type not in (*TYPES, "string"):
            tensor = ov.Tensor(node.array, ov.Shape(list(node.dims or ())), getattr(ov.Type, node.type))
            return [ov.op.Constant(tensor, shared_memory=False).output(0)]
        return [constant(node.array).output(0)]
    shape = ov.PartialShape.dynamic() if node.dims is None else ov.PartialShape([_dimension(d) for d in node.dims])
    return [opset1.parameter(shape, ov.Type.string if node.type == "string" else element_type(node.type)).output(0)]


def _dimension(dim: Any) -> Any:
    import openvino as ov

    return ov.Dimension(*dim) if isinstance(dim, tuple) else ov.Dimension(dim)


def element_type(name: str) -> Any:
    """Return OpenVINO's type with that name."""
    import openvino as ov

    return ov.Type.bf16 if name == "bf16" else ov.Type(TYPES[name])


# Attributes whose name in OpenVINO is not a valid argument name; OpenVINO would ignore another name.
_SPELT = {"exclude_pad": "exclude-pad"}


def layer(node: Layer, inputs: Sequence[Any]) -> list[Any]:
    """Return the outputs of an operation's node."""
    from openvino.utils.node_factory import NodeFactory

    if node.bodies:
        return _connected(node, inputs)
    attributes = {_SPELT.get(name, name): value for name, value in node.attributes.items()}
    return list(NodeFactory(node.opset).create(node.operation, list(inputs), attributes).outputs())


def _connected(node: Layer, inputs: Sequence[Any]) -> list[Any]:
    from openvino import opset8

    bodies = [build(body) for body in node.bodies]
    parameters, results = [body.get_parameters() for body in bodies], [body.get_results() for body in bodies]
    if node.operation == "If":
        made = opset8.if_op(inputs[0])
        made.set_then_body(bodies[0])
        made.set_else_body(bodies[1])
    elif node.operation == "Loop":
        made = opset8.loop(*inputs[:2])
        made.set_function(bodies[0])
        made.set_special_body_ports(list(node.attributes["special"]))
    else:
        made = opset8.tensor_iterator()
        made.set_body(bodies[0])
    outputs = []
    for name, *given in node.ports:
        if name == "set_input":  # an input, and the Parameter of each branch, if it has one
            value, *own = given
            chosen = [None if k is None else parameters[branch][k] for branch, k in enumerate(own)]
            made.set_input(inputs[value], *chosen)
        elif name == "set_output":  # the result of each branch
            outputs.append(made.set_output(*(results[branch][k] for branch, k in enumerate(given))))
        elif name == "set_merged_input":  # Parameter, input, result
            parameter, value, result = given
            made.set_merged_input(parameters[0][parameter], inputs[value], results[0][result].output(0))
        elif name in ("set_invariant_input", "set_sliced_input"):  # Parameter, input, how
            parameter, value, *how = given
            getattr(made, name)(parameters[0][parameter], inputs[value], *how)
        else:  # get_iter_value or get_concatenated_slices: result, how
            result, *how = given
            outputs.append(getattr(made, name)(results[0][result].output(0), *how))
    made.validate_and_infer_types()
    return outputs
