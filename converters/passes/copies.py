"""Removal of Slice and Pad without effect.

Networks that crop or pad images of any size contain such nodes. If the size is known, they only copy the tensor. ONNX
Runtime does not remove them.
"""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite(
    "Slice",
    lambda op, x, starts, ends: op.Slice(x, starts, ends, _allow_other_inputs=True, _outputs=["part"]),
    exclusive=False,
)
def full_slice(op: Builder, *, x: Value, starts: Value, ends: Value, part: Value) -> Value | None:
    """Remove a Slice with steps of 1 whose result is as large as its input."""
    node = part.producer()
    steps = node.inputs[4] if node is not None and len(node.inputs) > 4 else None
    if steps is not None and (steps.const_value is None or (steps.const_value.numpy() != 1).any()):
        return None
    return x if x.is_static and isinstance(part, Value) and part.dims == x.dims else None


@rewrite("Pad", lambda op, x, pads: op.Pad(x, pads, _allow_other_inputs=True, _outputs=["padded"]), exclusive=False)
def empty_pad(op: Builder, *, x: Value, pads: Value, padded: Value) -> Value | None:
    """Remove a Pad without elements."""
    return None if pads.constant is None or pads.constant.any() else x


class DropCopies(PatternPass):
    """Remove Slices of everything and Pads by nothing."""

    rewrites = (full_slice, empty_pad)
