"""The last pass: check that every node matches its operator's schema, and that all names are unique.

Otherwise, ONNX Runtime would reject the file without naming the layer of the node.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.attributes import attribute_kind
from onnx_specops.domain import INTERNAL
from onnx_specops.graphs import nested, origin
from onnx_specops.kernel_types import type_name

Option = onnx.defs.OpSchema.FormalParameterOption


@dataclass(frozen=True)
class NodeProblem:
    """A problem of a node.

    Attributes:
        node_name: the name of the node.
        message: the fault.
        origin: the layer or object that the node was emitted for.
    """

    node_name: str
    message: str
    origin: object | None = None


class InvalidNodes(Exception):
    """The opset does not support some nodes, or values share a name.

    Attributes:
        problems: all problems.
    """

    def __init__(self, problems: Sequence[NodeProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{problem.node_name}: {problem.message}" for problem in self.problems))


class CheckNodes(InPlacePass):
    """Check the nodes of the graph, its nested graphs and the functions, without changing anything.

    For each node: the opset has its operator, and the number of inputs and outputs, the names and types of attributes, and
    the known types of values are valid. For each value: its name is unique in its scope, and it is computed before it is
    used.

    Raises (within onnx_ir's ``PassError``):
        InvalidNodes: with all invalid nodes.
    """

    def call(self, model: ir.Model) -> PassResult:
        problems: list[NodeProblem] = []
        functions = {(function.domain, function.name) for function in model.functions.values()}
        for graph in (model.graph, *(function.graph for function in model.functions.values())):
            _Check(graph.opset_imports, functions, problems).graph(graph, [], None)
        if problems:
            raise InvalidNodes(problems)
        return PassResult(model, modified=False)


class _Check:
    """Checks a graph and its nested graphs."""

    def __init__(self, imports: Mapping[str, int], functions: set[tuple[str, str]], problems: list[NodeProblem]) -> None:
        self._imports, self._functions, self._problems = imports, functions, problems

    def graph(self, graph: ir.Graph, outer: Sequence[dict[str, ir.Value]], within: ir.Node | None) -> None:
        """Check the nodes of a graph. ``outer`` are the values of the surrounding graphs by name."""
        scopes = [*outer, {}]
        for value in (*graph.inputs, *graph.initializers.values()):
            self._define(value, scopes, within)
        for node in graph:
            for given in node.inputs:
                if given is not None and _lookup(given.name, scopes) is not given:
                    self._add(node, f'the input "{given.name}" of {node.op_type} is not computed before it')
            if problem := self._problem(node):
                self._add(node, problem)
            for inner in nested(node):
                self.graph(inner, scopes, node)
            for value in node.outputs:
                self._define(value, scopes, node)
        for value in graph.outputs:
            if _lookup(value.name, scopes) is not value:
                self._add(within, f'the output "{value.name}" is not computed')

    def _define(self, value: ir.Value, scopes: Sequence[dict[str, ir.Value]], place: ir.Node | None) -> None:
        if not value.name:
            return  # an omitted output
        known = _lookup(value.name, scopes)
        if known is None:
            scopes[-1][value.name] = value
        elif known is not value:
            self._add(place, f'two values have the name "{value.name}"')

    def _add(self, place: ir.Node | None, message: str) -> None:
        name, came_from = ("", None) if place is None else (place.name or "", origin(place))
        self._problems.append(NodeProblem(name, message, came_from))

    def _problem(self, node: ir.Node) -> str:
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        version = self._imports.get(node.domain)
        if version is None:
            return f"the model does not import the domain of {operator}"
        schema = _schema(node.domain, node.op_type, version)
        if schema is None:
            if (node.domain, node.op_type) in self._functions or not _is_known(node.domain):
                return ""
            return f"opset {version} has no operator {operator}"
        # Most nodes are equal to an earlier one, because bodies consist of the same few.
        key = (
            id(schema),  # the schema is kept alive
            tuple([(attribute.name, attribute.type) for attribute in node.attributes.values()]),
            tuple([None if value is None else _type(value) for value in node.inputs]),
            tuple([_type(value) for value in node.outputs]),
        )
        if (known := _PROBLEMS.get(key)) is None:
            if len(_PROBLEMS) >= _MAX_PROBLEMS:
                _PROBLEMS.clear()
            known = _PROBLEMS[key] = (
                _attribute_problem(node, schema, operator)
                or _count_problem(node, schema, operator)
                or _type_problem(node, schema, operator)
            )
        return known


_PROBLEMS: dict[object, str] = {}
"""The problems of nodes by the properties that are checked."""
_MAX_PROBLEMS = 10_000


def _lookup(name: str | None, scopes: Sequence[dict[str, ir.Value]]) -> ir.Value | None:
    """Return the value of a name in the innermost graph that has it."""
    if name:
        for scope in reversed(scopes):
            if (value := scope.get(name)) is not None:
                return value
    return None


def _attribute_problem(node: ir.Node, schema: onnx.defs.OpSchema, operator: str) -> str:
    for name, attribute in node.attributes.items():
        if name.startswith(INTERNAL):
            continue
        if name not in schema.attributes:
            return f'{operator} has no attribute "{name}"'
        wanted = ir.AttributeType(attribute_kind(schema.attributes[name].type))
        if attribute.type != wanted:
            return f'the attribute "{name}" of {operator} is of the type {attribute.type.name}, not {wanted.name}'
    for name, stated in schema.attributes.items():
        if stated.required and name not in node.attributes:
            return f'{operator} lacks the attribute "{name}"'
    return ""


def _count_problem(node: ir.Node, schema: onnx.defs.OpSchema, operator: str) -> str:
    inputs, outputs = len(node.inputs), len(node.outputs)
    if not schema.min_input <= inputs <= schema.max_input:
        return f"{operator} has {inputs} inputs, not {_range(schema.min_input, schema.max_input)}"
    if not schema.min_output <= outputs <= schema.max_output:
        return f"{operator} has {outputs} outputs, not {_range(schema.min_output, schema.max_output)}"
    for formal, value in zip(schema.inputs, node.inputs, strict=False):
        if value is None and formal.option == Option.Single:
            return f'{operator} lacks the input "{formal.name}"'
    return ""


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _type_problem(node: ir.Node, schema: onnx.defs.OpSchema, operator: str) -> str:
    allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    bound: dict[str, str] = {}
    for formals, values in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
        for index, value in enumerate(values):
            found = None if value is None else _type(value)
            if found is None or not formals:
                continue
            formal = formals[min(index, len(formals) - 1)]
            if found not in allowed.get(formal.type_str, (formal.type_str,)):
                return f'"{formal.name}" of {operator} is {found}'
            if formal.is_homogeneous and bound.setdefault(formal.type_str, found) != found:
                return f'"{formal.name}" of {operator} is {found}, another value of the same type {bound[formal.type_str]}'
    return ""


def _type(value: ir.Value) -> str | None:
    """Return a value's type in the notation of schemas; ``None`` if unknown."""
    type_ = value.type
    return _tensor_type(type_.dtype) if type(type_) is ir.TensorType else _written(type_)


def _written(type_: ir.TypeProtocol | None) -> str | None:
    if isinstance(type_, ir.TensorType):
        return _tensor_type(type_.dtype)
    for kind, prefix in ((ir.SequenceType, "seq"), (ir.OptionalType, "optional")):
        if isinstance(type_, kind):
            inner = _written(type_.elem_type)
            return None if inner is None else f"{prefix}({inner})"
    return None


_tensor_type = functools.cache(type_name)


@functools.cache
def _schema(domain: str, op_type: str, version: int) -> onnx.defs.OpSchema | None:
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else schema


@functools.cache
def _is_known(domain: str) -> bool:
    """Return whether the schemas of a domain are known, so that an operator without one does not exist."""
    return any(schema.domain == domain for schema in onnx.defs.get_all_schemas())
