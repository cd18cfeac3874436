"""RMSNormalization of opset 23."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.newer_forms.matching import inputs, number, orders, produced, size_of
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, constant_list, is_constant
from onnx_specops.replacing import replace_value, rewriting


class FuseRMSNormalization(InPlacePass):
    """Fuse x / sqrt(mean(x^2) + epsilon) along the last axis, with or without a scale, in float32.

    The last axis has a known size above 0, and the epsilon is a constant. A scale is a constant vector.

    Attributes:
        finite: whether the results are the same for finite numbers only.
    """

    finite = False

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.domain or node.op_type not in ("Div", "Mul") or not isinstance(node.graph, ir.Graph):
                continue
            if (found := _normalized(node)) is None:
                continue
            root = root or Builder.of_existing(model.graph)
            count += self._replaced(node, *found, root)
        return PassResult(model, modified=count > 0)

    def normalized(self, op: Builder, x: Value, scale: Value, epsilon: float) -> Value | None:
        """Return the normalization of a value along its last axis; ``None``, before anything is emitted, to keep the nodes.

        Args:
            op: the builder.
            x: the value.
            scale: a constant that contains one number for each element of the last axis.
            epsilon: the number that is added to the mean square.
        """
        vector = scale if scale.rank == 1 else op.Reshape(scale, [size_of(x)])
        types: Any = [(x.dtype, None if x.shape is None else list(x.shape))]
        result: Value = op.node("RMSNormalization", x, vector, axis=-1, epsilon=epsilon, types=types, version=23)
        return result

    def _replaced(self, node: ir.Node, x: Value, epsilon: float, root: Builder) -> bool:
        result = node.outputs[0]
        scale: Any = None
        uses = list(result.uses())
        if len(uses) == 1 and not result.is_graph_output() and not uses[0][0].domain and uses[0][0].op_type == "Mul":
            user = uses[0][0]
            other = user.inputs[1 - uses[0][1]]
            whole = user.outputs[0]
            is_scale = isinstance(other, Value) and user.graph is node.graph and _is_vector(other, size_of(x))
            if is_scale and isinstance(whole, Value) and whole.rank == x.rank:
                scale, node, result = other, user, whole
        op = Builder.before_node(node, root)
        if scale is None:
            scale = op.const(np.ones(size_of(x) or 0, np.float32))
        normal = self.normalized(op, x, scale, epsilon)
        if normal is None:
            return False
        with rewriting(type(self).__name__, finite=self.finite):
            return replace_value(result, normal)


def _normalized(node: ir.Node) -> tuple[Value, float] | None:
    """Return the value that a node divides by the root of its mean square, and the epsilon."""
    found = inputs(node)
    if node.op_type == "Div":
        root = produced(found[1], "Sqrt")
        pairs = [] if root is None or found[0] is None else [(found[0], root.inputs[0])]
    else:
        pairs = [(x, mean) for x, factor in orders(node) if (mean := _inverse_root(factor)) is not None]
    whole = node.outputs[0]
    for x, square in pairs:
        # A constant of higher rank adds dimensions to the result.
        same_rank = isinstance(whole, Value) and whole.rank == x.rank
        if same_rank and (epsilon := _mean_square(x, square)) is not None:
            return x, epsilon
    return None


def _inverse_root(value: Value) -> ir.Value | None:
    """Return ``x`` if the value is ``1 / sqrt(x)``."""
    if (node := produced(value, "Div")) is not None:
        root = produced(node.inputs[1], "Sqrt") if number(node.inputs[0]) == 1 else None
    elif (node := produced(value, "Reciprocal")) is not None:
        root = produced(node.inputs[0], "Sqrt")
    elif (node := produced(value, "Pow")) is not None:
        exponent = number(node.inputs[1])
        if exponent == -0.5:
            return node.inputs[0]
        root = produced(node.inputs[0], "Sqrt") if exponent == -1 else None
    else:
        return None
    return None if root is None else root.inputs[0]


def _mean_square(x: Value, value: ir.Value | None) -> float | None:
    """Return the epsilon that is added to the mean square of ``x``, if ``value`` is their sum."""
    # ONNX Runtime rejects empty rows.
    if x.dtype != ir.DataType.FLOAT or not x.rank or not size_of(x) or (added := produced(value, "Add")) is None:
        return None
    for mean, epsilon in orders(added):
        reduced = produced(mean, "ReduceMean")
        if reduced is None or (least := number(epsilon)) is None or mean.rank != x.rank:
            continue
        axes = constant_list(reduced.inputs[1]) if len(reduced.inputs) > 1 else None
        if axes is None or [axis % x.rank for axis in axes] != [x.rank - 1]:
            continue
        if (square := produced(reduced.inputs[0], "Pow")) is not None:
            is_square = square.inputs[0] is x and number(square.inputs[1]) == 2
        else:
            square = produced(reduced.inputs[0], "Mul")
            is_square = square is not None and square.inputs[0] is x and square.inputs[1] is x
        if is_square:
            return least
    return None


def _is_vector(value: Value, size: int | None) -> bool:
    """Return whether a constant has one number for each element of the last axis."""
    dims = value.dims
    return is_constant(value) and bool(dims) and dims is not None and dims[-1] == size and all(dim == 1 for dim in dims[:-1])
