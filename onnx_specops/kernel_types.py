"""A pass that inserts casts around nodes whose element types ONNX Runtime's CPU kernels lack.

Rules and bodies use the model's own types. ONNX Runtime has kernels for some types of each operator, listed in its kernel
table. A node of another type is computed in the narrowest supported type that represents every value of that type.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import onnx
import onnx_ir as ir

from onnx_specops import kernels
from onnx_specops.building import OPSET, OPSET_IMPORTS, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names
from onnx_specops.widening import HALVES, WIDER

D = ir.DataType

Constraints = kernels.Constraints

_WIDEST = frozenset({D.INT64, D.UINT64, D.DOUBLE})


def type_name(dtype: ir.DataType) -> str:
    names = {D.FLOAT: "float", D.DOUBLE: "double", D.BOOL: "bool"}
    return f"tensor({names.get(dtype, dtype.name.lower())})"


@functools.cache
def _schema(op_type: str, domain: str, opset: int) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(op_type, OPSET_IMPORTS[domain] if domain else opset, domain)


class _Formal(NamedTuple):
    """The type of an input or output in a schema, and whether all tensors of a variadic one have it."""

    type_str: str
    is_homogeneous: bool


class _Signature(NamedTuple):
    """The types in a schema. The schema's own properties convert all their elements on each access."""

    inputs: Sequence[_Formal]
    outputs: Sequence[_Formal]
    variables: frozenset[str]

    def input(self, index: int) -> _Formal:
        return self.inputs[min(index, len(self.inputs) - 1)]

    def output(self, index: int) -> _Formal:
        return self.outputs[min(index, len(self.outputs) - 1)]


@functools.cache
def _signature(op_type: str, domain: str, opset: int) -> _Signature:
    schema = _schema(op_type, domain, opset)
    return _Signature(
        [_Formal(formal.type_str, formal.is_homogeneous) for formal in schema.inputs],
        [_Formal(formal.type_str, formal.is_homogeneous) for formal in schema.outputs],
        frozenset(constraint.type_param_str for constraint in schema.type_constraints),
    )


@functools.cache
def substitutes(
    op_type: str,
    domain: str,
    bound: tuple[tuple[str, ir.DataType], ...],
    opset: int = OPSET,
    fit_kernels: bool = True,
    spared: frozenset[ir.DataType] = frozenset(),
) -> dict[str, ir.DataType] | None:
    """Return the new types of a node's type variables: ``{}`` if its types are supported, ``None`` if no type is.

    Args:
        op_type: the operator.
        domain: its domain.
        bound: each type variable of the schema with its element type at the node.
        opset: the opset whose operator it is.
        fit_kernels: whether ONNX Runtime's CPU must have a kernel; otherwise only the operator's schema decides.
        spared: the types that only the schema must allow.
    """
    schema = _schema(op_type, domain, opset)
    # Some kernels accept types that the operator's schema does not allow.
    legal = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    if not fit_kernels:
        return _nearest(bound, [legal], legal, spared)
    portable = _nearest(bound, _usable(schema, bound, portable=True), legal, spared)
    if portable is not None and not any(dtype in _WIDEST and name in portable for name, dtype in bound):
        return portable
    # No other type represents all these numbers, so a kernel of newer releases is used.
    return _nearest(bound, _usable(schema, bound, portable=False), legal, spared)


def _nearest(
    bound: Iterable[tuple[str, ir.DataType]],
    usable: Iterable[Constraints],
    legal: Constraints,
    spared: frozenset[ir.DataType],
) -> dict[str, ir.DataType] | None:
    """Return the type changes of the kernel that requires the fewest."""
    best: tuple[int, dict[str, ir.DataType]] | None = None
    for constraints in usable:
        changes: dict[str, ir.DataType] = {}
        cost = 0
        for variable, dtype in bound:
            allowed = legal[variable]
            if dtype not in spared:
                allowed = allowed & constraints.get(variable, allowed)
            if type_name(dtype) in allowed:
                continue
            choices = [c for c in WIDER.get(dtype, ()) if type_name(c) in allowed]
            if not choices:
                break
            changes[variable] = choices[0]
            cost += 1 + WIDER[dtype].index(choices[0])
        else:
            if best is None or cost < best[0]:
                best = (cost, changes)
    return None if best is None else best[1]


def _usable(schema: onnx.defs.OpSchema, bound: Iterable[tuple[str, ir.DataType]], *, portable: bool) -> list[Constraints]:
    """Return the types of each kernel of an operator; for an operator without kernels, the types of its schema."""
    found = kernels.kernels(schema.domain, schema.name, schema.since_version, portable=portable)
    if found is not None:
        return found
    expands = schema.has_function or schema.has_context_dependent_function  # type: ignore[attr-defined]
    if not expands:
        return [{}]
    # ONNX Runtime expands the operator's function, whose operators have kernels for these types.
    types = frozenset(("tensor(float)", "tensor(double)", "tensor(int64)"))
    return [{name: types for name, _ in bound}]


def insert_casts(
    graph: ir.Graph | ir.Function,
    *,
    keep_float32: bool = False,
    converted_unrounded: Collection[ir.DataType] = (),
    opset: int = OPSET,
    fit_kernels: bool = True,
    spared: Collection[ir.DataType] = (),
) -> int:
    """Insert the casts that ONNX Runtime's CPU needs, also in nested graphs; return the number of changed nodes.

    Args:
        graph: changed in place.
        keep_float32: whether 16-bit floats between two computations in float32 stay unrounded.
        converted_unrounded: the 16-bit floats whose unrounded values the graph's own Casts use as well.
        opset: the opset that the graph is in.
        fit_kernels: whether ONNX Runtime's CPU kernels decide; otherwise only the operators' schemas.
        spared: the types that only the operators' schemas must allow.
    """
    nodes = list(all_nodes(graph))
    names = Names.of(graph)
    adapter = _Adapter(
        names, HALVES if keep_float32 else frozenset(), frozenset(converted_unrounded), opset, fit_kernels, frozenset(spared)
    )
    return sum(adapter.adapt(node) for node in nodes)


def _bound(signature: _Signature, node: ir.Node) -> dict[str, ir.DataType]:
    """Return the element type of each type variable at a node."""
    seen: dict[str, ir.DataType] = {}
    for parameters, values in ((signature.inputs, node.inputs), (signature.outputs, node.outputs)):
        if not parameters:
            continue
        for index, value in enumerate(values):
            parameter = parameters[min(index, len(parameters) - 1)]
            # Heterogeneous variadic inputs (Loop, If, Scan) do not bind a type. Their graphs are adapted separately.
            if value is None or value.dtype is None or not parameter.is_homogeneous:
                continue
            if not isinstance(value.type, ir.TensorType):
                continue
            seen.setdefault(parameter.type_str, value.dtype)
    return {name: dtype for name, dtype in seen.items() if name in signature.variables}


class _Adapter:
    """Inserts the casts around one node at a time. Each cast exists once per graph."""

    def __init__(
        self,
        names: Names,
        kept: frozenset[ir.DataType],
        converted_unrounded: frozenset[ir.DataType],
        opset: int,
        fit_kernels: bool,
        spared: frozenset[ir.DataType],
    ) -> None:
        self._names, self._kept, self._converted_unrounded = names, kept, converted_unrounded
        self._opset, self._fit_kernels, self._spared = opset, fit_kernels, spared
        # maps a value that is rounded to 16 bits to the float32 value before rounding
        self._exact: dict[ir.Value, ir.Value] = {}
        self._casts: dict[tuple[ir.Value, ir.DataType, int], ir.Value] = {}

    def adapt(self, node: ir.Node) -> bool:
        """Insert the casts that one node needs; return whether there were any."""
        if node.op_type == "Cast":
            self._cast_from_exact(node)
        if node.domain == DOMAIN or node.domain not in OPSET_IMPORTS or node.op_type in ("Cast", "Constant"):
            return False
        signature = _signature(node.op_type, node.domain, self._opset)
        bound = _bound(signature, node)
        # A node with a kernel for 16-bit floats stays in float32 if it follows a computation in float32.
        wide: dict[str, ir.DataType] = {}
        for index, value in enumerate(node.inputs):
            if value in self._exact and (variable := signature.input(index).type_str) in bound:
                wide[variable] = self._exact[value].dtype or bound[variable]
        changes = substitutes(
            node.op_type, node.domain, tuple((bound | wide).items()), self._opset, self._fit_kernels, self._spared
        )
        if changes is None:
            return False
        changes = wide | changes
        if not changes:
            return False
        from_inputs = {signature.input(i).type_str for i, value in enumerate(node.inputs) if value is not None}
        for index, value in enumerate(node.inputs):
            target = None if value is None else changes.get(signature.input(index).type_str)
            if value is not None and target is not None and value.dtype != target:
                node.replace_input_with(index, self._as(value, target, node))
        for index, value in enumerate(node.outputs):
            variable = signature.output(index).type_str
            target, dtype = changes.get(variable), value.dtype
            if target is None or dtype is None or variable not in from_inputs:
                continue
            name, value.name = value.name, self._names.unique(f"{value.name}_{target.name.lower()}")
            narrow = Value(name=name, type=value.type, shape=value.shape)
            value.replace_all_uses_with(narrow, replace_graph_outputs=True)
            value.type = ir.TensorType(target)
            assert node.graph is not None
            node.graph.insert_after(node, _cast(value, narrow, dtype))
            if dtype in self._kept:
                self._exact[narrow] = value
        return True

    def _cast_from_exact(self, node: ir.Node) -> None:
        """Let a Cast of a rounded value use the unrounded value. Casts that a rule marked count as this pass's own."""
        source, result = node.inputs[0], node.outputs[0]
        assert source is not None
        if not (isinstance(result, Value) and result.unrounded):
            if source in self._exact and source.dtype in self._converted_unrounded:
                node.replace_input_with(0, self._exact[source])
        elif result.dtype in self._kept - self._spared:
            self._exact[result] = source
        elif (exact := self._exact.get(source)) is not None and exact.dtype == result.dtype:
            if result.is_graph_output():  # the output keeps its name and its own node
                node.replace_input_with(0, exact)
            else:
                result.replace_all_uses_with(exact)

    def _as(self, value: ir.Value, target: ir.DataType, node: ir.Node) -> ir.Value:
        """Return ``value`` in another type, for ``node``."""
        source = self._exact.get(value)
        if source is not None and source.dtype == target:
            return source
        graph = node.graph
        assert graph is not None
        key = (value, target, id(graph))
        if key not in self._casts:
            name = self._names.unique(f"{value.name}_as_{target.name.lower()}")
            result = Value(name=name, type=ir.TensorType(target), shape=value.shape)
            graph.insert_before(node, _cast(value, result, target))
            self._casts[key] = result
        return self._casts[key]


def _cast(value: ir.Value, result: ir.Value, to: ir.DataType) -> ir.Node:
    return ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(to))], outputs=[result])
