"""Slices of everything and pads by nothing go.

Networks that cut and fill up pictures of any size hold them; once the size is known they copy. ONNX Runtime leaves them.
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
    """A slice in steps of 1 that is as large as what it is of."""
    node = part.producer()
    steps = node.inputs[4] if node is not None and len(node.inputs) > 4 else None
    if steps is not None and (steps.const_value is None or (steps.const_value.numpy() != 1).any()):
        return None
    return x if x.is_static and isinstance(part, Value) and part.dims == x.dims else None


@rewrite("Pad", lambda op, x, pads: op.Pad(x, pads, _allow_other_inputs=True, _outputs=["padded"]), exclusive=False)
def empty_pad(op: Builder, *, x: Value, pads: Value, padded: Value) -> Value | None:
    """A pad of no elements on any side."""
    return None if pads.constant is None or pads.constant.any() else x


class DropCopies(PatternPass):
    """Slices of everything, pads by nothing."""

    rewrites = (full_slice, empty_pad)
