"""Products of matrices."""

from __future__ import annotations

from converters.openvino.rule import rule
from converters.openvino.rules._precision import saturating_8_bits
from onnx_specops.building import Builder, Value


@rule("MatMul")
def mat_mul(op: Builder, a: Value, b: Value, *, transpose_a: bool = False, transpose_b: bool = False):
    """MatMul-1: ONNX's MatMul is the same once the operands are transposed; those of rank 1 never are.

    A vector times a transposed matrix is the matrix times the vector, without transposing anything. (ONNX Runtime
    1.31 fuses Transpose and MatMul into a wrong result when the other operand is a vector.) Of 8-bit integers the sums
    are bounded by their range, as in OpenVINO's CPU plugin.
    """
    return saturating_8_bits(op, lambda a, b: _product(op, a, b, transpose_a, transpose_b), a, b)


def _product(op: Builder, a: Value, b: Value, transpose_a: bool, transpose_b: bool) -> Value:
    inner = -2 if transpose_a and a.rank != 1 else -1, -1 if transpose_b or b.rank == 1 else -2
    if any(x.dims and x.dims[axis] == 0 for x, axis in zip((a, b), inner, strict=True)):
        # ONNX Runtime computes only the first matrix of such products: a zero makes them sums of something.
        a, b = (op.Pad(x, [0, 1], None, [axis]) for x, axis in zip((a, b), inner, strict=True))
    if (transpose_a and b.rank == 1 and a.rank != 1) or (transpose_b and a.rank == 1 and b.rank != 1):
        return op.MatMul(b, a)
    fusible = a.rank is not None and b.rank is not None
    return op.MatMul(_transposed(op, a, transpose_a, fusible), _transposed(op, b, transpose_b, fusible))


def _transposed(op: Builder, x: Value, transpose: bool, plain: bool) -> Value:
    """``x`` with its last two dimensions swapped where it has them; by a ``plain`` Transpose or one that cannot be fused."""
    if not transpose or x.rank == 1:
        return x
    if x.rank is not None and plain:
        return op.Transpose(x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])

    def swap(op: Builder) -> Value:
        shape = op.Shape(x)
        rows, columns = op.Shape(x, start=-2, end=-1), op.Shape(x, start=-1)
        matrices = op.Reshape(x, op.Concat([-1], rows, columns, axis=0))
        return op.Reshape(
            op.Transpose(matrices, perm=[0, 2, 1]), op.Concat(op.Slice(shape, [0], [-2]), columns, rows, axis=0)
        )

    return op.if_(op.Equal(op.Size(op.Shape(x)), 1), lambda op: x, swap)
