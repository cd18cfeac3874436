"""MatMul with vectors, empty batches and transposed matrices.

ONNX Runtime (1.31):

- fuses a Transpose with the MatMul that follows it. The result is wrong if the other operand is a vector, and the node
  fails if the batch of its matrices is empty at run time and the other operand has one matrix;
- rejects a vector times an empty batch, and does not broadcast a dimension of 1 to a dimension of 0;
- computes only the first matrix of a batch without elements to sum over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import origin
from onnx_specops.padding import pad


class MatMulOfVectorsAndEmptyMatrices(KernelWorkaround):
    """Rewrite MatMul to operands with equal batches if one is empty, with matrices instead of vectors, and with elements to
    sum over.
    """

    operators = frozenset(("MatMul",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = (cast(Value, value) for value in node.inputs)
        inner = -1, -1 if b.rank == 1 else -2
        padded = any(x.dims and x.dims[axis] == 0 for x, axis in zip((a, b), inner, strict=True))
        sources = [_swapped(x, node) for x in (a, b)]
        left = sources[0] if b.rank is None or _may_have_no_matrices(a, b) else None
        right = sources[1] if a.rank is None else None
        if not (padded or left is not None or right is not None or _is_special(a, b)):
            return None
        if padded:
            a, b = (pad(op, x, [axis], [0], [1]) for x, axis in zip((a, b), inner, strict=True))
        elif left is not None:
            a = _transposed(op, left)
        elif right is not None:
            b = _transposed(op, right)
        return [_multiplied(op, a, b)]


def _is_special(a: Value, b: Value) -> bool:
    """Return whether `_multiplied` emits more than a MatMul."""
    if b.rank is None:
        return (node := a.producer()) is not None and not node.domain and node.op_type == "Transpose"
    return (b.rank == 1 and a.rank != 1) or _has_no_matrices(a, b)


def _has_no_matrices(a: Value, b: Value) -> bool:
    return a.dims is not None and b.dims is not None and 0 in [*a.dims[:-2], *b.dims[:-2]]


def _may_have_no_matrices(a: Value, b: Value) -> bool:
    """Return whether the batch of ``a`` may be empty at run time while ``b`` has one matrix."""
    if a.dims is None or b.dims is None:
        return False
    of_b = [1] * len(a.dims) + b.dims[:-2]
    return any(one is None and other == 1 for one, other in zip(a.dims[-3::-1], reversed(of_b), strict=False))


def _swapped(x: Value, user: ir.Node) -> Value | None:
    """Return the value whose last two dimensions a Transpose of the same layer swaps to give ``x``.

    Transposes of other layers stay. The fusion saves a pass over their data.
    """
    node = x.producer()
    if node is None or node.domain or node.op_type != "Transpose" or x.rank is None or origin(node) is not origin(user):
        return None
    perm = list(node.attributes.get_ints("perm", ())) or list(range(x.rank))[::-1]
    return cast(Value, node.inputs[0]) if perm == [*range(x.rank - 2), x.rank - 1, x.rank - 2] else None


def _transposed(op: Builder, x: Value) -> Value:
    """Swap the last two dimensions of ``x`` with nodes that ONNX Runtime does not fuse."""
    assert x.rank is not None
    return cast(Value, op.Squeeze(op.Transpose(op.Unsqueeze(x, [0]), perm=[*range(x.rank - 1), x.rank, x.rank - 1]), [0]))


def _multiplied(op: Builder, a: Value, b: Value) -> Value:
    if b.rank == 1 and a.rank != 1:
        return cast(Value, op.Squeeze(_multiplied(op, a, op.Unsqueeze(b, [1])), [-1]))
    if b.rank is None and _is_special(a, b):
        return cast(
            Value,
            op.if_(
                op.Equal(op.Size(op.Shape(b)), 1),
                lambda op: op.Squeeze(op.MatMul(a, op.Unsqueeze(b, [1])), [-1]),
                lambda op: op.MatMul(a, b),
            ),
        )
    if not _has_no_matrices(a, b):
        return cast(Value, op.MatMul(a, b))
    if a.rank == 1:
        return cast(Value, op.Squeeze(_multiplied(op, op.Unsqueeze(a, [0]), b), [-2]))
    a, b = (op.Expand(x, op.Concat(op.Shape(other, end=-2), [1, 1], axis=0)) for x, other in ((a, b), (b, a)))
    return cast(Value, op.MatMul(a, b))
