"""The registry of adapters: how older opsets say what the operators of opset 21 say.

An adapter is a function for one operator, or for several that changed alike. Its signature is the operator's: inputs in
order, attributes as keywords. It emits, with the builder that rules and bodies use, what the node says below an opset::

    @below(17, "LayerNormalization")
    def layer_normalization(op, x, scale, bias=None, *, axis=-1, epsilon=1e-5):
        ...
        return op.Add(op.Mul(normal, scale), bias)

What it emits is of opset 21 and lowered in its turn, but for what it emits through ``op.old``: that is in the form that the
opset aimed at has already (``op.old.Squeeze(x, axes=[0])``). It returns `SAME` where the node means below the opset
what it says, and raises `NotRepresentableError` where nothing there says it.

A keyword-only parameter called ``node`` receives the node itself.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Builder, Value, _Namespace

SAME = object()
"""What an adapter returns for a node that is said alike below its opset."""


class NotRepresentableError(ValueError):
    """Nothing in the opset that is aimed at says what a node says."""


class LoweringBuilder(Builder):
    """The builder that adapters take.

    Attributes:
        opset: the opset that is aimed at.
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
        """The builder for operators in the form that the opset aimed at has."""
        return self.at(self.opset)

    def _add(self, node: ir.Node) -> None:
        super()._add(node)
        self.emitted.append(node)


class Adapter:
    """A registered adapter.

    Attributes:
        opset: it says what nodes say below this opset.
        function: the function.
    """

    def __init__(self, opset: int, function: Callable[..., Any]) -> None:
        self.opset, self.function = opset, function
        parameters = inspect.signature(function).parameters.values()
        self._takes_node = any(p.name == "node" and p.kind is p.KEYWORD_ONLY for p in parameters)

    def __call__(self, op: LoweringBuilder, node: ir.Node) -> Any:
        """`SAME`, or the values (one, or several in order) that take the place of the node's outputs."""
        keywords = {name: attribute.value for name, attribute in node.attributes.items()}
        if self._takes_node:
            keywords["node"] = node
        return self.function(op, *node.inputs, **keywords)


_adapters: dict[str, list[Adapter]] = defaultdict(list)


def below(opset: int, *operators: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function says, for opsets below ``opset``, what nodes of the operators say."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for operator in operators:
            _adapters[operator].append(Adapter(opset, function))
            _adapters[operator].sort(key=lambda adapter: -adapter.opset)
        return function

    return register


def adapters(operator: str) -> Sequence[Adapter]:
    """The adapters of a standard operator, the one of the newest opset first."""
    return _adapters.get(operator, ())


def adapted() -> Mapping[str, Sequence[Adapter]]:
    """All adapters by operator."""
    return _adapters


# -- what adapters share --------------------------------------------------------------------------------------------------


def known(value: ir.Value | None) -> np.ndarray | None:
    """The elements of a constant; ``None`` for what is known at run time only."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def known_list(value: ir.Value | None) -> list[int] | None:
    """The elements of a constant of integers."""
    array = known(value)
    return None if array is None else [int(x) for x in array.reshape(-1)]


def need_rank(value: Value, what: str) -> int:
    """The number of dimensions of a value, without which older opsets cannot say something."""
    if value.rank is None:
        raise NotRepresentableError(f"{what} of a tensor of unknown rank")
    return value.rank


def scalar(op: Builder, value: Value) -> Value:
    """A list of one element as a scalar."""
    return value if value.rank == 0 else op.Reshape(value, op.const(np.zeros(0, np.int64)))


def along(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front."""
    return [axis + rank if axis < 0 else axis for axis in axes]
