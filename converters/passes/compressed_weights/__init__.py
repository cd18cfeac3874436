"""Compressed weights stay compressed: the operators that use them decompress them.

OpenVINO stores compressed weights as a constant followed by Convert, Subtract, Multiply, Reshape and Convert, or as a 16-bit
float followed by Convert.

- A MatMul becomes `onnx_specops.MatMulCompressed`, which decodes weights while multiplying, with a following bias and Gelu.
  In models that mostly multiply few rows, so does a MatMul by float32 weights: the operator reads memory faster.
- A Gather of rows (an embedding) gathers stored rows and decompresses only those.

The order and form of the nodes do not matter, as long as the chain consists of casts, one zero point, scales, a Reshape that
merges groups with their axis, and transpositions of matrices.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.options import Activations
from converters.passes.compressed_weights.blocks import blocks_of, of_blocks, padded, plain
from converters.passes.compressed_weights.codes import Codes, pack, table, unpack, view
from converters.passes.compressed_weights.comparing import decodes_to
from converters.passes.compressed_weights.finding import Weights, find_weights
from converters.passes.compressed_weights.following import with_bias, with_factor, with_function
from converters.passes.dequantization import FLOATS
from converters.passes.running import OperatorPass
from onnx_specops.building import Builder, Value, cast_unrounded, constant_value
from onnx_specops.graphs import all_nodes, producer_of
from onnx_specops.ops.mat_mul_compressed import LARGEST
from onnx_specops.replacing import replace_value
from onnx_specops.widening import HALVES

D = ir.DataType

HALVES_BYTES = 32 * 2**20
"""A model with fewer bytes of 16-bit floats keeps them in standard ONNX. float32 weights that fit into CPU caches are
faster, except for single rows.
"""

FLOATS_BYTES = 2**20
"""float32 matrices with fewer bytes stay in standard ONNX, because they fit into a core's cache."""


class KeepWeightsCompressed(OperatorPass):
    """Keep weights compressed; see the module's docstring.

    Args:
        activations: the activations of MatMuls, see the operator.
        fold: whether constants may be stored in the layout that is best for the kernel.
        halves: whether 16-bit floats count as compressed.
        floats: whether float32 weights count, too.
    """

    operators = frozenset(("Gather", "MatMul"))

    def __init__(
        self, activations: Activations = "float", *, fold: bool = True, halves: bool = True, floats: bool = False
    ) -> None:
        self.activations, self.fold, self.halves, self.floats = activations, fold, halves, floats
        self._views: dict[tuple[object, ...], ir.TensorProtocol] = {}
        self._keeps_halves = False

    def call(self, model: ir.Model) -> PassResult:
        root = Builder.of_existing(model.graph)
        self._keeps_halves = self.halves and _halves(model.graph) > HALVES_BYTES
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.domain or not isinstance(node.graph, ir.Graph) or node.op_type not in ("MatMul", "Gather"):
                continue
            op = Builder.before_node(node, root)
            result = self._product(op, node) if node.op_type == "MatMul" else self._rows(op, node)
            if result is not None:
                scaled = with_factor(op, node, result) if _is_compressed(result) else node
                biased = with_bias(op, scaled, result)
                last = with_function(biased, result)
                if replace_value(last.outputs[0], op.place(result)):
                    node.graph.remove({node, scaled, biased, last}, safe=True)
                    count += 1
        return PassResult(model, modified=count > 0)

    # -- MatMul -------------------------------------------------------------------------------------------------

    def _product(self, op: Builder, node: ir.Node) -> Value | None:
        left, right = node.inputs
        if left is None or right is None or left.dtype not in FLOATS:
            return None
        weights = _found(right) or (self._floats(right) if self.floats else None)
        if weights is not None and left.shape is not None and len(left.shape) > 0:
            return self._multiplied(op, left, weights)
        if (weights := _found(left)) is not None and right.shape is not None and len(right.shape) > 1:
            # The weights are on the left, so transpose both sides.
            other = replace(weights, swapped=not weights.swapped)
            swap = [*range(len(right.shape) - 2), len(right.shape) - 1, len(right.shape) - 2]
            product = self._multiplied(op, op.Transpose(right, perm=swap), other)
            if product is None or product.rank is None:
                return None
            return op.Transpose(product, perm=[*range(product.rank - 2), product.rank - 1, product.rank - 2])
        return None

    def _floats(self, value: ir.Value) -> Weights | None:
        """Return a large float32 matrix, as it is stored or transposed."""
        node, swapped = producer_of(value, "Transpose"), False
        if node is not None and (stored := node.inputs[0]) is not None:
            value, swapped = stored, True
        tensor = value.const_value
        if tensor is None or value.producer() is not None or value.is_graph_input() or tensor.dtype != D.FLOAT:
            return None
        shape = tuple(tensor.shape.numpy())
        if len(shape) != 2 or tensor.nbytes < FLOATS_BYTES or not (swapped or self.fold):
            return None
        codes = Codes(tensor, "no", shape, None, value.name or "weights")
        return Weights(codes, shape, matrices=shape, swapped=swapped)

    def _multiplied(self, op: Builder, a: ir.Value, weights: Weights) -> Value | None:
        codes, rows, columns = weights.codes, *weights.matrices[-2:]
        batch = weights.matrices[:-2]
        n, k = (rows, columns) if weights.swapped else (columns, rows)
        if codes.tensor.dtype in HALVES and not self._keeps_halves:
            return None
        blocks = blocks_of(weights)
        if blocks is None or max(n, k) > LARGEST or (batch and n * k * codes.bits % 8):
            return None
        block_size, dropped = blocks
        numbers: list[Value | None] = []
        for value in (weights.zero, weights.scale):
            if value is None:
                numbers.append(None)
            elif (matrix := of_blocks(op, value, weights, dropped)) is None:
                return None
            else:
                numbers.append(matrix)
        transposed = weights.swapped
        if not transposed and self.fold:
            codes, transposed = self._transposed(codes, (*batch, k, n)), True
            numbers = [None if x is None else _swapped(op, x) for x in numbers]
        shape = (*batch, n, k) if transposed else (*batch, k, n)
        wide = cast_unrounded(op, cast(Value, a), D.FLOAT)  # compute in float32, as OpenVINO does
        zero, scale = numbers
        product = op.specops.MatMulCompressed(
            wide,
            self._stored(codes, shape),
            scale,
            zero,
            None if codes.codebook is None else op.const(codes.codebook),
            N=n,
            K=k,
            block_size=block_size,
            packed=codes.packed,
            transB=int(transposed),
            activations=self.activations,
        )
        return cast_unrounded(op, product, a.dtype)

    def _stored(self, codes: Codes, shape: tuple[int, ...]) -> Value:
        """Return the codes as an initializer. If rows begin at bytes, the last dimension of packed codes counts bytes."""
        tensor, dtype = codes.tensor, codes.tensor.dtype
        if codes.packed != "no":
            dtype, bits = D.UINT8, shape[-1] * codes.bits
            if bits % 8 == 0:
                shape = (*shape[:-1], bits // 8)
            elif len(shape) == 2:
                shape = ((math.prod(shape) * codes.bits + 7) // 8,)
            else:
                shape = (*shape[:-2], 1, shape[-2] * bits // 8)
        elif codes.codebook is not None:
            dtype = D.UINT8
        key = (id(tensor), dtype, shape)
        if key not in self._views:
            self._views[key] = view(tensor, dtype, shape)
        return constant_value(self._views[key], name=codes.name)

    def _transposed(self, codes: Codes, shape: tuple[int, ...]) -> Codes:
        """Return the codes of the transposed matrices, computed when the model is saved."""
        key = (id(codes.tensor), "transposed", shape)
        bits = codes.bits
        dtype = codes.tensor.dtype if codes.packed == "no" else D.UINT8
        if key not in self._views:

            def compute(tensor: ir.TensorProtocol = codes.tensor) -> ir.TensorProtocol:
                if codes.packed == "no":
                    return ir.Tensor(np.ascontiguousarray(tensor.numpy().reshape(shape).swapaxes(-1, -2)), dtype=dtype)
                flat = unpack(np.frombuffer(tensor.tobytes(), np.uint8), bits)[: math.prod(shape)]
                return ir.Tensor(pack(flat.reshape(shape).swapaxes(-1, -2).reshape(-1), bits))

            size = math.prod(shape)
            dims = shape[:-2] + (shape[-1], shape[-2]) if codes.packed == "no" else ((size * bits + 7) // 8,)
            self._views[key] = ir.LazyTensor(compute, dtype=dtype, shape=ir.Shape(dims), cache=True, name=codes.name)
        return replace(codes, tensor=self._views[key], name=f"{codes.name}_transposed")

    # -- Gather -------------------------------------------------------------------------------------------------

    def _rows(self, op: Builder, node: ir.Node) -> Value | None:
        """Replace a Gather of decompressed rows by the decompression of gathered rows."""
        data, indices = node.inputs
        if data is None or indices is None or node.attributes.get_int("axis", 0) != 0:
            return None
        weights = _found(data)
        if weights is None or weights.swapped or len(weights.matrices) != 2 or weights.shape[0] != weights.matrices[0]:
            return None
        codes, rest = weights.codes, weights.shape[1:]
        rows, columns = weights.matrices
        if columns * codes.bits % 8:
            return None
        index = indices if isinstance(indices, Value) else None
        if index is None:
            return None
        stored = op.Gather(self._stored(codes, (rows, columns)), index, axis=0)
        if codes.packed == "no" and codes.codebook is None:
            values = op.Cast(stored, to=D.FLOAT)
        else:
            values = op.Gather(table(codes), op.Cast(stored, to=D.INT32))
        leading = op.Shape(index)
        values = op.Reshape(values, op.Concat(leading, list(rest), axis=0))
        for operator, value in (("Sub", weights.zero), ("Mul", weights.scale)):
            if value is None:
                continue
            wide = op.Cast(plain(value), to=D.FLOAT)
            dims = padded(value, len(weights.shape))
            if dims is None:
                return None
            if dims[0] == 1:
                values = op.node(operator, values, op.Reshape(wide, list(dims[1:])))
            else:
                values = op.node(operator, values, op.Gather(op.Reshape(wide, list(dims)), index, axis=0))
        if len(rest) > 1:
            values = op.Reshape(values, op.Concat(leading, [columns], axis=0))
        return cast_unrounded(op, values, node.outputs[0].dtype)


def _found(value: ir.Value) -> Weights | None:
    """Return the weights that decompress to ``value``, if decoding them gives its numbers."""
    weights = find_weights(value)
    return weights if weights is not None and decodes_to(value, weights) else None


def _is_compressed(product: Value) -> bool:
    """Return whether the weights of a MatMulCompressed are decoded."""
    node = product.producer()
    stored = None if node is None or node.op_type != "MatMulCompressed" else node.inputs[1]
    return stored is not None and stored.dtype != D.FLOAT


def _swapped(op: Builder, matrix: Value) -> Value:
    rank = matrix.rank or 0
    if rank < 2:
        return matrix
    return op.Transpose(matrix, perm=[*range(rank - 2), rank - 1, rank - 2])


def _halves(graph: ir.Graph) -> int:
    """Return the size in bytes of the 16-bit float matrices."""
    tensors = [value.const_value for value in graph.initializers.values()]
    return sum(t.nbytes for t in tensors if t is not None and t.dtype in HALVES and len(t.shape) > 1)
