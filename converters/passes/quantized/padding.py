"""Zeros that a Pad adds before a convolution, as the convolution's own padding."""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.quantized.graph import Arrangement, is_node, remove
from onnx_specops.graphs import attributes_of, constant_array, constant_list
from onnx_specops.replacing import replace_value


def merge_pads(work: Arrangement, node: ir.Node) -> None:
    """Merge the Pad before a Conv into its padding, so that a quantization before the Pad is directly before the Conv.

    Conditions: the Pad adds a known number of zeros, along spatial dimensions only, and the padding of the Conv is explicit.
    """
    if not is_node(node, "Conv") or node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET":
        return
    padded = node.inputs[0]
    pad = None if padded is None else padded.producer()
    if pad is None or not is_node(pad, "Pad") or padded is None or padded.shape is None or pad.graph is not node.graph:
        return
    rank = len(padded.shape)
    added = constant_list(pad.inputs[1])
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    if added is None or len(added) != 2 * rank or len(pad.inputs) > 3 or min(added) < 0:
        return
    if pad.attributes.get_string("mode", "constant") != "constant" or any(added[:2] + added[rank : rank + 2]):
        return
    if value is not None and ((number := constant_array(value)) is None or number.any()):
        return
    attributes = attributes_of(node)
    before = node.attributes.get_ints("pads", [0] * 2 * (rank - 2))
    attributes["pads"] = [a + b for a, b in zip(before, added[2:rank] + added[rank + 2 :], strict=True)]
    result = work.before(node).Conv(pad.inputs[0], *node.inputs[1:], **attributes)
    result.shape = node.outputs[0].shape
    if replace_value(node.outputs[0], result):
        for unused in (node, pad):
            remove(unused)
