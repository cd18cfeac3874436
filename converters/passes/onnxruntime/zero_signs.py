"""Where of negative zeros: ONNX Runtime's kernel (1.32) returns a positive zero for a negative zero of the second input.

The signs of zeros affect only divisions. OpenVINO's frontends use such divisions for Atan2.
"""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array


@rewrite("Div", lambda op, a, condition, x, y: op.Div(a, op.Where(condition, x, y)), exclusive=False, equal=False)
def divided_before(op: Builder, *, a: Value, condition: Value, x: Value, y: Value) -> Value | None:
    """Divide before the Where in a / Where(condition, x, y), where ``a`` and ``y`` are constants.

    The division of the constants is folded, so the graph has as many nodes as before.
    """
    if constant_array(a) is None or constant_array(y) is None or constant_array(x) is not None:
        return None
    if x.dtype is None or not x.dtype.is_floating_point():
        return None
    return op.Where(condition, op.Div(a, x), op.Div(a, y))


class SignsOfSelectedZeros(PatternPass):
    """Divide constants by the second input of Where instead of its result."""

    rewrites = (divided_before,)
