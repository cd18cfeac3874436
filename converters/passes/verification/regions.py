"""The computations of a value and of its replacement, as two models with the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from converters.passes.copied_nodes import copied_node
from onnx_specops.bodies import attach_bodies
from onnx_specops.building import IR_VERSION, OPSET, OPSET_IMPORTS, Value
from onnx_specops.graphs import is_constant, nested
from onnx_specops.kernel_types import insert_casts
from onnx_specops.lowering import ir_version

D = ir.DataType

FLOATS = frozenset({D.FLOAT, D.DOUBLE, D.FLOAT16, D.BFLOAT16})
_MAX_NODES = 2000
"""Larger regions are not evaluated."""
_MAX_BYTES = 1 << 30
_MOVES = frozenset(("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))
"""Operators with the elements of their first input."""


class NotEvaluated(ValueError):
    """A replacement cannot be evaluated, for the reason in the message."""


@dataclass(frozen=True)
class Region:
    """Two computations with common inputs.

    Attributes:
        inputs: the values from which both are computed.
        old, new: the models. The inputs of each are the `inputs` that it uses, in order.
        nodes: the nodes of the old computation.
    """

    inputs: Sequence[ir.Value]
    old: ir.Model
    new: ir.Model
    nodes: Sequence[ir.Node]


def region(
    pairs: Sequence[tuple[ir.Value, ir.Value]],
    is_known: Callable[[ir.Value], bool] = lambda _: False,
    through: Sequence[ir.Value] = (),
) -> Region:
    """Return the region of values that are replaced together.

    Its inputs are the values at which the computations of the old and new values meet. A float input can have any numbers.
    An integer or boolean is rarely arbitrary (an axis, a mask), so its own computation is part of the region, unless its
    value is known.

    Args:
        pairs: the values and their replacements.
        is_known: whether a value can be an input regardless of its type.
        through: values that are part of the region, with the nodes that compute them.

    Raises:
        NotEvaluated: the region is too large.
    """
    olds, news = [old for old, _ in pairs], [new for _, new in pairs]
    before = _ancestors(olds)
    begins = {value for value in (*before, *_ancestors(news)) if value.producer() is None and not is_constant(value)}
    variable = _dependents([*olds, *news], begins)  # other values are computed from constants

    def is_free(value: ir.Value) -> bool:
        if value not in variable or value in through:
            return False
        return is_known(value) or value.dtype in FLOATS or value.dtype is None

    # The replacement ends at existing values where the computations meet.
    inputs: dict[ir.Value, None] = {}
    _collect(news, lambda value: value in before and is_free(value), inputs)
    if moved := {value for value in inputs if _moved_from(value, inputs)}:
        inputs = {}
        _collect(news, lambda value: value in before and is_free(value) and value not in moved, inputs)
    # So does the old computation. Other values that only it uses are inputs, too, unless a constant replaces it.
    depends, has_none = _dependents(olds, inputs), not inputs
    _collect(olds, lambda value: value in inputs or (not (has_none or value in depends) and is_free(value)), inputs)
    old_nodes, new_nodes = (_between(values, inputs) for values in (olds, news))
    given = list(inputs)
    return Region(given, copied_model(old_nodes, given, olds), copied_model(new_nodes, given, news), old_nodes)


def _moved_from(value: ir.Value, inputs: Collection[ir.Value]) -> bool:
    """Return whether a value contains only elements of another one of ``inputs``, so that it depends on it."""
    while (node := value.producer()) is not None and node.op_type in _MOVES and not node.domain:
        first = node.inputs[0]
        if first is None or first in inputs:
            return first is not None
        value = first
    return False


def _reads(node: ir.Node) -> list[ir.Value]:
    """Return the values that a node uses, including those that its nested graphs take from outside."""
    values = [value for value in node.inputs if value is not None]
    for graph in nested(node):
        inside = set(graph.inputs)
        taken = [*graph.outputs]
        for inner in graph:
            taken += _reads(inner)
            inside.update(inner.outputs)
        values += [value for value in taken if value not in inside and value not in graph.initializers.values()]
    return values


def _ancestors(values: Sequence[ir.Value]) -> set[ir.Value]:
    """Return the values from which ``values`` are computed, including themselves."""
    found, pending = set(values), list(values)
    while pending:
        node = pending.pop().producer()
        if node is not None:
            more = [value for value in _reads(node) if value not in found]
            found.update(more)
            pending += more
    return found


def _collect(values: Sequence[ir.Value], is_input: Callable[[ir.Value], bool], inputs: dict[ir.Value, None]) -> None:
    """Walk back from ``values`` until ``is_input`` is true or a path begins, and add these values to ``inputs``."""
    seen: set[ir.Value] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in seen or is_constant(value):
            continue
        seen.add(value)
        node = value.producer()
        if node is None or is_input(value):
            inputs[value] = None
        else:
            pending += _reads(node)
        if len(seen) > _MAX_NODES:
            raise NotEvaluated(f"it depends on more than {_MAX_NODES} values")


def _dependents(values: Sequence[ir.Value], inputs: Iterable[ir.Value]) -> set[ir.Value]:
    """Return the values in the computation of ``values`` that depend on ``inputs``."""
    depends: dict[ir.Value, bool] = dict.fromkeys(inputs, True)
    for value in values:
        pending = [value]
        while pending:
            current = pending[-1]
            node = current.producer()
            if current in depends or node is None or is_constant(current):
                depends.setdefault(current, False)
                pending.pop()
                continue
            reads = _reads(node)
            if unknown := [read for read in reads if read not in depends]:
                pending += unknown
                continue
            depends[current] = any(depends[read] for read in reads)
            pending.pop()
    return {value for value, does in depends.items() if does}


def _between(values: Sequence[ir.Value], inputs: dict[ir.Value, None]) -> list[ir.Node]:
    """Return the nodes that compute ``values`` from ``inputs`` and constants, in topological order."""
    order: dict[ir.Node, None] = {}
    pending: list[tuple[ir.Node, bool]] = []

    def visit(value: ir.Value) -> None:
        node = value.producer()
        if value not in inputs and node is not None and node not in order and not is_constant(value):
            pending.append((node, False))

    for value in values:
        visit(value)
        while pending:
            node, done = pending.pop()
            if node in order:
                continue
            if done:
                order[node] = None
                continue
            pending.append((node, True))
            for read in _reads(node):
                visit(read)
    return list(order)


def copied_model(
    nodes: Sequence[ir.Node],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    *,
    shapes_of: Collection[ir.DataType] = (),
) -> ir.Model:
    """Copy nodes of a graph into a separate model, with casts for ONNX Runtime's kernels.

    Args:
        nodes: the nodes, in order.
        inputs: the values from which they are computed, which become the inputs ``v0``, ``v1``, ... if nodes use them.
        outputs: the outputs of the model.
        shapes_of: the types of outputs that are replaced by their shapes.

    Raises:
        NotEvaluated: a node is of another opset, or a constant is very large.
    """
    versions = {node.version for node in nodes if not node.domain and node.version is not None} | {OPSET}
    if older := sorted(version for version in versions if version < OPSET):
        raise NotEvaluated(f"it contains operators of opset {', '.join(map(str, older))}")
    opset = max(versions)
    given = set(inputs)
    copies: dict[ir.Value, ir.Value] = {}
    formal: list[ir.Value] = []
    constants: dict[str, ir.Value] = {}
    size = 0

    def copy(value: ir.Value) -> ir.Value:
        nonlocal size
        if value in copies:
            return copies[value]
        if value.type is None:
            raise NotEvaluated(f"the type of {value.name} is unknown")
        copied = copies[value] = Value(name=f"v{len(copies)}", type=value.type, shape=value.shape)
        copied.unrounded = isinstance(value, Value) and value.unrounded
        if is_constant(value):
            tensor = value.const_value
            assert tensor is not None
            size += tensor.nbytes
            if size > _MAX_BYTES:
                raise NotEvaluated("its constants are larger than 1 GiB")
            # ONNX Runtime cannot read external data of a model in memory.
            is_outside = isinstance(tensor, ir.ExternalTensor)
            copies[value].const_value = ir.Tensor(tensor.numpy(), dtype=tensor.dtype) if is_outside else tensor
            constants[copies[value].name or ""] = copies[value]
        elif value in given:
            formal.append(copies[value])
        return copies[value]

    def produced(value: ir.Value) -> ir.Value:
        # A node with several outputs may also compute an input of the region.
        return Value(name=f"{copies[value].name}_again", type=value.type) if value in given else copy(value)

    for value in inputs:
        copy(value)
    made = [copied_node(node, copy, produced) for node in nodes]
    results = []
    for index, value in enumerate(outputs):
        result = ir.Value(name=f"result{index}", type=value.type, shape=value.shape)
        is_shape = value.dtype in shapes_of
        if is_shape:
            result.type, result.shape = ir.TensorType(D.INT64), None
        made.append(ir.Node("", "Shape" if is_shape else "Identity", [copy(value)], outputs=[result]))
        results.append(result)
    used = {value for node in made for value in _reads(node)}
    graph = ir.Graph(
        [value for value in formal if value in used],
        results,
        nodes=made,
        initializers=list(constants.values()),
        opset_imports=OPSET_IMPORTS | {"": opset},
        name="region",
    )
    model = ir.Model(graph, ir_version=IR_VERSION if opset == OPSET else ir_version(opset))
    insert_casts(graph, keep_float32=True, converted_unrounded=[D.FLOAT16], opset=opset)
    attach_bodies(model)
    return model
