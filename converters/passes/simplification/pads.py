"""Padding as a part of convolutions."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array, constant_list


@rewrite(
    "Conv",
    lambda op, x, pads: op.Conv(
        op.Pad(x, pads, _allow_other_inputs=True, _allow_other_attributes=True, _outputs=["padded"]),
        _allow_other_inputs=True,
        _allow_other_attributes=True,
        _outputs=["whole"],
    ),
    exclusive=False,
)
def padded_convolution(op: Builder, *, x: Value, pads: Value, padded: Value, whole: Value) -> Value | None:
    """Add a Pad by zeros to the pads of the convolutions after it, if nothing else uses it."""
    pad, conv, widths = padded.producer(), whole.producer(), constant_list(pads)
    if pad is None or conv is None or widths is None or x.rank is None or len(widths) != 2 * x.rank:
        return None
    if padded.is_graph_output() or any(user.op_type != "Conv" or place for user, place in padded.uses()):
        return None
    if pad.attributes.get_string("mode", "constant") != "constant" or (len(pad.inputs) > 3 and pad.inputs[3] is not None):
        return None
    fill = pad.inputs[2] if len(pad.inputs) > 2 else None
    if fill is not None and ((number := constant_array(fill)) is None or number.any()):
        return None
    if conv.attributes.get_string("auto_pad", "NOTSET") != "NOTSET" or min(widths) < 0:
        return None
    first, last = widths[: x.rank], widths[x.rank :]
    if any(first[:2]) or any(last[:2]):
        return None
    attributes = attributes_of(conv)
    given = attributes.pop("pads", [0] * (2 * x.rank - 4))
    added = [*first[2:], *last[2:]]
    result: Value = op.Conv(x, *conv.inputs[1:], pads=[a + b for a, b in zip(given, added, strict=True)], **attributes)
    return result


class FusePads(PatternPass):
    """Fuse Pads by zeros into convolutions."""

    rewrites = (padded_convolution,)
