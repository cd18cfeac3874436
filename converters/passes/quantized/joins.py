"""Quantization of the inputs of a Concat instead of its result.

A convolution followed by a quantization computes integers from its sums. With a Concat in between, it computes floats, which
are stored, concatenated and read again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.affine import Affine
from converters.passes.quantized.graph import Arrangement, is_node, only_quantizers, only_user, remove
from onnx_specops.building import Value, constant_value
from onnx_specops.graphs import constant_array
from onnx_specops.replacing import replace_value

_FUNCTIONS = frozenset(
    ("Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Mul", "PRelu", "Relu", "Sigmoid")
)


@dataclass(frozen=True)
class _Quantization:
    """The quantization of a value.

    Attributes:
        quantizer: the QuantizeLinear.
        division: the per-channel scales by which the value is divided first.
        shift: the quantization whose shift is added before both.
    """

    quantizer: ir.Node
    division: Affine | None = None
    shift: Affine | None = None

    @property
    def shift_of_channels(self) -> np.ndarray | None:
        """The shift of all channels or of each one, in levels; ``None`` if it differs along another axis."""
        return np.zeros([]) if self.shift is None else self.shift.shift_along(1)


def quantize_parts(work: Arrangement, node: ir.Node) -> None:
    """Quantize the inputs of a Concat instead of its result.

    Conditions: it concatenates channels of known number; all consumers of its result quantize it to 8 bits, with one scale
    or one for each channel; and one of its inputs is computed by a convolution and only has consumers that quantize it too.
    """
    value = node.outputs[0]
    parts = [part for part in node.inputs if part is not None]
    if value.shape is None or len(value.shape) < 3 or node.attributes.get_int("axis") not in (1, 1 - len(value.shape)):
        return
    sizes = [None if part.shape is None else part.shape[1] for part in parts]
    if len(parts) < len(node.inputs) or not all(isinstance(size, int) for size in sizes):
        return
    found = quantizations(work, value)
    if not found or not any(_is_convolved(work, part, node) for part in parts):
        return
    ends = np.cumsum([size for size in sizes if isinstance(size, int)]).tolist()
    for quantization in found:
        op = work.before(quantization.quantizer)
        scale, zero = (constant_array(constant) for constant in quantization.quantizer.inputs[1:])
        assert scale is not None and zero is not None
        quantized: list[Value] = []
        for part, begin, end in zip(parts, [0, *ends], ends, strict=False):
            source = part
            if quantization.shift is not None:
                shift = _of_channels(quantization.shift, slice(begin, end), len(value.shape))
                source = work.shifted(op, part, shift)
            if (division := quantization.division) is not None:
                own = Affine(division.scale[begin:end], division.zero_point[begin:end], 1)
                source = op.Div(source, own.column(len(value.shape)))
                source.shape = part.shape
                work.divisions[source] = own
            along = [numbers[begin:end] if numbers.ndim else numbers for numbers in (scale, zero)]
            quantized.append(op.QuantizeLinear(source, *map(constant_value, along), axis=1 if scale.ndim else None))
            quantized[-1].shape = part.shape
        joined = op.Concat(*quantized, axis=1)
        joined.shape = value.shape
        changed = [quantization.quantizer, *_before(quantization.quantizer, value)]
        if not replace_value(quantization.quantizer.outputs[0], joined):
            return
        work.renew(joined)
        for one in changed:
            remove(one)
    remove(node)


def _before(node: ir.Node, value: ir.Value) -> list[ir.Node]:
    """Return the nodes between a value and a node, the last one first."""
    found: list[ir.Node] = []
    current = node.inputs[0]
    while current is not None and current is not value and (producer := current.producer()) is not None:
        found.append(producer)
        current = producer.inputs[0]
    return found


def _of_channels(whole: Affine, channels: slice, rank: int) -> Affine:
    """Return the scale, zero point and shift of channels of a tensor with ``rank`` dimensions."""
    if whole.is_per_tensor or whole.shift is None:
        return whole
    shift = np.ascontiguousarray(whole.shift.reshape(-1, *[1] * (rank - 2))[channels])
    return Affine(whole.scale[channels], whole.zero_point[channels], 1, shift)


def quantizations(work: Arrangement, value: ir.Value) -> list[_Quantization]:
    """Return the quantizations of a value to 8 bits; empty if it has other consumers."""
    found = []
    if value.is_graph_output():
        return []
    for user in value.consumers():
        division = None
        if (shift := work.shifts.get(user.outputs[0])) is not None:
            following = only_user(user.outputs[0])
            if following is None or shift.shift_along(1) is None:
                return []
            user = following
        if is_node(user, "Div"):
            division, divided = work.divisions.get(user.outputs[0]), user.outputs[0]
            if division is None or division.is_per_tensor or division.axis != 1:
                return []
            quantizers = only_quantizers(divided)
            if len(quantizers) != 1:
                return []
            user = quantizers[0]
        if not is_node(user, "QuantizeLinear") or user.outputs[0].is_graph_output():
            return []
        scale, zero = (constant_array(constant) for constant in user.inputs[1:])
        if scale is None or zero is None or zero.dtype != np.uint8 or scale.shape != zero.shape:
            return []
        if scale.ndim and user.attributes.get_int("axis", 1) != 1:
            return []
        found.append(_Quantization(user, division, shift))
    return found


def _is_convolved(work: Arrangement, value: ir.Value, joined: ir.Node) -> bool:
    """Return whether an integer convolution computes a value, and all its consumers are ``joined`` or quantize it."""
    if value.is_graph_output():
        return False
    for user in value.consumers():
        is_part = is_node(user, "QuantizeLinear") or user.outputs[0] in work.divisions or user.outputs[0] in work.shifts
        if user is not joined and not is_part:
            return False
    producer = value.producer()
    for _ in range(4):  # a function of two nodes, and a bias
        if producer is None or producer.domain or not producer.inputs or producer.inputs[0] is None:
            return False
        if producer.op_type in ("Conv", "ConvTranspose"):
            x = producer.inputs[0]
            return work.find(x) is not None or x in work.channels
        source = next((given for given in producer.inputs if given is not None and constant_array(given) is None), None)
        if source is None:
            return False
        if producer.op_type == "Add":
            if only_user(source) is not producer or all(constant_array(given) is None for given in producer.inputs):
                return False
        elif producer.op_type not in _FUNCTIONS:
            return False
        producer = source.producer()
    return False
