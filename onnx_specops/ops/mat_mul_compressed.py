"""MatMulCompressed: a matrix multiplication with weights as they are stored, which are decoded as they are used."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

from onnx_specops import n_bits
from onnx_specops.attributes import Limits
from onnx_specops.domain import operator
from onnx_specops.padding import pad

BLOCK = 32
"""The number of elements that share a scale when activations are quantized."""

_LEAST = np.float32(3.75e-37)
"""127 divided by a smaller number overflows. Blocks of such elements are rounded to zeros."""

LARGEST = 1 << 24
"""The maximum number of rows and columns of a matrix."""

_BITS = {"uint2": 2, "uint4": 4, "int4": 4}


@operator(
    inputs={
        "A": "T",
        "B": "T_B",
        "scales": "T_S",
        "zero_points": "T_Z",
        "codebook": "tensor(float)",
        "bias": "tensor(float)",
    },
    outputs={"Y": "T"},
    types={
        "T": ("float", "float16", "bfloat16"),
        "T_B": ("uint8", "int8", "float16", "bfloat16", "float"),
        "T_S": ("float", "float16", "bfloat16"),
        "T_Z": ("uint8", "int8", "float", "float16", "bfloat16"),
    },
)
def MatMulCompressed(
    A,
    B,
    scales=None,
    zero_points=None,
    codebook=None,
    bias=None,
    *,
    N: Annotated[int, Limits(0, LARGEST)],
    K: Annotated[int, Limits(0, LARGEST)],
    block_size: Annotated[int, Limits(1, LARGEST)],
    packed: Literal["no", "uint2", "uint4", "int4"] = "no",
    transB: Annotated[int, Limits(0, 1)] = 1,
    activations: Literal["float", "int8"] = "float",
    function: Literal["none", "gelu"] = "none",
):
    """Multiplies by compressed matrices: ``function(A @ W + bias)``, with ``W = (B - zero_points) * scales``.

    The weights are decompressed as they are used. Weights in float32 are used as they are stored. Each block of
    ``block_size`` elements along ``K`` has a scale and a zero point. The last block may be shorter. All sums are computed in
    float32.

    Inputs:
        A: ``[..., M, K]`` or ``[K]``. Its batch dimensions and those of ``B`` broadcast against each other.
        B: ``[..., N, K]``, or ``[..., K, N]`` with ``transB=0``. ``packed`` elements are stored in bytes without gaps,
            lowest bits first: ``[..., rows, bytes of a row]``, or all bytes of one matrix, ``[bytes]``.
        scales: ``[..., N, blocks]``, or ``[..., blocks, N]`` with ``transB=0``. Dimensions of 1 and missing dimensions
            broadcast. 1 if omitted.
        zero_points: the same shapes. 0 if omitted. Integer zero points must be values that the elements of ``B`` can
            have.
        codebook: the values that the unsigned integers in ``B`` select, one for each integer that fits their bits.
        bias: ``[N]``. 0 if omitted.

    Attributes:
        N, K: the dimensions of the matrices.
        block_size: the number of elements along ``K`` that share a scale. ``K`` means all elements.
        packed: the type of the elements of ``B``, if a byte contains several.
        transB: whether ``B`` stores the matrices column by column.
        activations: ``"int8"`` rounds each block of 32 elements along ``K`` of ``A`` to 8-bit integers, with the largest
            magnitude mapped to 127. This applies if ``B`` contains integers, ``transB`` is 1, and ``K`` and ``block_size``
            are multiples of 32 (``block_size`` may also be ``K`` or more). A block whose largest magnitude is below
            3.75e-37 becomes zeros. A block with a NaN or an infinity becomes NaN. (ONNX Runtime's own operator, which
            the body uses for 4 bits, rounds blocks of ``block_size``.)
        function: the function that is applied to the sums. ``"gelu"`` is ``x * (1 + erf(x / sqrt(2))) / 2``.

    Output: ``[..., M, N]``, or ``[..., N]``.

    Source: Convert, Subtract, Multiply, Reshape and MatMul in OpenVINO models with compressed weights, and MatMul by large
    matrices in models with states.
    """
    name = "MatMulCompressed"
    if not A.ndim or A.shape[-1] != K:
        raise ValueError(f"{name}: A has the shape {list(A.shape)}; expected K = {K} elements in its last dimension")
    shape = (*_batch(B, packed, N, K), *((N, K) if transB else (K, N)))
    codes = _codes(B, packed, math.prod(shape)).reshape(shape)
    if codebook is not None:
        codes = _looked_up(codes, codebook, B, packed)
    weights = codes.astype(np.float32) if transB else np.swapaxes(codes, -1, -2).astype(np.float32)
    for what, array in (("zero_points", zero_points), ("scales", scales)):
        if array is not None:
            spread = _spread(what, array, weights.shape, block_size, transB)
            weights = weights - spread if what == "zero_points" else weights * spread
    wide = A.astype(np.float32)
    group = max(min(block_size, K), 1)
    integers = codebook is None and B.dtype.kind in "iu"
    if activations == "int8" and integers and transB and K and K % BLOCK == 0 and group % BLOCK == 0:
        wide = _rounded(wide)
    product = np.matmul(wide, np.swapaxes(weights, -1, -2))
    if bias is not None:
        if bias.shape != (N,):
            raise ValueError(f"{name}: bias has the shape {list(bias.shape)} instead of [{N}]")
        product = product + bias
    if function == "gelu":
        product = (product * 0.5 * (1 + _erf(product / math.sqrt(2)))).astype(np.float32)
    return product.astype(A.dtype)


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _bits(B: np.ndarray, packed: str) -> int:
    return _BITS.get(packed, 8 * B.dtype.itemsize)


def _batch(B: np.ndarray, packed: str, N: int, K: int) -> tuple[int, ...]:
    """Return the batch dimensions of B."""
    batch = () if packed != "no" and B.ndim == 1 else B.shape[:-2]
    bits = N * K * _bits(B, packed)
    matrices = math.prod(batch)
    fits = (packed != "no" and B.ndim == 1) or B.ndim >= 2
    if not fits or -(-matrices * bits // 8) != B.nbytes or (matrices > 1 and bits % 8):
        raise ValueError(f"MatMulCompressed: B has the shape {list(B.shape)}; expected matrices for N = {N} and K = {K}")
    return batch


def _codes(B: np.ndarray, packed: str, count: int) -> np.ndarray:
    """Return the elements of B, flattened."""
    if packed == "no":
        return B.reshape(-1)
    if B.dtype != np.uint8:
        raise ValueError(f"MatMulCompressed: B has the element type {B.dtype}; expected uint8")
    bits = _BITS[packed]
    codes = (B.reshape(-1, 1) >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)).reshape(-1)
    codes = codes[:count]
    return np.where(codes > 7, codes.astype(np.int8) - 16, codes).astype(np.int8) if packed == "int4" else codes


def _looked_up(codes: np.ndarray, codebook: np.ndarray, B: np.ndarray, packed: str) -> np.ndarray:
    if B.dtype != np.uint8 or packed == "int4":
        raise ValueError("MatMulCompressed: a codebook requires unsigned integers")
    entries = 1 << _bits(B, packed)
    if codebook.shape != (entries,):
        raise ValueError(f"MatMulCompressed: codebook has the shape {list(codebook.shape)} instead of [{entries}]")
    return codebook[codes]


def _spread(what: str, array: np.ndarray, shape: tuple[int, ...], block_size: int, transB: int) -> np.ndarray:
    """Broadcast scales or zero points to weights: ``[..., N or 1, K or 1]``."""
    N, K = shape[-2:]
    blocks = -(-K // max(min(block_size, K), 1))
    whole = array.reshape((1,) * (2 - array.ndim) + array.shape)
    whole = whole if transB else np.swapaxes(whole, -1, -2)
    leading = whole.shape[:-2]
    fits = (
        whole.shape[-2] in (1, N) and whole.shape[-1] in (1, blocks) and (math.prod(leading) == 1 or leading == shape[:-2])
    )
    if not fits:
        message = f"{what} has the shape {list(array.shape)}; expected numbers for N = {N} and {blocks} groups"
        raise ValueError(f"MatMulCompressed: {message}")
    whole = whole.astype(np.float32)
    if leading != shape[:-2]:  # shared by all matrices, with any number of dimensions
        whole = whole.reshape(whole.shape[-2:])
    return whole if whole.shape[-1] == 1 else np.repeat(whole, block_size, axis=-1)[..., :K]


def _rounded(a: np.ndarray) -> np.ndarray:
    """Round to blocks of 8-bit integers times their scales."""
    blocks = a.reshape(*a.shape[:-1], a.shape[-1] // BLOCK, BLOCK)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    factor = np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=largest >= _LEAST)
    with np.errstate(invalid="ignore"):  # blocks with an infinity become NaN
        return (np.rint(blocks * factor) * (largest / np.float32(127))).reshape(a.shape)


@MatMulCompressed.infer_shapes
def _(node):
    a, b, n = node.shape(0), node.shape(1), node.attributes["N"]
    if a is None or b is None or not a:
        return [None]
    batch = [] if node.attributes["packed"] != "no" and len(b) == 1 else b[:-2]
    leading = a[:-2]
    if len(leading) >= len(batch) and all(dim == 1 for dim in batch):
        batch = leading
    elif leading and batch:
        width = max(len(leading), len(batch))
        pairs = zip([1] * (width - len(leading)) + leading, [1] * (width - len(batch)) + batch, strict=True)
        batch = [x if x == y or y == 1 else y if x == 1 else None for x, y in pairs]
    return [[*(batch if batch else leading), *a[-2:-1], n]]


@MatMulCompressed.body
def _(op, A, B, scales, zero_points, codebook, bias, *, N, K, block_size, packed, transB, activations, function):
    def finished(product):
        product = product if bias is None else op.Add(product, bias)
        return op.CastLike(op.Gelu(product) if function == "gelu" else product, A)

    if codebook is None and transB and _has_n_bits(A, B, zero_points, N, K, block_size, packed):
        level = 4 if activations == "int8" else 0
        product = _in_n_bits(op, A, B, scales, zero_points, N, K, block_size, packed, level)
        if level:  # ONNX Runtime rounds NaN and infinities to integers
            wide = op.Cast(A, to=_FLOAT)
            product = op.Add(product, op.CastLike(op.ReduceSum(op.Mul(wide, 0.0), [-1], keepdims=1), product))
        return finished(product)
    wide = op.Cast(A, to=_FLOAT)
    integers = codebook is None and not _is_float(B)
    group = max(min(block_size, K), 1)
    if activations == "int8" and integers and transB and K and K % BLOCK == 0 and group % BLOCK == 0:
        wide = _rounded_body(op, wide, K)
    parts = [B, zero_points, scales]
    if transB and packed == "no" and codebook is None and all(x is None or x.rank is not None for x in parts):
        # Transpose before decoding: ONNX Runtime's constant folding keeps intermediate tensors, which are smaller here.
        B, zero_points, scales = (x if x is None else _swapped(op, x) for x in parts)
        transB = 0
    weights = _scaled(op, _in_order(op, B, packed, N, K, transB, codebook), zero_points, scales, N, K, block_size, transB)
    return finished(op.MatMul(wide, _swapped(op, weights) if transB else weights))


_FLOAT = 1  # onnx.TensorProto.FLOAT


def _has_n_bits(A, B, zero_points, N, K, block_size, packed) -> bool:
    """Whether ONNX Runtime's MatMulNBits is equivalent and fast: 4 bits, in blocks of a power of two."""
    if packed not in ("uint4", "int4") or A.rank is None or block_size & (block_size - 1):
        return False
    return n_bits.is_possible(B, zero_points, N=N, K=K, block_size=block_size)


def _in_n_bits(op, A, B, scales, zero_points, N, K, block_size, packed, accuracy_level):
    """Emit MatMulNBits, which is fast and compact in ONNX Runtime without a plugin (for 4 bits only; 8 bits are slow)."""
    signed = packed == "int4"  # its elements are unsigned
    codes = op.BitwiseXor(B, np.uint8(0x88)) if signed else B
    return n_bits.multiply(
        op, A, codes, scales, zero_points, N=N, K=K, block_size=block_size, bits=4, offset=8 if signed else 0,
        accuracy_level=accuracy_level,
    )  # fmt: skip


def _is_float(value) -> bool:
    return value.dtype is not None and value.dtype.name in ("FLOAT16", "BFLOAT16", "FLOAT")


def _in_order(op, B, packed, N, K, transB, codebook):
    """Return B's elements as float32, ``[..., N, K]`` or ``[..., K, N]``."""
    if packed == "no":
        return op.Cast(B, to=_FLOAT) if codebook is None else op.Gather(codebook, op.Cast(B, to=6))
    bits = _BITS[packed]
    numbers = np.arange(1 << bits, dtype=np.float32)
    if packed == "int4":
        numbers[8:] -= 16
    every = np.arange(256)[:, None] >> np.arange(0, 8, bits) & ((1 << bits) - 1)
    table = numbers[every] if codebook is None else op.Gather(codebook, op.const(every.astype(np.int32)))
    elements = op.Gather(table, op.Cast(B, to=6))
    rows, columns = (N, K) if transB else (K, N)
    if B.rank == 1:
        flat = op.Slice(op.Reshape(elements, [-1]), [0], [N * K], [0])
        return op.Reshape(flat, [rows, columns])
    if B.rank is None:
        raise ValueError("packed weights of unknown rank have no body")
    return op.Reshape(elements, op.Concat(op.Shape(B, end=-2), [rows, columns], axis=0))


def _scaled(op, weights, zero_points, scales, N, K, block_size, transB):
    """Compute ``(weights - zero_points) * scales``."""
    group = max(min(block_size, K), 1)
    blocks = -(-K // group)
    in_blocks = 1 < blocks < K and (zero_points is not None or scales is not None)
    leading, weights_rank = op.Shape(weights, end=-2), weights.rank
    if in_blocks:  # blocks are a separate dimension
        if rest := -K % group:
            weights = pad(op, weights, [-1 if transB else -2], [0], [rest])
        split = [N, blocks, group] if transB else [blocks, group, N]
        weights = op.Reshape(weights, op.Concat(leading, split, axis=0))
    for what, array in (("Sub", zero_points), ("Mul", scales)):
        if array is None:
            continue
        if array.rank is not None and weights_rank is not None and array.rank > weights_rank:
            array = op.Squeeze(array, list(range(array.rank - weights_rank)))
        wide = op.Cast(array, to=_FLOAT)
        if in_blocks and array.rank != 0 and (transB or array.rank != 1):
            wide = op.Unsqueeze(wide, [-1 if transB else -2])
        weights = op.node(what, weights, wide)
    if in_blocks:
        whole = [N, blocks * group] if transB else [blocks * group, N]
        weights = op.Slice(op.Reshape(weights, op.Concat(leading, whole, axis=0)), [0], [K], [-1 if transB else -2])
    return weights


def _swapped(op, matrices):
    if matrices.rank in (0, 1):
        return matrices if matrices.rank == 0 else op.Unsqueeze(matrices, [-1])
    if matrices.rank is not None:
        axes = list(range(matrices.rank))
        return op.Transpose(matrices, perm=[*axes[:-2], axes[-1], axes[-2]])
    raise ValueError("weights of unknown rank have no body")


def _rounded_body(op, a, K):
    blocks = op.Reshape(a, op.Concat(op.Shape(a, end=-1), [K // BLOCK, BLOCK], axis=0))
    largest = op.ReduceMax(op.Abs(blocks), [-1], keepdims=1)
    factor = op.Where(op.GreaterOrEqual(largest, float(_LEAST)), op.Div(127.0, largest), 0.0)
    rounded = op.Mul(op.Round(op.Mul(blocks, factor)), op.Div(largest, 127.0))
    return op.Reshape(rounded, op.Shape(a))
