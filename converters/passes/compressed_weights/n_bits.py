"""Compressed weights as ONNX Runtime's MatMulNBits, for devices on which the domain has no kernels."""

from __future__ import annotations

import functools
import math

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.compressed_weights.codes import view
from converters.passes.dequantization import source, standard
from converters.passes.running import OperatorPass
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes, constant_array
from onnx_specops.n_bits import LEAST_BLOCK, is_possible, multiply
from onnx_specops.replacing import replace_value

D = ir.DataType

_LARGEST_BLOCK = 128
"""The largest block that ONNX Runtime's CUDA kernels multiply without decompressing the matrix first."""


class ConvertToMatMulNBits(OperatorPass):
    """Replace MatMulCompressed by MatMulNBits where it is equivalent.

    The weights are one constant matrix of 4 or 8 bits, ``[N, K]``, without a codebook. Each scale belongs to a multiple of
    16 elements along ``K``. The zero points are constants in the range of the weights. Activations are floats.
    `is_possible` states the conditions that the operator's body shares.
    """

    operators = frozenset(("MatMulCompressed",))
    domain = DOMAIN

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if (node.op_type, node.domain) != ("MatMulCompressed", DOMAIN) or not isinstance(node.graph, ir.Graph):
                continue
            root = root or Builder.of_existing(model.graph)
            result = _converted(Builder.before_node(node, root), node)
            if result is not None and replace_value(node.outputs[0], result):
                node.graph.remove(node, safe=True)
                count += 1
        return PassResult(model, modified=count > 0)


def _converted(op: Builder, node: ir.Node) -> Value | None:
    a, codes, scales, zero_points, codebook, bias = (*node.inputs, *[None] * 6)[:6]
    n, k, size = (node.attributes.get_int(name) for name in ("N", "K", "block_size"))
    packed = node.attributes.get_string("packed", "no")
    if codebook is not None or not node.attributes.get_int("transB", 1) or not isinstance(a, Value):
        return None
    if node.attributes.get_string("activations", "float") != "float" or not isinstance(codes, Value):
        return None
    tensor = None if codes.is_graph_input() else codes.const_value
    size = min(size or k, k)
    if tensor is None or not is_possible(codes, zero_points, N=n, K=k, block_size=size):
        return None
    bits = 4 if packed in ("uint4", "int4") else 8
    if (packed == "no" and tensor.dtype not in (D.UINT8, D.INT8)) or packed == "uint2":
        return None
    block = math.gcd(size, _LARGEST_BLOCK)
    if tuple(tensor.shape.numpy()) != (n, k * bits // 8) or block < LEAST_BLOCK:
        return None
    signed = packed == "int4" or tensor.dtype == D.INT8
    offset = 1 << (bits - 1) if signed else 0
    if zero_points is not None and not _is_in_range(zero_points, offset, bits):
        return None
    parts = [None if part is None else _spread(op, part, k // size, size // block) for part in (scales, zero_points)]
    product = multiply(
        op, a, _unsigned(tensor, bits, codes.name) if signed else codes, *parts,
        N=n, K=k, block_size=block, bits=bits, offset=offset,
    )  # fmt: skip
    if bias is not None:
        product = op.Add(product, bias)
    if node.attributes.get_string("function", "none") == "gelu":
        product = op.Gelu(product)
    return op.place(op.Cast(product, to=node.outputs[0].dtype))


def _is_in_range(zero_points: ir.Value, offset: int, bits: int) -> bool:
    """Return whether zero points are constants that unsigned integers represent after the addition of the offset."""
    while (node := standard(zero_points)) is not None and node.op_type in ("Reshape", "Transpose"):  # large ones
        zero_points = source(node)
    array = constant_array(zero_points)
    return array is not None and bool(((array.astype(np.int32) + offset) >> bits == 0).all())


def _spread(op: Builder, numbers: ir.Value, blocks: int, times: int) -> Value:
    """Repeat the numbers of blocks for each of their smaller blocks."""
    assert isinstance(numbers, Value)
    if times == 1 or not numbers.dims or numbers.dims[-1] in (1, None):
        return numbers
    rows = op.Expand(op.Reshape(numbers, [-1, blocks, 1]), [1, 1, times])
    return op.Reshape(rows, [-1, blocks * times])


def _unsigned(tensor: ir.TensorProtocol, bits: int, name: str | None) -> Value:
    """Return signed integers plus half of their range, computed when the model is saved."""
    signs = np.uint8(0x80 if bits == 8 else 0x88)

    def compute() -> ir.TensorProtocol:
        return ir.Tensor(view(tensor, D.UINT8, shape).numpy() ^ signs)

    shape = tuple(tensor.shape.numpy())
    unsigned = ir.LazyTensor(functools.cache(compute), dtype=D.UINT8, shape=ir.Shape(shape), name=name)
    return constant_value(unsigned, name=f"{name}_unsigned")
