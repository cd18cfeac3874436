"""Attention over a cache that OpenVINO's CPU plugin fuses with the cache.

The fused node (ScaledDotProductAttentionWithKVCache) differs from the specification for tokens without visible keys.
"""

from __future__ import annotations

from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import InputPort, Layer, OutputPort
from converters.openvino.stated import Corrections

_SHAPES = ("ShapeOf",)
_READERS = ("ScaledDotProductAttention", "Convert", "Gather", *_SHAPES)


def is_fused_with_cache(attention: Layer, corrections: Corrections) -> bool:
    """Return whether the CPU plugin fuses a ScaledDotProductAttention with the variables of its keys and values.

    Both must be ReadValue, Gather of rows by an i32 vector, Concat with the new ones, Assign. They may then be repeated for
    heads that share them, and transposed like the queries.
    """
    queries, *cached = (port.source for port in attention.inputs[:3])
    orders = [_order(queries)] + [_order(value) for value in cached]
    if len(cached) != 2 or any((order is None) != (orders[1] is None) for order in orders[1:]):
        return False
    if orders[1] is not None:
        if any(order != orders[1] for order in orders):
            return False
        cached = [value.layer.inputs[0].source for value in cached]
    found = [_appended(_shared(value), corrections) for value in cached]
    keys, values = found
    return keys is not None and keys == values


def _order(value: OutputPort) -> tuple[int, ...] | None:
    """Return the constant order of a Transpose without other consumers; ``None`` for anything else."""
    layer = value.layer
    if layer.type != "Transpose" or len(value.consumers) != 1:
        return None
    constant = layer.inputs[1].source.layer.constant
    return None if constant is None else tuple(int(axis) for axis in constant.numpy().reshape(-1))


def _shared(value: OutputPort) -> OutputPort:
    """Return keys or values before they are repeated for the heads that share them."""
    repeated = value.layer.inputs[0].source if value.layer.type == "Reshape" and value.layer.inputs else None
    if repeated is None or repeated.layer.type not in ("Multiply", "Broadcast"):
        return value
    single = repeated.layer.inputs[0].source
    if single.layer.type not in ("Unsqueeze", "Reshape") or any(len(v.consumers) != 1 for v in (value, repeated, single)):
        return value
    return single.layer.inputs[0].source


def _appended(value: OutputPort, corrections: Corrections) -> tuple[OutputPort, str] | None:
    """Return the source of the row indices and the axis of the new tokens if ``value`` is a cache with new tokens, else
    ``None``.
    """
    concat = value.layer
    if concat.type != "Concat" or len(concat.inputs) != 2:
        return None
    gather = concat.inputs[0].source.layer
    if gather.type != "Gather" or len(gather.inputs) != 3:
        return None
    if sum(port.layer.type not in _SHAPES for port in gather.outputs[0].consumers) != 1:
        return None
    rows = gather.inputs[1].source
    dims = corrections.dims_of(rows)
    if corrections.type_of(rows) != ElementType.I32 or dims is None or len(dims) != 1:
        return None
    read = gather.inputs[0].source.layer
    if read.type == "Convert" and len(read.outputs[0].consumers) == 1:
        read = read.inputs[0].source.layer
    if read.type != "ReadValue" or any(port.layer.type not in _READERS for port in read.outputs[0].consumers):
        return None
    others = [port for port in value.consumers if port.layer.type not in _SHAPES]
    if len(others) != 2 or len(value.consumers) > 3:
        return None
    name = read.attributes.get("variable_id")
    return (rows, str(concat.attributes.get("axis"))) if any(_assigned(port) == name for port in others) else None


def _assigned(port: InputPort) -> object:
    """Return the variable that a consumer assigns, possibly after a conversion."""
    layer = port.layer
    if layer.type == "Convert" and len(layer.outputs[0].consumers) == 1:
        layer = layer.outputs[0].consumers[0].layer
    return layer.attributes.get("variable_id") if layer.type == "Assign" else None
