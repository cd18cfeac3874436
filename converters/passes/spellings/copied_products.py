"""Copies by Gather before and after matrix multiplications."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_list, dimension

_TRANSPARENT = """
    Abs Acos Acosh Add Asin Asinh Atan Atanh Cast Ceil Celu Clip Concat Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater
    GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log LogSoftmax Max Min Mish Mod Mul
    Neg PRelu Pow Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
    ReduceSum ReduceSumSquare Relu Round Selu Sigmoid Sign Sin Sinh Slice Softmax Softplus Softsign Sqrt Sub Tan Tanh
    ThresholdedRelu Where
"""
"""Operators through which a transposition moves, and whose result has the axes of inputs of its rank."""

_SAME_AXES = frozenset(_TRANSPARENT.split())
_RESHAPES = frozenset(("Reshape", "Squeeze", "Unsqueeze"))

_BATCH, _OTHER = True, False


class CopiedProducts(Workaround):
    """Copy the result of a MatMul or Einsum (by a Gather of all elements) if a Transpose moves a batch dimension to the end.

    tract (0.23) stores the result in the transposed order, even if there are other operators in between. With 16 matrices,
    it computes wrong numbers.
    """

    operators = frozenset(("MatMul", "Einsum"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        result = node.outputs[0]
        if not isinstance(result, Value) or not result.rank or result.rank < 3:
            return None
        axes = _axes_of_product(node, result.rank)
        if axes is None or not (_ends_with_batch(axes, result) or _is_transposed(result, axes)):
            return None
        order = sorted(range(result.rank), key=lambda axis: axes[axis] is not _BATCH)
        if node.op_type == "Einsum":
            given, labels = _labels(node)
            equation = ",".join(given) + "->" + "".join(labels[axis] for axis in order)
            dims = None if result.dims is None else [result.dims[axis] for axis in order]
            product = op.Einsum(*node.inputs, equation=equation, types=[(result.dtype, dims)])
        else:
            order = list(range(result.rank))
            product = op.MatMul(*node.inputs)
        copied = _copied(op, product)
        return [copied if order == sorted(order) else op.Transpose(copied, perm=np.argsort(order).tolist())]


def _axes_of_product(node: ir.Node, rank: int) -> list[bool] | None:
    """Return for each axis of the result of a multiplication whether it is a batch dimension; ``None`` if unknown."""
    if node.op_type == "MatMul":
        return [_BATCH] * (rank - 2) + [_OTHER] * 2 if all(getattr(x, "rank", None) != 1 for x in node.inputs) else None
    given, labels = _labels(node)
    if len(labels) != rank or "." in labels:
        return None
    return [sum(label in one for one in given) > 1 for label in labels]


def _labels(node: ir.Node) -> tuple[list[str], str]:
    """Return the labels of the inputs of an Einsum, and those of its result."""
    given, _, result = node.attributes.get_string("equation", "").replace(" ", "").partition("->")
    return given.split(","), result


def _is_transposed(value: ir.Value, axes: Sequence[bool]) -> bool:
    """Return whether a Transpose after operators that keep the axes makes a batch dimension the last one."""
    pending, seen = [(value, tuple(axes))], set()
    while pending:
        before, kept = pending.pop()
        for node in before.consumers():
            result = node.outputs[0]
            if node.domain or result in seen or not isinstance(result, Value) or result.dims is None:
                continue
            after: tuple[bool, ...] | None = None
            if node.op_type == "Transpose":
                permutation = node.attributes.get_ints("perm", None) or range(len(kept))[::-1]
                after = tuple(kept[axis] for axis in permutation)
                if _ends_with_batch(after, result):
                    return True
            elif node.op_type in _SAME_AXES and len(result.dims) == len(kept):
                after = kept
            elif node.op_type in _RESHAPES and node.inputs[0] is before:
                after = _reshaped(kept, before, result)
            if after is not None:
                seen.add(result)
                pending.append((result, after))
    return False


def _ends_with_batch(axes: Sequence[bool], value: Value) -> bool:
    """Return whether the last axis with several elements is a batch dimension, and another axis is before it."""
    several = [axis for axis, dim in enumerate(value.dims or ()) if dim != 1]
    return len(several) > 1 and axes[several[-1]] is _BATCH


def _reshaped(axes: Sequence[bool], before: ir.Value, after: Value) -> tuple[bool, ...] | None:
    """Return the axes after a Reshape that adds or removes dimensions of 1 only; ``None`` for others."""
    if not isinstance(before, Value) or before.dims is None or after.dims is None:
        return None
    several = [axis for axis, dim in enumerate(before.dims) if dim != 1]
    if [before.dims[axis] for axis in several] != [dim for dim in after.dims if dim != 1] or None in before.dims:
        return None
    kinds = iter(axes[axis] for axis in several)
    return tuple(_OTHER if dim == 1 else next(kinds) for dim in after.dims)


def _copied(op: Builder, value: Value) -> Value:
    """Return a Gather of all elements."""
    dims = value.dims or ()
    axis = next((axis for axis, dim in enumerate(dims) if dim is not None and dim > 1), None)
    if axis is None:
        last = op.Squeeze(op.Gather(op.Shape(value), [0]), [0])
        result: Value = op.Gather(value, op.Range(op.const(0), last, op.const(1)), axis=0)
        return result
    result = op.Gather(value, np.arange(dims[axis] or 0), axis=axis)
    return result


_PRODUCTS = frozenset(("Conv", "Einsum", "Gemm", "MatMul"))
_MOVES = frozenset(("Concat", "Identity", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"))


class GatheredCopies(Workaround):
    """Convert Expand and Tile of dimensions of 1 to Gather, if a matrix multiplication or Conv uses the result.

    tract (0.23) expands the result of the multiplication instead, and fails. Operators that move elements can be in between.
    Condition: all other dimensions keep their size or name, or are repeated once.
    """

    operators = frozenset(("Expand", "Tile"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value) or x.dims is None or result.dims is None:
            return None
        added, factors = len(result.dims) - len(x.dims), constant_list(node.inputs[1]) or []
        dims = [1] * added + x.dims
        factors = [0] * (len(dims) - len(factors)) + factors
        copied = [
            axis
            for axis, dim in enumerate(dims)
            if factors[axis] != 1 and (dim if axis < added else dimension(x, axis - added)) != dimension(result, axis)
        ]
        if any(dims[axis] != 1 or not result.dims[axis] for axis in copied) or not _is_multiplied(result):
            return None
        if len(x.dims) < len(dims):
            x = op.Unsqueeze(x, list(range(len(dims) - len(x.dims))))
        for axis in copied:
            x = op.Gather(x, np.zeros(result.dims[axis] or 0, np.int64), axis=axis)
        return [x]


def _is_multiplied(value: ir.Value) -> bool:
    """Return whether a multiplication uses a value, possibly after operators that move its elements."""
    pending, seen = [value], {value}
    while pending:
        for node in pending.pop().consumers():
            if node.op_type in _PRODUCTS and not node.domain:
                return True
            moved = [result for result in node.outputs if node.op_type in _MOVES and result not in seen]
            seen.update(moved)
            pending += moved
    return False
