"""Bodies: definitions of custom operators in standard ONNX, as model-local functions.

Nodes of ONNX Runtime's own operators (`onnx_specops.contrib`) have bodies too, in graphs and in other bodies.

A body is emitted for a given node. It depends on the attributes, the element types, the omitted optional inputs, inputs that
are constant numbers (such as an axis or a count), and the facts that the operator declares. ``overload`` distinguishes the
bodies of one operator in a model. A registered kernel replaces all of them. Some runtimes ignore ``overload``. For these,
the last function of an operator selects one of the others (`dispatching`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from onnx_specops.building import IR_VERSION, OPSET, OPSET_IMPORTS, Builder, Value, constant_value, new_value
from onnx_specops.captured_values import copy_captured_values, is_dequantized
from onnx_specops.dispatching import Variant, dispatcher
from onnx_specops.domain import CONTRIB_DOMAIN, DOMAIN, INTERNAL, Declaration, NoBodyError, find_declaration
from onnx_specops.graphs import all_nodes, all_values, attributes_of, origin
from onnx_specops.inlining import inline_users
from onnx_specops.kernel_types import insert_casts
from onnx_specops.naming import Names
from onnx_specops.replacing import replace_value


class BodyError(ValueError):
    """A node has no body because its inputs or attributes contradict each other.

    Attributes:
        node_name: the node's name.
        reason: the contradiction.
        origin: the layer or object that the node was emitted for.
    """

    def __init__(self, node: ir.Node, error: Exception) -> None:
        self.node_name, self.reason, self.origin = node.name or "", str(error), origin(node)
        super().__init__(f"{node.op_type} {self.node_name!r}: {self.reason}")


DOMAINS = (DOMAIN, CONTRIB_DOMAIN)
"""The domains whose nodes carry bodies."""


def attach_bodies(model: ir.Model, opset: int = OPSET, *, contrib: bool = True) -> list[str]:
    """Add the body of every node of the domain and of ONNX Runtime's own operators to ``model``.

    The pass skips nodes of operators that standard ONNX cannot represent. They need a kernel.

    Args:
        model: changed in place.
        opset: the opset whose kernels determine the types in the bodies.
        contrib: whether bodies may use ONNX Runtime's own operators; otherwise these are replaced by their bodies.

    Returns:
        The names of the domain's operators in the model that have no body.

    Raises:
        BodyError: the inputs or attributes of a node contradict each other or exceed the operator's limits.
    """
    for identifier in [identifier for identifier in model.functions if _has_body(*identifier[:2])]:
        del model.functions[identifier]
    found: dict[Hashable, Variant] = {}
    variants: dict[Declaration, list[Variant]] = {}
    bodiless: set[str] = set()
    pending: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    while pending:
        for node in _nodes_with_bodies(pending.pop()):
            operator, attributes = _declaration_and_attributes(node)
            for name in [name for name in node.attributes if name.startswith(INTERNAL)]:
                del node.attributes[name]
            _trim(node)
            absent = [_is_absent(operator, node, index) for index in range(len(operator.inputs))]
            types = tuple(
                None if value is None else (value.dtype, None if value.shape is None else len(value.shape))
                for value in node.inputs
            )
            constants = {index: array for index, value in enumerate(node.inputs) if (array := _number(value)) is not None}
            given = [None if missing else node.inputs[index] for index, missing in enumerate(absent)]
            try:
                facts = operator.facts(given, attributes)
            except ValueError as error:
                raise BodyError(node, error) from error
            key = (
                operator.domain,
                operator.name,
                tuple(sorted(attributes.items())),
                types,
                tuple(absent),
                tuple((index, array.shape, array.item()) for index, array in constants.items()),
                tuple(sorted(facts.items())),
            )
            if key in found:
                node.overload = found[key].function.overload
                found[key].nodes.append(node)
                continue
            number = len(variants.get(operator, ()))
            try:
                function = _trace(
                    operator, {**attributes, **facts}, node, absent, constants, overload=str(number) if number else ""
                )
            except NoBodyError:
                if operator.domain == DOMAIN:
                    bodiless.add(operator.name)
                continue
            except Exception as error:  # contradictory inputs raise many kinds of exceptions
                raise BodyError(node, error) from error
            if not contrib:
                _inline(Builder(function.graph, function=True), (CONTRIB_DOMAIN,))
            found[key] = Variant(function, [node])
            variants.setdefault(operator, []).append(found[key])
            node.overload = function.overload
            model.functions[function.identifier()] = function
            pending.append(function)
    for variant in found.values():
        formals = variant.function.graph.inputs
        moved = [formal for k, formal in enumerate(formals) if any(map(is_dequantized, _given(variant, k)))]
        copy_captured_values(variant.function.graph, moved)
        # A body is one computation. Its intermediate values are not rounded to 16 bits.
        insert_casts(variant.function, keep_float32=True, converted_unrounded=[ir.DataType.FLOAT16], opset=opset)
    for operator, several in variants.items():
        # runtimes that ignore ``overload`` have kernels for ONNX Runtime's operators
        if len(several) > 1 and operator.domain == DOMAIN:
            names = Names.of(model.graph, *model.functions.values())
            function = dispatcher(operator, several, _declared(operator), names, model.graph)
            model.functions[function.identifier()] = function
            for node in (node for variant in several for node in variant.nodes):
                node.resize_inputs(len(operator.inputs))
    # The function has as many inputs as the nodes.
    for variant in found.values():
        del variant.function.graph.inputs[len(variant.nodes[0].inputs) :]
    _sort_functions(model)
    return sorted(bodiless)


def _given(variant: Variant, index: int) -> list[ir.Value]:
    """Return the values that the nodes of a variant have as one of their inputs."""
    given = [node.inputs[index] for node in variant.nodes if index < len(node.inputs)]
    return [value for value in given if value is not None]


def _trim(node: ir.Node) -> None:
    """Remove omitted inputs at the end. The body does not have them either."""
    given = [index for index, value in enumerate(node.inputs) if value is not None]
    node.resize_inputs(given[-1] + 1 if given else 0)


def _sort_functions(model: ir.Model) -> None:
    """Sort the functions by operator, each after the functions that it calls, as ONNX's reference evaluator requires."""
    of_operator: dict[tuple[str, str], list[ir.Function]] = {}
    for function in model.functions.values():
        of_operator.setdefault((function.domain, function.name), []).append(function)
    ordered: dict[tuple[str, str], None] = {}
    entered: set[tuple[str, str]] = set()
    pending = list(reversed(of_operator))
    while pending:
        operator = pending[-1]
        callees = {
            (node.domain, node.op_type): None
            for function in of_operator[operator]
            if operator not in entered
            for node in all_nodes(function)
        }
        entered.add(operator)
        following = [callee for callee in callees if callee in of_operator and callee not in entered]
        pending += reversed(following)
        if not following:
            ordered[pending.pop()] = None
    functions = [function for operator in ordered for function in of_operator[operator]]
    model.functions.clear()
    model.functions.update((function.identifier(), function) for function in functions)


def inline_bodies(model: ir.Model, domains: Collection[str] = DOMAINS) -> tuple[list[str], list[ir.Node]]:
    """Replace every node of ``domains`` by its body.

    Returns:
        The names of the domain's operators that were replaced, and the nodes without a body.

    Raises:
        BodyError: the inputs or attributes of a node contradict each other.
    """
    return _inline(Builder(model.graph), domains)


def _inline(root: Builder, domains: Collection[str]) -> tuple[list[str], list[ir.Node]]:
    """Inline the bodies of the nodes in ``root``'s graph, a model's or a function's."""
    operators: set[str] = set()
    without: list[ir.Node] = []
    pending = _nodes_with_bodies(root.graph, domains)
    if pending:
        root.reserve(value.name for value in all_values(root.graph))
    while pending:
        node = pending.pop()
        assert isinstance(node.graph, ir.Graph)
        op = _Inliner(node.graph, root=root, before=node)
        op.scope = node.name or node.op_type
        try:
            results = _emit_body(op, node)
        except NoBodyError:
            without.append(node)
            continue
        except BodyError:
            raise
        except Exception as error:  # contradictory inputs raise many kinds of exceptions
            raise BodyError(node, error) from error
        for old, new in zip(node.outputs, results, strict=False):
            replace_value(old, op.place(new), equal=False)
        node.graph.remove(node, safe=True)
        if node.domain == DOMAIN:
            operators.add(node.op_type)
        pending += _nodes_with_bodies(op.emitted, domains)
    return sorted(operators), without


class _Inliner(Builder):
    """A builder that records the nodes that it emits."""

    def __init__(self, graph: ir.Graph, root: Builder, before: ir.Node) -> None:
        super().__init__(graph, root=root, before=before)
        self.emitted: list[ir.Node] = []

    def _add(self, node: ir.Node) -> None:
        super()._add(node)
        self.emitted.append(node)


def _emit_body(op: Builder, node: ir.Node) -> Sequence[Value]:
    """Emit the body of a node with the node's own inputs."""
    operator, attributes = _declaration_and_attributes(node)
    if operator.emit_body is None:
        raise NoBodyError(operator.no_body)
    arguments: list[ir.Value | None] = []
    for index in range(len(operator.inputs)):
        if _is_absent(operator, node, index):
            arguments.append(None)
        elif (number := _number(node.inputs[index])) is not None:
            arguments.append(constant_value(number))
        else:
            arguments.append(node.inputs[index])
    given = [None if _is_absent(operator, node, index) else node.inputs[index] for index in range(len(operator.inputs))]
    results = operator.emit_body(op, *arguments, **attributes, **operator.facts(given, attributes))
    values = results if isinstance(results, tuple) else (results,)
    return [value if isinstance(value, Value) else constant_value(value) for value in values]


def add_bodies(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of ``model`` that contains the bodies of all its custom operators, so that it runs without the plugin.

    The copy also contains bodies for ONNX Runtime's own operators that `onnx_specops.contrib` declares. The function infers
    missing element types, and inlines functions that contain custom operators. Operators that standard ONNX cannot represent
    still require a kernel (``specops ops`` lists them).

    Raises:
        LimitError: the attributes of a node exceed the operator's limits.
        BodyError: the inputs or attributes of a node contradict each other.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    inline_users(copy)
    inferred = onnx.shape_inference.infer_shapes(copy, check_type=True, strict_mode=True, data_prop=True)
    graph_model = ir.from_proto(inferred)
    attach_bodies(graph_model)
    graph_model.ir_version = max(graph_model.ir_version or 0, IR_VERSION)
    return ir.to_proto(graph_model)


def _has_body(domain: str, operator: str) -> bool:
    """Whether the operator has a body: any of the domain, and the declared ones of ONNX Runtime."""
    return domain == DOMAIN or (domain == CONTRIB_DOMAIN and find_declaration(domain, operator) is not None)


def _nodes_with_bodies(holder: Iterable[ir.Node], domains: Collection[str] = DOMAINS) -> list[ir.Node]:
    return [node for node in all_nodes(holder) if node.domain in domains and _has_body(node.domain, node.op_type)]


def _declaration_and_attributes(node: ir.Node) -> tuple[Declaration, dict[str, Any]]:
    """Return the operator of a node and all its attributes, after checking their limits."""
    operator = find_declaration(node.domain, node.op_type)
    if operator is None:
        raise BodyError(node, ValueError(f"the domain {DOMAIN} has no such operator"))
    try:
        return operator, operator.node_attributes(attributes_of(node))
    except ValueError as error:
        raise BodyError(node, error) from error


def _is_absent(operator: Declaration, node: ir.Node, index: int) -> bool:
    """Whether an input is omitted, or is the empty constant that represents an omitted input."""
    if index >= len(node.inputs) or (value := node.inputs[index]) is None:
        return True
    return operator.optional[index] and value.shape is not None and any(dim == 0 for dim in value.shape)


def _number(value: ir.Value | None) -> np.ndarray | None:
    """Return a constant integer, such as an axis or a count, that a body may contain; ``None`` for any other value."""
    if value is None or (tensor := value.const_value) is None or value.is_graph_input():
        return None
    return tensor.numpy() if tensor.size == 1 and tensor.dtype in (ir.DataType.INT32, ir.DataType.INT64) else None


def _trace(
    operator: Declaration,
    attributes: dict[str, object],
    node: ir.Node,
    absent: list[bool],
    constants: Mapping[int, np.ndarray],
    overload: str,
) -> ir.Function:
    if operator.emit_body is None:
        raise NoBodyError(operator.no_body)
    formals: list[Value] = []
    for index, name in enumerate(operator.inputs):
        actual = node.inputs[index] if index < len(node.inputs) else None
        rank = None if actual is None or actual.shape is None else len(actual.shape)
        formals.append(new_value(None if actual is None else actual.dtype, None if rank is None else [None] * rank, name))
    graph = ir.Graph(formals, [], nodes=[], name=operator.name, opset_imports=dict(OPSET_IMPORTS))
    builder = Builder(graph, function=True)
    for value in formals:
        builder.unique(value.name or "")
    arguments = [
        None if missing else constant_value(constants[index]) if index in constants else value
        for index, (missing, value) in enumerate(zip(absent, formals, strict=True))
    ]
    results = operator.emit_body(builder, *arguments, **attributes)
    for name, result in zip(operator.outputs, results if isinstance(results, tuple) else (results,), strict=True):
        output = builder.result(result)
        output.name = builder.unique(name)
        graph.outputs.append(output)
    return ir.Function(operator.domain, operator.name, overload, graph=graph, attributes=_declared(operator))


def _declared(operator: Declaration) -> list[ir.Attr]:
    """Return the function's attribute declarations. Kernels read the attributes; this body contains their values."""
    return [
        ir.Attr(attribute.name, ir.AttributeType(attribute.kind), attribute.default)
        for attribute in operator.attributes.values()
    ]
