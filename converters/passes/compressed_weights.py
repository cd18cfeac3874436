"""Weights that a file holds in few bits stay so: what decompresses them as a whole becomes part of what uses them.

OpenVINO writes compressed weights as a constant behind which Convert, Subtract, Multiply, Reshape and Convert stand, or as a
16-bit float behind a Convert. Of those

- a MatMul becomes `onnx_specops.MatMulCompressed`, which decodes them as it multiplies, with the bias and Gelu behind it;
- a Gather of rows (an embedding) gathers what is stored, and what was done to all rows is done to those.

How the chain is spelled does not matter, as long as it says that: casts, one zero point, scales, the merging of groups with
the axis that they are groups of, transpositions of matrices.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.folding import FOLDED_ELEMENTS
from onnx_specops.graphs import all_values
from onnx_specops.mapped import same_bytes
from onnx_specops.ops.mat_mul_compressed import LARGEST
from onnx_specops.replacing import take_place
from onnx_specops.widening import HALVES

D = ir.DataType

Activations = Literal["float", "int8"]
"""What activations are multiplied in where weights are compressed."""

PACKED = "packed"
"""The key in a value's ``meta`` under which the `Codes` stand that its elements were looked up from."""

HALVES_BYTES = 32 * 2**20
"""A model with fewer bytes of 16-bit floats keeps them in standard ONNX: what fits into caches as float32 is multiplied
quicker so, but for single rows."""

_WIDTH = {"uint2": 2, "uint4": 4, "int4": 4}
_FLOATS = (D.FLOAT, D.FLOAT16, D.BFLOAT16)
# What casts of weights, zero points and scales give: all of these hold the values of 8 bits exactly.
_CAST_TO = (*_FLOATS, D.DOUBLE)


@dataclass(frozen=True, eq=False)
class Codes:
    """A constant as it is stored.

    Attributes:
        tensor: its bytes, or its elements where they have a type of their own.
        packed: the type of the elements that share a byte; ``"no"`` where none do.
        shape: the elements' shape.
        codebook: the float32 numbers that the elements stand for where they are not numbers themselves.
        name: its name in the graph.
    """

    tensor: ir.TensorProtocol
    packed: str
    shape: tuple[int, ...]
    codebook: np.ndarray | None
    name: str

    @property
    def bits(self) -> int:
        """Of an element."""
        return _WIDTH[self.packed] if self.packed != "no" else 8 * int(self.tensor.dtype.itemsize)


@dataclass(frozen=True)
class Weights:
    """Matrices ``(codes - zero) * scale``.

    Attributes:
        codes: what is stored.
        shape: in which it is decompressed.
        zero, scale: they are broadcast against that; None where there are none.
        matrices: the shape as it is used, ``[..., rows, columns]``.
        swapped: whether the last two dimensions of those are swapped after that.
        cast: the type that the codes' numbers are cast to first.
    """

    codes: Codes
    shape: tuple[int, ...]
    zero: ir.Value | None = None
    scale: ir.Value | None = None
    matrices: tuple[int, ...] = ()
    swapped: bool = False
    cast: ir.DataType | None = None


class KeepWeightsCompressed(InPlacePass):
    """See the module's docstring.

    Args:
        activations: of products, see the operator.
        fold: whether constants may be laid out anew, as its kernel likes them best.
    """

    def __init__(self, activations: Activations = "float", *, fold: bool = True) -> None:
        self.activations, self.fold = activations, fold
        self._views: dict[tuple[object, ...], ir.TensorProtocol] = {}
        self._keeps_halves = False

    def call(self, model: ir.Model) -> PassResult:
        root = Builder(model.graph)
        root.reserve(value.name for value in all_values(model.graph))
        self._keeps_halves = _halves(model.graph) > HALVES_BYTES
        count = 0
        for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
            if node.domain or not isinstance(node.graph, ir.Graph) or node.op_type not in ("MatMul", "Gather"):
                continue
            op = Builder(node.graph, root=root, before=node)
            op.scope = node.name or node.op_type
            result = self._product(op, node) if node.op_type == "MatMul" else self._rows(op, node)
            if result is not None:
                scaled = _with_factor(op, node, result)
                biased = _with_bias(op, scaled, result)
                last = _with_function(biased, result)
                take_place(last.outputs[0], op.place(result))
                node.graph.remove({node, scaled, biased, last}, safe=True)
                count += 1
        return PassResult(model, modified=count > 0)

    # -- MatMul -------------------------------------------------------------------------------------------------

    def _product(self, op: Builder, node: ir.Node) -> Value | None:
        left, right = node.inputs
        if left is None or right is None or left.dtype not in _FLOATS:
            return None
        if (weights := find_weights(right)) is not None and left.shape is not None and len(left.shape) > 0:
            return self._multiplied(op, left, weights)
        if (weights := find_weights(left)) is not None and right.shape is not None and len(right.shape) > 1:
            # The weights from the left: both sides transposed.
            other = replace(weights, swapped=not weights.swapped)
            swap = [*range(len(right.shape) - 2), len(right.shape) - 1, len(right.shape) - 2]
            product = self._multiplied(op, op.Transpose(right, perm=swap), other)
            if product is None or product.rank is None:
                return None
            return op.Transpose(product, perm=[*range(product.rank - 2), product.rank - 1, product.rank - 2])
        return None

    def _multiplied(self, op: Builder, a: ir.Value, weights: Weights) -> Value | None:
        codes, rows, columns = weights.codes, *weights.matrices[-2:]
        batch = weights.matrices[:-2]
        n, k = (rows, columns) if weights.swapped else (columns, rows)
        if codes.tensor.dtype in HALVES and not self._keeps_halves:
            return None
        blocks = _blocks(weights)
        if blocks is None or max(n, k) > LARGEST or (batch and n * k * codes.bits % 8):
            return None
        block_size, dropped = blocks
        numbers: list[Value | None] = []
        for value in (weights.zero, weights.scale):
            if value is None:
                numbers.append(None)
            elif (matrix := _of_blocks(op, value, weights, dropped)) is None:
                return None
            else:
                numbers.append(matrix)
        transposed = weights.swapped
        if not transposed and self.fold:
            codes, transposed = self._transposed(codes, (*batch, k, n)), True
            numbers = [None if x is None else _swapped(op, x) for x in numbers]
        shape = (*batch, n, k) if transposed else (*batch, k, n)
        wide = a
        if a.dtype != D.FLOAT:  # one computation in float32, as OpenVINO's
            wide = op.Cast(a, to=D.FLOAT)
            wide.unrounded = True
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
        if product.dtype != a.dtype:
            product = op.Cast(product, to=a.dtype)
            product.unrounded = True
        return product

    def _stored(self, codes: Codes, shape: tuple[int, ...]) -> Value:
        """The codes as an initializer; of packed ones the last dimension counts bytes where rows begin with one."""
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
            self._views[key] = _view(tensor, dtype, shape)
        return constant_value(self._views[key], name=codes.name)

    def _transposed(self, codes: Codes, shape: tuple[int, ...]) -> Codes:
        """The codes of matrices with their rows and columns swapped, computed when the model is saved."""
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
            self._views[key] = ir.LazyTensor(functools.cache(compute), dtype=dtype, shape=ir.Shape(dims), name=codes.name)
        return replace(codes, tensor=self._views[key], name=f"{codes.name}_transposed")

    # -- Gather -------------------------------------------------------------------------------------------------

    def _rows(self, op: Builder, node: ir.Node) -> Value | None:
        """What a Gather fetches of decompressed rows: the stored rows, decompressed."""
        data, indices = node.inputs
        if data is None or indices is None or node.attributes.get_int("axis", 0) != 0:
            return None
        weights = find_weights(data)
        if weights is None or weights.swapped or len(weights.matrices) != 2 or weights.shape[0] != weights.matrices[0]:
            return None
        codes, rest = weights.codes, weights.shape[1:]
        if codes.codebook is not None and weights.cast == D.FLOAT16:  # (OpenVINO's MatMul takes nf4 unrounded)
            codes = replace(codes, codebook=codes.codebook.astype(np.float16).astype(np.float32))
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
            values = op.Gather(_table(codes), op.Cast(stored, to=D.INT32))
        leading = op.Shape(index)
        values = op.Reshape(values, op.Concat(leading, list(rest), axis=0))
        for operator, value in (("Sub", weights.zero), ("Mul", weights.scale)):
            if value is None:
                continue
            wide = op.Cast(_plain(value), to=D.FLOAT)
            dims = _padded(value, len(weights.shape))
            if dims is None:
                return None
            if dims[0] == 1:
                values = op.node(operator, values, op.Reshape(wide, list(dims[1:])))
            else:
                values = op.node(operator, values, op.Gather(op.Reshape(wide, list(dims)), index, axis=0))
        if len(rest) > 1:
            values = op.Reshape(values, op.Concat(leading, [columns], axis=0))
        dtype = node.outputs[0].dtype
        if dtype != D.FLOAT:
            values = op.Cast(values, to=dtype)
            values.unrounded = True
        return values


def _with_factor(op: Builder, node: ir.Node, product: Value) -> ir.Node:
    """Give the product that takes a node's place the number that it is multiplied by, as the scale of weights without one;
    returns the last node that it replaces."""
    multiplied = product.producer()
    if multiplied is None or multiplied.op_type != "MatMulCompressed" or multiplied.inputs[2] is not None:
        return node
    user, other = _joined(node, "Mul")
    if user is None or other is None or other.const_value is None or other.const_value.size != 1:
        return node
    multiplied.replace_input_with(2, op.place(op.const(other.const_value.numpy().reshape(1, 1))))
    return user


def _with_bias(op: Builder, node: ir.Node, product: Value) -> ir.Node:
    """Give the product that takes a node's place the vector that is added to it; returns the last node that it replaces."""
    multiplied = product.producer()
    if multiplied is None or multiplied.op_type != "MatMulCompressed":
        return node
    user, other = _joined(node, "Add")
    if user is None or other is None or other.const_value is None or (shape := _static(other)) is None:
        return node
    n = multiplied.attributes.get_int("N")
    if shape[-1:] != (n,) or math.prod(shape) != n:
        return node
    multiplied.resize_inputs(6)
    multiplied.replace_input_with(5, other if len(shape) == 1 else op.place(op.const(other.const_value.numpy().reshape(n))))
    return user


def _joined(node: ir.Node, op_type: str) -> tuple[ir.Node | None, ir.Value | None]:
    """The only user of a node if it joins what the node gives with another float32 value of no more dimensions; and that."""
    value = node.outputs[0]
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output():
        return None, None
    user, index = uses[0]
    if (user.op_type, user.domain) != (op_type, "") or user.graph is not node.graph:
        return None, None
    other = user.inputs[1 - index]
    shape = None if other is None else _static(other)
    if other is None or shape is None or other.dtype != D.FLOAT or value.shape is None or len(shape) > len(value.shape):
        return None, None
    return user, other


def _with_function(node: ir.Node, product: Value) -> ir.Node:
    """Give the product that takes a node's place the function that follows it; returns the last node that it replaces."""
    value, multiplied = node.outputs[0], product.producer()
    uses = list(value.uses())
    if multiplied is None or multiplied.op_type != "MatMulCompressed" or len(uses) != 1 or value.is_graph_output():
        return node
    user = uses[0][0]
    if (user.op_type, user.domain) != ("Gelu", "") or user.graph is not node.graph or value.dtype != D.FLOAT:
        return node
    if user.attributes.get_string("approximate", "none") != "none":
        return node
    multiplied.attributes.add(ir.AttrString("function", "gelu"))
    return user


# -- what is stored -----------------------------------------------------------------------------------------------------


def find_weights(value: ir.Value) -> Weights | None:
    """What decompresses to ``value``, if that is all that the graph does to get it."""
    matrices, swapped = _static(value), False
    if matrices is None or len(matrices) < 2:
        return None
    current = value
    while (node := _standard(current)) is not None:
        if node.op_type == "Cast" and current.dtype in _CAST_TO and _source(node).dtype in _CAST_TO:
            pass
        elif node.op_type == "Transpose" and _swaps(node, len(matrices)):
            swapped = not swapped
            matrices = (*matrices[:-2], matrices[-1], matrices[-2])
        else:
            break
        current = _source(node)
    if node is not None and node.op_type == "Reshape":
        current = _source(node)
    shape = _static(current)
    if shape is None:
        return None
    found = Weights(Codes(ir.Tensor(np.zeros(0, np.uint8)), "no", (), None, ""), shape, None, None, matrices, swapped)
    return _decompressed(current, found)


def _decompressed(current: ir.Value, found: Weights) -> Weights | None:
    """Follows the arithmetic to what is stored."""
    while (codes := _codes(current)) is None:
        node = _standard(current)
        if node is None:
            return None
        if node.op_type in ("Mul", "Sub") and found.zero is None:
            a, b = node.inputs
            if a is None or b is None:
                return None
            if node.op_type == "Mul" and found.scale is None:
                whole, scale = (a, b) if _static(a) == found.shape and not _is_small(a) else (b, a)
                found = replace(found, scale=scale)
            elif node.op_type == "Sub":
                whole = a
                found = replace(found, zero=b)
            else:
                return None
            current = whole
        elif node.op_type == "Cast" and current.dtype in _CAST_TO:
            found = replace(found, cast=current.dtype)
            current = _source(node)
        elif node.op_type == "Reshape":
            current = _source(node)
        else:
            return None
        if node.op_type != "Reshape" and _static(current) != found.shape:
            return None
    numeric = codes.codebook is not None or codes.packed != "no" or codes.tensor.dtype in (
        D.UINT8, D.INT8, D.FLOAT16, D.BFLOAT16,
    )  # fmt: skip
    return replace(found, codes=codes) if numeric and math.prod(codes.shape) == math.prod(found.shape) else None


def _codes(value: ir.Value) -> Codes | None:
    """A large constant of few bits, or what was looked up from one."""
    if isinstance(codes := value.meta.get(PACKED), Codes):
        return codes
    tensor = value.const_value
    if tensor is None:
        return _looked_up(value)
    if value.producer() is not None or value.is_graph_input() or tensor.size <= FOLDED_ELEMENTS:
        return None
    shape, name = tuple(tensor.shape.numpy()), value.name or "weights"
    if tensor.dtype in (D.UINT8, D.INT8, D.FLOAT16, D.BFLOAT16):
        return Codes(tensor, "no", shape, None, name)
    if tensor.dtype in (D.UINT4, D.INT4):
        return Codes(tensor, tensor.dtype.name.lower(), shape, None, name)
    if tensor.dtype in (D.FLOAT8E4M3FN, D.FLOAT8E5M2):
        numbers = np.arange(256, dtype=np.uint8).view(tensor.dtype.numpy()).astype(np.float32)
        return Codes(tensor, "no", shape, numbers, name)
    return None


def _looked_up(value: ir.Value) -> Codes | None:
    """The codes that a codebook is indexed by: a Gather, and around it what minds indices out of range, which none is."""
    node = _standard(value)
    guard = None
    if node is not None and node.op_type == "Where":
        guard, inner = node.inputs[0], node.inputs[1]
        node = None if inner is None else _standard(inner)
    if node is None or node.op_type != "Gather" or node.attributes.get_int("axis", 0) != 0:
        return None
    book, index = node.inputs
    numbers = None if book is None else _numbers(book)
    if numbers is None or numbers.ndim != 1 or index is None:
        return None
    if (chosen := _standard(index)) is not None and chosen.op_type == "Where":
        if chosen.inputs[0] is not guard or chosen.inputs[1] is None:
            return None
        index = chosen.inputs[1]
    elif guard is not None:
        return None
    if guard is not None and not _within(guard, index, len(numbers)):
        return None
    while (cast := _standard(index)) is not None and cast.op_type in ("Cast", "Reshape"):
        index = _source(cast)
    codes = _codes(index)
    if codes is None or codes.codebook is not None or codes.packed == "int4" or codes.tensor.dtype == D.INT8:
        return None
    entries = 1 << codes.bits
    if codes.bits > 8 or len(numbers) != entries:
        return None
    return replace(codes, codebook=numbers.astype(np.float32))


def _within(guard: ir.Value, index: ir.Value, size: int) -> bool:
    """Whether ``guard`` says ``0 <= index < size``, with constants, and nothing more."""
    node = _standard(guard)
    if node is None or node.op_type != "And":
        return False
    lows, highs = 0, 0
    for side in node.inputs:
        compared = None if side is None else _standard(side)
        if compared is None or compared.inputs[0] is not index or (bound := compared.inputs[1]) is None:
            return False
        if bound.const_value is None or bound.const_value.size != 1:
            return False
        number = int(bound.const_value.numpy().item())
        lows += compared.op_type == "GreaterOrEqual" and number <= 0
        highs += compared.op_type == "Less" and number >= size
    return lows == 1 and highs == 1


def _numbers(value: ir.Value) -> np.ndarray | None:
    """A small constant, through casts between floats."""
    while (node := _standard(value)) is not None and node.op_type == "Cast":
        value = _source(node)
    tensor = value.const_value
    if tensor is None or value.producer() is not None or tensor.size > 256:
        return None
    return tensor.numpy().astype(np.float32)


# -- shapes -------------------------------------------------------------------------------------------------------------


def _blocks(weights: Weights) -> tuple[int, int | None] | None:
    """How many elements along the depth of a product share scales and zero points, and which axis they lie along.

    The axis is None where decompressed and used shape are the same.
    """
    rows, columns = weights.matrices[-2:]
    batch = weights.matrices[:-2]
    axis, depth = (-1, columns) if weights.swapped else (-2, rows)
    if weights.shape == weights.matrices:
        across = {_padded(value, len(weights.shape)) for value in (weights.zero, weights.scale) if value is not None}
        if None in across:
            return None
        along = {dims[axis] for dims in across if dims is not None} - {1}
        return (1 if along and depth > 1 else max(depth, 1)), None
    if len(weights.shape) != len(weights.matrices) + 1 or weights.shape[: len(batch)] != batch:
        return None
    first, second, third = weights.shape[-3:]
    if weights.swapped and (first, second * third) == (rows, columns):
        return max(third, 1), -1
    if not weights.swapped and (first * second, third) == (rows, columns):
        return max(second, 1), -2
    return None


def _of_blocks(op: Builder, value: ir.Value, weights: Weights, dropped: int | None) -> Value | None:
    """Scales or zero points without the dimension along which a block lies, which is 1."""
    dims = _padded(value, len(weights.shape))
    if dims is None:
        return None
    if dropped is not None:
        if dims[dropped] != 1:
            return None
        dims = dims[:-1] if dropped == -1 else (*dims[:-2], dims[-1])
    batch = weights.matrices[:-2]
    if dims[:-2] != batch:
        if math.prod(dims[:-2]) != 1:
            return None
        dims = dims[-2:]
    plain = _plain(value)
    if plain.dtype in (D.UINT8, D.INT8) and not _fits(plain, weights.codes):
        plain = op.Cast(plain, to=D.FLOAT)
    return plain if _static(plain) == dims else op.Reshape(plain, list(dims))


def _fits(zero: ir.Value, codes: Codes) -> bool:
    """Whether integer zero points are numbers that the elements may have, too."""
    if codes.packed == "no":
        return True
    if zero.const_value is None:
        return False
    numbers, half = zero.const_value.numpy().astype(np.int64), 1 << (codes.bits - 1)
    least, most = (-half, half - 1) if codes.packed == "int4" else (0, 2 * half - 1)
    return not numbers.size or bool(least <= numbers.min() and numbers.max() <= most)


def _plain(value: ir.Value) -> Value:
    """Scales or zero points in the type that they are stored in, which the product takes as it is."""
    while (node := _standard(value)) is not None and node.op_type == "Cast" and value.dtype in _CAST_TO:
        source = _source(node)
        if source.dtype not in (D.UINT8, D.INT8, D.UINT4, D.INT4, D.FLOAT16, D.BFLOAT16, D.FLOAT):
            break
        if source.dtype == D.FLOAT or PACKED in source.meta:
            break
        value = source
    if value.dtype in (D.UINT4, D.INT4):
        assert value.const_value is not None
        wide = D.UINT8 if value.dtype == D.UINT4 else D.INT8
        return constant_value(value.const_value.numpy().astype(wide.numpy()), name=value.name)
    assert isinstance(value, Value)
    return value


def _padded(value: ir.Value, rank: int) -> tuple[int, ...] | None:
    dims = _static(value)
    return None if dims is None or len(dims) > rank else (1,) * (rank - len(dims)) + dims


def _swapped(op: Builder, matrix: Value) -> Value:
    rank = matrix.rank or 0
    if rank < 2:
        return matrix
    return op.Transpose(matrix, perm=[*range(rank - 2), rank - 1, rank - 2])


def _static(value: ir.Value) -> tuple[int, ...] | None:
    """The dimensions where all are known."""
    if value.shape is None:
        return None
    dims = tuple(dim for dim in value.shape if isinstance(dim, int))
    return dims if len(dims) == len(value.shape) else None


def _swaps(node: ir.Node, rank: int) -> bool:
    perm = list(node.attributes.get_ints("perm", ())) or list(range(rank))[::-1]
    return rank >= 2 and perm == [*range(rank - 2), rank - 1, rank - 2]


def _is_small(value: ir.Value) -> bool:
    return value.const_value is not None


def _standard(value: ir.Value) -> ir.Node | None:
    node = value.producer()
    return None if node is None or node.domain else node


def _source(node: ir.Node) -> ir.Value:
    assert node.inputs[0] is not None
    return node.inputs[0]


def _halves(graph: ir.Graph) -> int:
    """The bytes of the matrices of 16-bit floats."""
    tensors = [value.const_value for value in graph.initializers.values()]
    return sum(t.nbytes for t in tensors if t is not None and t.dtype in HALVES and len(t.shape) > 1)


# -- bytes --------------------------------------------------------------------------------------------------------------


def _view(tensor: ir.TensorProtocol, dtype: ir.DataType, shape: tuple[int, ...]) -> ir.TensorProtocol:
    """The same bytes in another type and shape."""
    dims = ir.Shape(shape)
    if isinstance(tensor, ir.ExternalTensor):
        return same_bytes(tensor, dtype, shape)

    def compute() -> ir.TensorProtocol:
        return ir.Tensor(np.frombuffer(tensor.tobytes(), dtype.numpy()).reshape(shape), dtype=dtype)

    return ir.LazyTensor(functools.cache(compute), dtype=dtype, shape=dims, name=tensor.name)


def _table(codes: Codes) -> Value:
    """The numbers that each byte holds."""
    width = codes.bits
    every = unpack(np.arange(256, dtype=np.uint8), width).reshape(256, -1)
    if codes.codebook is not None:
        return constant_value(codes.codebook[every])
    signed = np.where(every >= 8, every.astype(np.int16) - 16, every) if codes.packed == "int4" else every
    return constant_value(signed.astype(np.float32))


def unpack(data: np.ndarray, bits: int) -> np.ndarray:
    """The codes in bytes, the lowest bits first, flat."""
    return (data.reshape(-1, 1) >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)).reshape(-1)


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes (uint8, flat) in bytes, the first one lowest, zeros in what the last byte has left."""
    whole = np.concatenate([codes, np.zeros(-len(codes) % (8 // bits), np.uint8)]).reshape(-1, 8 // bits)
    return np.bitwise_or.reduce(whole << np.arange(0, 8, bits, dtype=np.uint8), axis=1).astype(np.uint8)
