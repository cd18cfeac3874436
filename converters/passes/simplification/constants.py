"""Constant folding by ONNX Runtime, once at conversion instead of at each load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.bodies import attach_bodies
from onnx_specops.building import OPSET_IMPORTS, constant_value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes, all_values, nested
from onnx_specops.kernel_types import insert_casts
from onnx_specops.naming import Names
from onnx_specops.replacing import replace_value

D = ir.DataType

RANDOM = frozenset(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"))
"""Operators with random results."""

_NOT_STORED = frozenset(("DequantizeLinear", "QuantizeLinear"))
"""Operators that are not folded, so that weights stay small and a quantized network stays quantized."""

MAX_GROWTH = 1 << 16
"""The number of elements of a result that may have more elements than its inputs."""

_MAX_INTERMEDIATE = 1 << 22
"""The number of elements of such a result if only other folded nodes use it."""

_AT_ONCE = 64 << 20
"""The number of bytes of constants that one session computes with."""

_TYPES = frozenset((
    D.BOOL, D.INT8, D.INT16, D.INT32, D.INT64, D.UINT8, D.UINT16, D.UINT32, D.UINT64, D.FLOAT16, D.FLOAT, D.DOUBLE,
))  # fmt: skip


class FoldConstants(InPlacePass):
    """Replace nodes with only constant inputs by constants, including those of nested graphs.

    Operators of the domain are computed by their bodies. A node without a body remains.

    A result with more elements than the constants is not folded, such as ``Expand`` of a number to an image, unless only
    other folded nodes use it. Results that grow from node to node, such as a Concat of a value with itself 60 times in a
    row, are folded only up to the number of elements of all constants of the model.

    Args:
        stored: whether weights are folded, such as weights stored in 8 bits that are used in float32.
        limit: the number of elements of results that are folded although they may be weights.
        halves: whether 16-bit floats are folded. Before `InsertCasts`, their values may have the precision of float32.
        kept: operators that are not folded.
    """

    def __init__(
        self, *, stored: bool = False, limit: int = MAX_GROWTH, halves: bool = True, kept: frozenset[str] = _NOT_STORED
    ) -> None:
        self.stored, self.limit, self.kept = stored, limit, kept
        self._most = 0
        self.types = _TYPES if halves else _TYPES - {D.FLOAT16}

    def call(self, model: ir.Model) -> PassResult:
        self._most = _constant_elements(model.graph)
        found: dict[ir.Value, ir.Node] = {}
        small: dict[ir.Value, ir.Node] = {}  # without results that only other folded nodes may use
        for node in all_nodes(model.graph):
            if self._is_foldable(node, found, _MAX_INTERMEDIATE):
                found |= dict.fromkeys(node.outputs, node)
                if self._is_foldable(node, small, MAX_GROWTH):
                    small |= dict.fromkeys(node.outputs, node)
        wanted = self._wanted(found, small)
        names = Names.of(model.graph) if wanted else Names()
        count = 0
        for values in _batches(wanted, found):
            for value, array in zip(values, _computed(values, found), strict=True):
                if array is None:
                    continue
                constant = constant_value(ir.Tensor(np.ascontiguousarray(array).reshape(array.shape), dtype=value.dtype))
                constant.name = f"{value.name}_folded"
                names.register(model.graph, constant)
                replace_value(value, constant, equal=False)
                count += 1
        return PassResult(model, modified=count > 0)

    def _wanted(self, found: dict[ir.Value, ir.Node], small: dict[ir.Value, ir.Node]) -> list[ir.Value]:
        """Return the values that become constants, so that as many nodes as possible are removed."""
        wanted: dict[ir.Value, None] = {}
        removed: set[ir.Node] = set()
        for node in reversed(list(dict.fromkeys(found.values()))):
            used = [value for value in node.outputs if any(user not in removed for user, _ in value.uses())]
            if all(value in small or (_size(value) or 0) <= min(self.limit, MAX_GROWTH) for value in used):
                removed.add(node)
                wanted |= dict.fromkeys(used)
        return [value for value in found if value in wanted]

    def _is_foldable(self, node: ir.Node, found: dict[ir.Value, ir.Node], growth: int) -> bool:
        if node.domain not in ("", DOMAIN) or node.op_type in RANDOM or node.op_type in self.kept or nested(node):
            return False
        if any(value.dtype not in self.types or value.is_graph_output() for value in node.outputs):
            return False
        inputs = [value for value in node.inputs if value is not None]
        if not all(value in found or _is_constant(value) for value in inputs):
            return False
        if node.op_type == "Constant":
            return "value" in node.attributes
        sizes, results = ([_size(value) for value in values] for values in (inputs, node.outputs))
        if None in sizes or None in results:
            return False
        given, made = (sum(size or 0 for size in of) for of in (sizes, results))
        if made > max(growth, self._most):
            return False
        if made > given:
            return made <= growth
        return self.stored or made <= self.limit


def _is_constant(value: ir.Value) -> bool:
    return value.const_value is not None and value.is_initializer() and not value.is_graph_input()


def _constant_elements(graph: ir.Graph) -> int:
    """Return the number of elements of all constants."""
    total = sum(value.const_value.size for value in all_values(graph) if value.const_value is not None)
    return total + sum(_size(node.outputs[0]) or 0 for node in all_nodes(graph) if node.op_type == "Constant")


def _size(value: ir.Value) -> int | None:
    if value.const_value is not None:
        return value.const_value.size
    if value.shape is None or not all(isinstance(dim, int) for dim in value.shape):
        return None
    return int(np.prod([int(dim) for dim in value.shape if isinstance(dim, int)], dtype=np.int64))


def _sources(value: ir.Value, found: dict[ir.Value, ir.Node]) -> tuple[list[ir.Node], list[ir.Value]]:
    """Return the nodes that compute a value, and their constants."""
    nodes: dict[ir.Node, None] = {}
    constants: dict[ir.Value, None] = {}
    pending = [found[value]]
    while pending:
        node = pending.pop()
        if node in nodes:
            continue
        nodes[node] = None
        for given in node.inputs:
            if given is None:
                continue
            if given in found:
                pending.append(found[given])
            else:
                constants[given] = None
    return list(nodes), list(constants)


def _batches(wanted: Sequence[ir.Value], found: dict[ir.Value, ir.Node]) -> Iterator[list[ir.Value]]:
    batch: list[ir.Value] = []
    size = 0
    for value in wanted:
        constants = _sources(value, found)[1]
        more = sum(0 if c.const_value is None else c.const_value.nbytes for c in constants)
        if batch and size + more > _AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(value)
        size += more
    if batch:
        yield batch


def _computed(values: Sequence[ir.Value], found: dict[ir.Value, ir.Node]) -> list[np.ndarray | None]:
    """Compute the values; ``None`` for those that ONNX Runtime cannot compute."""
    try:
        return _run(values, found)
    except Exception:  # ONNX Runtime's exceptions have no common base class
        if len(values) == 1:
            return [None]
        return [array for value in values for array in _computed([value], found)]


def _run(values: Sequence[ir.Value], found: dict[ir.Value, ir.Node]) -> list[np.ndarray | None]:
    graph = ir.Graph([], [], nodes=[], name="constants", opset_imports=dict(OPSET_IMPORTS))
    copies: dict[ir.Value, ir.Value] = {}
    order: dict[ir.Node, None] = {}
    for value in values:
        nodes, constants = _sources(value, found)
        order |= dict.fromkeys(nodes)
        for constant in constants:
            if constant not in copies:
                tensor = constant.const_value
                assert tensor is not None
                if not isinstance(tensor, ir.Tensor):  # a session from bytes cannot read other files
                    tensor = ir.Tensor(tensor.numpy(), dtype=tensor.dtype)
                copy = constant_value(tensor, name=f"c{len(copies)}")
                graph.register_initializer(copy)
                copies[constant] = copy
    # `found` has the nodes in topological order.
    places = {node: place for place, node in enumerate(dict.fromkeys(found.values()))}
    for node in sorted(order, key=places.__getitem__):
        outputs = [ir.Value(name=f"v{len(copies) + i}", type=o.type, shape=o.shape) for i, o in enumerate(node.outputs)]
        inputs = [None if value is None else copies[value] for value in node.inputs]
        graph.append(ir.Node(node.domain, node.op_type, inputs, list(node.attributes.values()), outputs=outputs))
        copies |= dict(zip(node.outputs, outputs, strict=True))
    for value in values:
        graph.outputs.append(copies[value])
    insert_casts(graph, keep_float32=True, converted_unrounded=[D.FLOAT16])
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    names = [value.name for value in graph.outputs]
    model = ir.Model(graph, ir_version=10)
    attach_bodies(model)
    data = ir.to_proto(model).SerializeToString()
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return list(session.run(names, {}))
