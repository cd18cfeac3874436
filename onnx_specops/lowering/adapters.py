"""The registry of adapters: equivalents of opset 21's operators in older opsets.

An adapter is a function for one operator, or for several that changed in the same way. Its parameters are those of the
operator: inputs in order, attributes as keywords. It emits the node's equivalent for opsets below a given one, with the
builder that rules and bodies use::

    @below(17, "LayerNormalization")
    def layer_normalization(op, x, scale, bias=None, *, axis=-1, epsilon=1e-5):
        ...
        return op.Add(op.Mul(normal, scale), bias)

The emitted nodes are of opset 21 and are lowered in turn, except those emitted through ``op.old``, which already have the
form of the target opset (``op.old.Squeeze(x, axes=[0])``). An adapter returns `SAME` if the node has the same meaning below
the opset, and raises `NotRepresentableError` if there is no equivalent.

A keyword-only parameter called ``node`` receives the node itself. An adapter that replaces a numerical operator by several
others uses the decorator `in_float32`.
"""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Builder, Value, _Namespace, cast_unrounded
from onnx_specops.graphs import attributes_of
from onnx_specops.widening import HALVES

SAME = object()
"""The return value of an adapter for a node with the same meaning below its opset."""


class NotRepresentableError(ValueError):
    """The target opset has no equivalent for a node."""


class LoweringBuilder(Builder):
    """The builder that adapters receive.

    Attributes:
        opset: the target opset.
        emitted: the nodes that were emitted.
    """

    def __init__(self, opset: int, node: ir.Node, root: Builder) -> None:
        assert isinstance(node.graph, ir.Graph)
        super().__init__(node.graph, root=root, before=node)
        self.opset = opset
        self.emitted: list[ir.Node] = []
        self.scope = node.name or node.op_type

    @property
    def old(self) -> _Namespace:
        """The builder for operators in the form of the target opset."""
        return self.at(self.opset)

    def _add(self, node: ir.Node) -> None:
        super()._add(node)
        self.emitted.append(node)


class Adapter:
    """A registered adapter.

    Attributes:
        opset: the adapter applies to opsets below this one.
        function: the function.
    """

    def __init__(self, opset: int, function: Callable[..., Any]) -> None:
        self.opset, self.function = opset, function
        parameters = inspect.signature(function).parameters.values()
        self._takes_node = any(p.name == "node" and p.kind is p.KEYWORD_ONLY for p in parameters)

    def __call__(self, op: LoweringBuilder, node: ir.Node) -> Any:
        """Return `SAME`, or the value or values that replace the node's outputs, in order."""
        keywords = attributes_of(node)
        if self._takes_node:
            keywords["node"] = node
        return self.function(op, *node.inputs, **keywords)


_adapters: dict[str, list[Adapter]] = defaultdict(list)


def below(opset: int, *operators: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function emits the equivalent of the operators' nodes for opsets below ``opset``."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for operator in operators:
            _adapters[operator].append(Adapter(opset, function))
            _adapters[operator].sort(key=lambda adapter: -adapter.opset)
        return function

    return register


def adapters(operator: str) -> Sequence[Adapter]:
    """Return the adapters of a standard operator, newest opset first."""
    return _adapters.get(operator, ())


def adapted() -> Mapping[str, Sequence[Adapter]]:
    """Return all adapters by operator."""
    return _adapters


def in_float32(function: Callable[..., Value]) -> Callable[..., Value]:
    """Decorator: compute 16-bit floats in float32, and round the result to the type of the first input.

    An operator's kernel rounds once. Its decomposition would round at each step, and its sums and squares would overflow.
    Like the results of kernels, the result stays in float32 for a next node that is computed in it.
    """

    @functools.wraps(function)
    def computed(op: LoweringBuilder, x: Value, *others: Value | None, **attributes: Any) -> Value:
        inputs = [
            cast_unrounded(op, value, ir.DataType.FLOAT) if value is not None and value.dtype in HALVES else value
            for value in (x, *others)
        ]
        result = function(op, *inputs, **attributes)
        return cast_unrounded(op, result, x.dtype) if x.dtype in HALVES else result

    return computed


# -- shared helpers -------------------------------------------------------------------------------------------------------


def need_rank(value: Value, what: str) -> int:
    """Return the rank of a value; raise an error if it is unknown, because ``what`` requires it in older opsets."""
    if value.rank is None:
        raise NotRepresentableError(f"{what} of a tensor of unknown rank")
    return value.rank


def scalar(op: Builder, value: Value) -> Value:
    """Reshape a list of one element to a scalar."""
    return value if value.rank == 0 else op.Reshape(value, op.const(np.zeros(0, np.int64)))


def along(axes: Sequence[int], rank: int) -> list[int]:
    """Return non-negative axes."""
    return [axis + rank if axis < 0 else axis for axis in axes]
