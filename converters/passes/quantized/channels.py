"""Quantizations of channels directly before the depthwise convolutions that use them."""

from __future__ import annotations

from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.graph import Arrangement, is_node, only_user, remove, static_shape
from converters.passes.quantized.hoisting import split_results
from onnx_specops.building import Value, constant_value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import attributes_of, constant_array
from onnx_specops.replacing import replace_value


def quantize_after_split(work: Arrangement, node: ir.Node) -> None:
    """Quantize the parts of a divided tensor instead of the tensor, if its channels have different limits.

    Conditions: the limits are constant and vary along the channels only; the only consumer is a Split along the channels
    with constant sizes; only depthwise convolutions use its parts. They can have a zero point for each channel.
    """
    value, limits = node.outputs[0], [constant_array(limit) for limit in node.inputs[1:]]
    shape, known = static_shape(value), [limit for limit in limits if limit is not None]
    split = only_user(value)
    if split is None or not is_node(split, "Split") or shape is None or len(shape) < 3 or len(known) < len(limits):
        return
    each = (1, shape[1], *[1] * (len(shape) - 2))
    if not any(limit.shape == each for limit in known) or any(limit.size > 1 and limit.shape != each for limit in known):
        return
    parts = split_results(value, 1)
    if len(parts) != len(split.outputs) or not all(_is_depthwise_input(part) for part, _ in parts):
        return
    attributes = attributes_of(split)
    divided = work.before(split).node("Split", node.inputs[0], *split.inputs[1:], outputs=len(parts), **attributes)
    for (part, columns), floats in zip(parts, divided if isinstance(divided, tuple) else (divided,), strict=True):
        floats.shape = part.shape
        own = [constant_value(np.ascontiguousarray(limit[:, columns] if limit.size > 1 else limit)) for limit in known]
        op = work.before(split)
        result = cast(Value, op.node("FakeQuantize", floats, *own, domain=DOMAIN, **attributes_of(node)))
        result.shape = part.shape
        replace_value(part, result)
    remove(split)
    remove(node)


def _is_depthwise_input(value: ir.Value) -> bool:
    shape = static_shape(value)
    return (
        shape is not None
        and bool(value.uses())
        and not value.is_graph_output()
        and all(
            is_node(use.node, "Conv") and use.idx == 0 and use.node.attributes.get_int("group", 1) == shape[1]
            for use in value.uses()
        )
    )
