"""Evaluation of parts of a graph for chosen inputs.

Exporters express masks, rotary angles and repeated heads by many equivalent subgraphs. A `Probe` evaluates any part of a
graph for inputs of a few tokens without reading the weights. For values that depend on data (hidden states), it infers only
the shape. It computes constants only if values that do not depend on data use them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from onnx_specops.folding import fold
from onnx_specops.graphs import attributes_of, nested

_SMALL = 4096  # elements of a constant that is computed immediately
_LARGE = 1 << 26  # elements of a value that is never computed
_SHAPES = ("Shape", "Size")


class ProbeError(ValueError):
    """A value cannot be determined."""


def of_all_sizes(shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Random float32 numbers from 1e-30 to the largest, for evaluating a graph that should only move numbers.

    A limit far from usual numbers (the ``clip_qkv`` of some models, for example) changes some of them.
    """
    draw = np.random.default_rng(seed)
    found = (draw.standard_normal(shape) * 10.0 ** draw.uniform(-30, 37, shape)).astype(np.float32)
    limit = np.finfo(np.float32).max
    found.reshape(-1)[[0, -1]] = limit, -limit
    return found


@dataclass(frozen=True)
class Data:
    """A value with a known shape only."""

    dtype: ir.DataType
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant whose elements are computed on demand."""

    dtype: ir.DataType
    shape: tuple[int, ...]
    value: ir.Value


Known = np.ndarray | Data | Constant


class Probe:
    """The values of a graph for given inputs.

    Args:
        given: values that replace those that their nodes compute. Everything else that is computed depends on them and on
            constants.
    """

    def __init__(self, given: Mapping[ir.Value, np.ndarray | Data]) -> None:
        self._known: dict[ir.Value, Known] = dict(given)
        self._constants: dict[ir.Value, np.ndarray] = {}
        self._fixed: set[ir.Value] = set()  # values that depend on constants only

    def shape(self, value: ir.Value) -> tuple[int, ...]:
        """Return the shape of a value. Raise `ProbeError` if it cannot be determined."""
        return tuple(self._find(value).shape)

    def array(self, value: ir.Value) -> np.ndarray:
        """Return the elements of a value. Raise `ProbeError` if they depend on data."""
        found = self._find(value)
        if isinstance(found, Data):
            raise ProbeError(f"{value.name} depends on data")
        return self._elements(found)

    def _elements(self, known: Known) -> np.ndarray:
        if isinstance(known, np.ndarray):
            return known
        pending: list[Known] = [known]
        while pending:  # without recursion, as in `_find`
            current = pending[-1]
            assert isinstance(current, Constant)
            if current.value in self._constants:
                pending.pop()
                continue
            if math.prod(current.shape) > _LARGE:
                raise ProbeError(f"{current.value.name} is too large")
            if (tensor := current.value.const_value) is not None:
                self._constants[current.value] = tensor.numpy()
                continue
            node = current.value.producer()
            assert node is not None
            inputs = [None if v is None else self._find(v) for v in node.inputs]
            if unknown := [v for v in inputs if isinstance(v, Constant) and v.value not in self._constants]:
                pending += unknown
                continue
            arrays: list[np.ndarray | None] = []
            for given in inputs:
                assert not isinstance(given, Data)
                arrays.append(self._constants[given.value] if isinstance(given, Constant) else given)
            for output, array in zip(node.outputs, _computed(node, arrays), strict=False):
                self._constants[output] = array
        assert isinstance(known, Constant)
        return self._constants[known.value]

    def _find(self, value: ir.Value) -> Known:
        """Determine a value depth first, without recursion, because graphs are deeper than Python's stack."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current in self._known:
                pending.pop()
                continue
            if current.const_value is not None and not current.is_graph_input():
                tensor = current.const_value
                dims = tuple(tensor.shape.numpy())
                small = tensor.size <= _SMALL
                self._fixed.add(current)
                self._known[current] = tensor.numpy() if small else Constant(tensor.dtype, dims, current)
                continue
            node = current.producer()
            if node is None:
                raise ProbeError(f"{current.name} is an input without a value")
            needed = self._needed(node, current)
            if unknown := [v for v in needed if v not in self._known]:
                pending += unknown
                continue
            self._compute(node, current)
        return self._known[value]

    def _needed(self, node: ir.Node, output: ir.Value) -> list[ir.Value]:
        if node.op_type != "If" or node.domain:
            return [value for value in node.inputs if value is not None]
        condition = node.inputs[0]
        assert condition is not None
        if condition not in self._known:
            return [condition]
        return [condition, self._branch(node, output)]

    def _branch(self, node: ir.Node, output: ir.Value) -> ir.Value:
        """Return the output of the selected branch."""
        condition = node.inputs[0]
        assert condition is not None
        taken = "then_branch" if bool(self._elements(self._known[condition]).reshape(-1)[0]) else "else_branch"
        return node.attributes[taken].as_graph().outputs[output.index() or 0]

    def _compute(self, node: ir.Node, output: ir.Value) -> None:
        if node.op_type == "If" and not node.domain:
            self._known[output] = self._known[self._branch(node, output)]
            return
        inputs = [None if value is None else self._known[value] for value in node.inputs]
        if node.op_type in _SHAPES and not node.domain:
            assert inputs[0] is not None
            dims = np.array(inputs[0].shape, np.int64)
            start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", len(dims))
            self._known[output] = dims[start:end] if node.op_type == "Shape" else np.array(math.prod(dims), np.int64)
            return
        present = [known for known in inputs if known is not None]
        fixed = all(value in self._fixed for value in node.inputs if value is not None)
        if fixed:
            self._fixed.update(result for result in node.outputs if result not in self._known)
        if any(isinstance(known, Data) for known in present):
            self._infer(node, inputs)
            return
        if fixed and any(isinstance(known, Constant) for known in present):
            with suppress(ProbeError):  # whose shape depends on their elements
                return self._infer(node, inputs, constant=True)
        arrays = [None if known is None else self._elements(known) for known in inputs]
        for result, array in zip(node.outputs, _computed(node, arrays), strict=False):
            self._known.setdefault(result, array)

    def _infer(self, node: ir.Node, inputs: Sequence[Known | None], constant: bool = False) -> None:
        """Infer the shapes of a node's outputs with ONNX's shape inference."""
        for result, (dtype, shape) in zip(node.outputs, _inferred(node, inputs), strict=True):
            # Another output of the node may be given.
            self._known.setdefault(result, Constant(dtype, shape, result) if constant else Data(dtype, shape))


class ShapeProbe(Probe):
    """A probe that determines the shape of a reshaped float value from its target only.

    The value before can depend on data: mixtures of experts choose the rows of each expert, and reshape the sum to all
    tokens.
    """

    def _needed(self, node: ir.Node, output: ir.Value) -> list[ir.Value]:
        target = node.inputs[1] if _is_float_reshape(node) else None
        if target is not None:
            if target not in self._known:
                return [target]
            if self._target(target) is not None:
                return []
        return super()._needed(node, output)

    def _compute(self, node: ir.Node, output: ir.Value) -> None:
        target = node.inputs[1] if _is_float_reshape(node) else None
        if target is not None and (dims := self._target(target)) is not None:
            self._known[output] = Data(ir.DataType.FLOAT, dims)
        else:
            super()._compute(node, output)

    def _target(self, target: ir.Value) -> tuple[int, ...] | None:
        """Return the dimensions of a target that states all of them."""
        known = self._known[target]
        array = None if isinstance(known, Data) else self._elements(known)
        return None if array is None or (array <= 0).any() else tuple(int(size) for size in array)


def _is_float_reshape(node: ir.Node) -> bool:
    return node.op_type == "Reshape" and not node.domain and node.outputs[0].dtype == ir.DataType.FLOAT


def _inferred(node: ir.Node, inputs: Sequence[Known | None]) -> list[tuple[ir.DataType, tuple[int, ...]]]:
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for value, known in zip(node.inputs, inputs, strict=True):
        if value is None or known is None:
            continue
        name = value.name or ""
        dtype = value.dtype if isinstance(known, np.ndarray) else known.dtype
        types[name] = onnx.helper.make_tensor_type_proto(int(dtype or 0), known.shape)
        if isinstance(known, np.ndarray) and known.size <= _SMALL and known.dtype.kind in "iufb":
            data[name] = onnx.numpy_helper.from_array(known, name)
    try:
        schema = onnx.defs.get_schema(node.op_type, 21 if not node.domain else 1, node.domain)
        found = onnx.shape_inference.infer_node_outputs(schema, ir.serde.serialize_node(node), types, data)
        results = []
        for value in node.outputs:
            tensor = found[value.name or ""].tensor_type
            dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
            if not tensor.HasField("shape") or None in dims:
                raise ProbeError(f"the shape of {value.name} depends on data")
            results.append((ir.DataType(tensor.elem_type), tuple(int(d or 0) for d in dims)))
    except ProbeError:
        raise
    except Exception as error:  # invalid inputs raise many kinds of exceptions
        raise ProbeError(f"{node.name}: {error}") from error
    return results


def _computed(node: ir.Node, inputs: Sequence[np.ndarray | None]) -> Sequence[np.ndarray]:
    try:
        if not node.domain and (folded := fold(node.op_type, inputs, attributes_of(node))) is not None:
            return [np.asarray(array) for array in folded]
        # the reference evaluator supports at most 64 indices along the axis
        if not node.domain and node.op_type == "GatherElements":
            data, indices = (array for array in inputs if array is not None)
            return [np.take_along_axis(data, indices, node.attributes.get_int("axis", 0))]
        if not node.domain and node.op_type == "Expand":  # for a million tokens, the evaluator would fill the memory
            data, target = (array for array in inputs if array is not None)
            return [np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(target)))]
        feeds = {v.name or "": array for v, array in zip(node.inputs, inputs, strict=True) if v is not None}
        with np.errstate(all="ignore"):  # as in runtimes
            return list(ReferenceEvaluator(ir.serde.serialize_node(node), opsets={"": 21}).run(None, feeds))
    except Exception as error:  # invalid inputs raise many kinds of exceptions
        raise ProbeError(f"{node.name}: {error}") from error


class Dependence:
    """The values of a graph that depend on the contents of data, not only on its shape.

    Args:
        graph: the graph.
        sources: the data.
    """

    def __init__(self, graph: ir.Graph, sources: Sequence[ir.Value]) -> None:
        self._order: dict[ir.Value, int] = dict.fromkeys(sources, -1)
        for number, node in enumerate(graph):
            if node.op_type in _SHAPES and not node.domain:
                continue
            if any(value in self._order for value in inputs_of(node)):
                self._order.update(dict.fromkeys(node.outputs, number))

    def __contains__(self, value: ir.Value | None) -> bool:
        return value is not None and value in self._order

    def among(self, values: Sequence[ir.Value | None]) -> list[ir.Value]:
        """Return the values that depend on data, each once."""
        return list(dict.fromkeys(value for value in values if value is not None and value in self._order))

    def dominators(self, value: ir.Value, most: int = 200) -> list[ir.Value]:
        """Return the values on every path from the data to ``value``, nearest first, beginning with ``value`` itself.

        Args:
            value: a value that depends on data.
            most: the maximum number of nodes to search.
        """
        found: list[ir.Value] = []
        front = {value}
        for _ in range(most):
            last = max(front, key=self._order.__getitem__)
            front.remove(last)
            if not front:
                found.append(last)
            node = last.producer()
            if node is None:
                break
            front.update(self.among(list(node.inputs)))
            if not front:
                break
        return found


def inputs_of(node: ir.Node) -> list[ir.Value]:
    """Return the values that a node and its nested graphs read."""
    values = [value for value in node.inputs if value is not None]
    for graph in nested(node):
        values += list(graph.outputs)
        values += [value for inner in graph for value in inputs_of(inner)]
    return values
