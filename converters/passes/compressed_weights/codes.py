"""The stored form of compressed weights: constants of few bits, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from converters.passes.dequantization import source, standard
from onnx_specops.building import Value, constant_value
from onnx_specops.folding import FOLDED_ELEMENTS
from onnx_specops.graphs import constant_array
from onnx_specops.mapped import same_bytes

D = ir.DataType

PACKED = "packed"
"""The key in a value's ``meta`` for the `Codes` from which its elements were looked up."""

_WIDTH = {"uint2": 2, "uint4": 4, "int4": 4}


@dataclass(frozen=True, eq=False)
class Codes:
    """A constant as it is stored.

    Attributes:
        tensor: its bytes, or its elements if their type is not packed.
        packed: the type of the elements that share a byte; ``"no"`` if they do not.
        shape: the shape of the elements.
        codebook: the float32 numbers that the elements index, if any.
        name: its name in the graph.
    """

    tensor: ir.TensorProtocol
    packed: str
    shape: tuple[int, ...]
    codebook: np.ndarray | None
    name: str

    @property
    def bits(self) -> int:
        """The number of bits of an element."""
        return _WIDTH[self.packed] if self.packed != "no" else 8 * int(self.tensor.dtype.itemsize)


def codes_of(value: ir.Value) -> Codes | None:
    """Return a large constant of few bits, directly or through a lookup."""
    return _stored(value) or (_looked_up(value) if value.const_value is None else None)


def _stored(value: ir.Value) -> Codes | None:
    """Return a large constant of few bits."""
    if isinstance(codes := value.meta.get(PACKED), Codes):
        return codes
    tensor = value.const_value
    if tensor is None or value.producer() is not None or value.is_graph_input() or tensor.size <= FOLDED_ELEMENTS:
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
    """Return the codes that index a codebook through a Gather. Nodes that guard against indices out of range are skipped."""
    node = standard(value)
    guard = None
    if node is not None and node.op_type == "Where":
        guard, inner = node.inputs[0], node.inputs[1]
        node = None if inner is None else standard(inner)
    if node is None or node.op_type != "Gather" or node.attributes.get_int("axis", 0) != 0:
        return None
    book, index = node.inputs
    numbers = None if book is None else _numbers(book)
    if numbers is None or numbers.ndim != 1 or index is None:
        return None
    if (chosen := standard(index)) is not None and chosen.op_type == "Where":
        if chosen.inputs[0] is not guard or chosen.inputs[1] is None:
            return None
        index = chosen.inputs[1]
    elif guard is not None:
        return None
    if guard is not None and not _within(guard, index, len(numbers)):
        return None
    while (cast := standard(index)) is not None and cast.op_type in ("Cast", "Reshape"):
        index = source(cast)
    codes = _stored(index)
    if codes is None or codes.codebook is not None or codes.packed == "int4" or codes.tensor.dtype == D.INT8:
        return None
    entries = 1 << codes.bits
    if codes.bits > 8 or len(numbers) != entries:
        return None
    return replace(codes, codebook=numbers.astype(np.float32))


def _within(guard: ir.Value, index: ir.Value, size: int) -> bool:
    """Return whether ``guard`` computes ``0 <= index < size`` with constants."""
    node = standard(guard)
    if node is None or node.op_type != "And":
        return False
    lows, highs = 0, 0
    for side in node.inputs:
        compared = None if side is None else standard(side)
        if compared is None or compared.inputs[0] is not index or (bound := compared.inputs[1]) is None:
            return False
        limit = constant_array(bound)
        if limit is None or limit.size != 1:
            return False
        number = int(limit.item())
        lows += compared.op_type == "GreaterOrEqual" and number <= 0
        highs += compared.op_type == "Less" and number >= size
    return lows == 1 and highs == 1


def _numbers(value: ir.Value) -> np.ndarray | None:
    """Return the elements of a small constant, through casts between floats."""
    while (node := standard(value)) is not None and node.op_type == "Cast":
        value = source(node)
    tensor = value.const_value
    if tensor is None or value.producer() is not None or value.is_graph_input() or tensor.size > 256:
        return None
    return tensor.numpy().astype(np.float32)


def view(tensor: ir.TensorProtocol, dtype: ir.DataType, shape: tuple[int, ...]) -> ir.TensorProtocol:
    """Return the same bytes in another type and shape."""
    dims = ir.Shape(shape)
    if isinstance(tensor, ir.ExternalTensor):
        return same_bytes(tensor, dtype, shape)

    def compute() -> ir.TensorProtocol:
        return ir.Tensor(np.frombuffer(tensor.tobytes(), dtype.numpy()).reshape(shape), dtype=dtype)

    return ir.LazyTensor(compute, dtype=dtype, shape=dims, cache=True, name=tensor.name)


def table(codes: Codes) -> Value:
    """Return the numbers that each byte contains."""
    width = codes.bits
    every = unpack(np.arange(256, dtype=np.uint8), width).reshape(256, -1)
    if codes.codebook is not None:
        return constant_value(codes.codebook[every])
    signed = np.where(every >= 8, every.astype(np.int16) - 16, every) if codes.packed == "int4" else every
    return constant_value(signed.astype(np.float32))


def unpack(data: np.ndarray, bits: int) -> np.ndarray:
    """Unpack codes from bytes, lowest bits first, into a flat array."""
    return (data.reshape(-1, 1) >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)).reshape(-1)


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Pack codes (uint8, flat) into bytes, lowest bits first, with zeros at the end of the last byte."""
    whole = np.concatenate([codes, np.zeros(-len(codes) % (8 // bits), np.uint8)]).reshape(-1, 8 // bits)
    return np.bitwise_or.reduce(whole << np.arange(0, 8, bits, dtype=np.uint8), axis=1).astype(np.uint8)
