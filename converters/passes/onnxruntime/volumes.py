"""Convolutions of volumes: ONNX Runtime (1.32) copies each window, and has fast kernels for images only.

Others take two to ten times as long as in the domain's VolumeConv. Windows of one pixel are matrix multiplications.
"""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, of_weights, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import attributes_of
from onnx_specops.ops._integer_lists import integer_list

_RANK = 3


@rewrite("Conv", of_weights("Conv"), tolerance=1e-4)
def of_a_volume(op: Builder, *, x: Value, weights: Value, whole: Value) -> Value | None:
    """Compute a convolution of float32 along three dimensions by the domain's VolumeConv."""
    node, shape = whole.producer(), weights.dims
    assert node is not None
    stated = node.attributes
    # float16 is for GPUs.
    if x.dtype != ir.DataType.FLOAT or shape is None or len(shape) != _RANK + 2:
        return None
    if None in shape[2:] or stated.get_string("auto_pad", "NOTSET") != "NOTSET":
        return None
    lists = {name: list(stated.get_ints(name, ())) for name in ("strides", "dilations", "pads")}
    if (set(shape[2:]) == {1} and set(lists["strides"]) <= {1}) or min(lists["pads"], default=0) < 0:
        return None
    return op.specops.VolumeConv(
        x,
        weights,
        *node.inputs[2:],
        group=stated.get_int("group", 1),
        **{k: integer_list(v) for k, v in lists.items()},
    )


def _activated(operator: str) -> Rewrite:
    def pattern(op: Builder, x: Value, weights: Value) -> Value:
        inner = op.VolumeConv(x, weights, _allow_other_inputs=True, _domain=DOMAIN, _outputs=["inner"])
        found: Value = getattr(op, operator)(inner, _outputs=["whole"])
        return found

    @rewrite(operator, pattern, tolerance=1e-4)
    def replace(op: Builder, *, x: Value, weights: Value, inner: Value, whole: Value) -> Value | None:
        """Make an activation part of the convolution."""
        node, after = inner.producer(), whole.producer()
        assert node is not None and after is not None
        attributes = attributes_of(node)
        if attributes.get("slope", 1.0) != 1:
            return None
        slope = after.attributes.get_float("alpha", 0.01) if operator == "LeakyRelu" else 0.0
        return op.specops.VolumeConv(*node.inputs, **attributes | {"slope": slope})

    return replace


class ConvolveVolumes(PatternPass):
    """Compute convolutions along three dimensions by the domain's VolumeConv."""

    rewrites = (of_a_volume, _activated("Relu"), _activated("LeakyRelu"))
