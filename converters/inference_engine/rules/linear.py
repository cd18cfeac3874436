"""Matrix multiplications."""

from __future__ import annotations

import math

from converters.errors import Malformed
from converters.inference_engine.rule import layer, shaped
from converters.openvino.rule import Context
from onnx_specops.building import Builder, Value


@layer("FullyConnected", "InnerProduct")
def fully_connected(op: Builder, x: Value, weights: Value, biases: Value | None = None, *, out_size: int, context: Context):
    """FullyConnected: all dimensions of an image times the weights ``[out_size, ...]``; for rank 3 only the last
    one, if the file states it.
    """
    dims = weights.dims
    if dims is None or None in dims:
        raise Malformed("the dimensions of its weights are unknown")
    count = math.prod(dim for dim in dims if dim is not None)
    if out_size < 1 or count % out_size:
        raise Malformed(f"its {count} weights are not a multiple of out_size={out_size}")
    stated = context.output_dims()
    by_last = x.rank == 3 and stated is not None and len(stated) == 3
    if not by_last and x.rank != 2:
        x = op.Reshape(x, [0, -1]) if x.rank is None or x.rank > 1 else op.Reshape(x, [1, -1])
    kernel = shaped(op, weights, [out_size, count // out_size])
    if x.rank == 2 and not by_last:
        bias = None if biases is None else shaped(op, biases, [out_size])
        return op.Gemm(x, kernel, bias, transB=1) if bias is not None else op.Gemm(x, kernel, transB=1)
    product = op.MatMul(x, op.Transpose(kernel, perm=[1, 0]))
    return product if biases is None else op.Add(product, shaped(op, biases, [out_size]))


@layer("Gemm")
def gemm(
    op: Builder,
    a: Value,
    b: Value,
    c: Value | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
):
    """Gemm: ``alpha * a @ b + beta * c``, for each matrix of higher ranks. A factor of 0 gives 0, also for infinity."""
    a, b = (_transposed(op, x) if turned else x for x, turned in ((a, transpose_a), (b, transpose_b)))
    product = op.MatMul(a, b)
    if alpha == 0:
        product = op.Expand(op.const(0.0, product.dtype), op.Shape(product))
    elif alpha != 1:
        product = op.Mul(product, alpha)
    if c is None or beta == 0:
        return product
    return op.Add(product, c if beta == 1 else op.Mul(c, beta))


def _transposed(op: Builder, x: Value) -> Value:
    if x.rank is None or x.rank < 2:
        raise Malformed(f"its input of {x.rank} dimensions cannot be transposed")
    return op.Transpose(x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])
