"""LRN: ONNX Runtime (1.31) supports only four dimensions."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("LRN", lambda op, x: op.LRN(x, _outputs=["whole"]))
def of_four_dimensions(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Reshape to four dimensions, with all spatial dimensions as one and a 1."""
    node = whole.producer()
    assert node is not None
    if x.rank == 4:
        return None
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    shape = op.Shape(x)
    inner = op.ReduceProd(op.Slice(shape, [2], [2**31]), keepdims=1)
    four = op.Reshape(x, op.Concat(op.Slice(shape, [0], [2]), inner, [1], axis=0), allowzero=1)
    return op.Reshape(op.LRN(four, **attributes), shape, allowzero=1)


class LRNOfFourDimensions(PatternPass):
    """LRN with a rank that is not four, or unknown."""

    rewrites = (of_four_dimensions,)
