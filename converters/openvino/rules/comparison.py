"""Elementwise comparisons, Select, and classification of floats."""

from __future__ import annotations

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._elementwise import PDPD_REJECTED, AutoBroadcast, align, binary
from converters.openvino.rules._precision import FLOATS, INTEGERS_IN_FLOAT32, D
from onnx_specops.building import Builder, Value

_OF_NAN = Departure(
    where="a NaN",
    cpu="treats it as greater than and equal to any number",
    reference="is false",
    follows="reference",
    avx512=True,
)

_LAID_ON_THE_LAST = Departure(
    where="`auto_broadcast=pdpd` of a second operand of fewer dimensions",
    cpu="aligns it with the last dimensions of the first, or rejects it; the reference kernel returns uninitialized memory",
    specification="aligns it with those from `auto_broadcast_axis` on",
    follows="specification",
)

# Operation -> its node, and where the CPU plugin differs.
_COMPARISONS = {
    "Equal": ("Equal", [INTEGERS_IN_FLOAT32, PDPD_REJECTED]),
    "Greater": ("Greater", [INTEGERS_IN_FLOAT32, _OF_NAN, _LAID_ON_THE_LAST]),
    "GreaterEqual": ("GreaterOrEqual", [INTEGERS_IN_FLOAT32, _OF_NAN, _LAID_ON_THE_LAST]),
    "Less": ("Less", [INTEGERS_IN_FLOAT32, PDPD_REJECTED]),
    "LessEqual": ("LessOrEqual", [INTEGERS_IN_FLOAT32, PDPD_REJECTED]),
}


def _register_comparison(operation: str, node: str, departs: list[Departure]) -> None:
    @binary(operation, departs=departs)
    def emit(op: Builder, a: Value, b: Value):
        if a.dtype == D.BOOL and node != "Equal":  # false is less than true
            a, b = op.Cast(a, to=D.UINT8), op.Cast(b, to=D.UINT8)
        return op.node(node, a, b)


for _operation, _row in _COMPARISONS.items():
    _register_comparison(_operation, *_row)


@binary("NotEqual", departs=[INTEGERS_IN_FLOAT32, PDPD_REJECTED])
def not_equal(op: Builder, a: Value, b: Value):
    """NotEqual-1."""
    return op.Not(op.Equal(a, b))


@rule("Select", departs=[PDPD_REJECTED])
def select(
    op: Builder,
    condition: Value,
    then: Value,
    otherwise: Value,
    *,
    auto_broadcast: AutoBroadcast = "numpy",
    auto_broadcast_axis: int = 0,
):
    """Select-1; with "pdpd", the condition and the third input are broadcast to the second."""
    condition = align(op, then, condition, auto_broadcast, auto_broadcast_axis)
    otherwise = align(op, then, otherwise, auto_broadcast, auto_broadcast_axis)
    return op.Where(condition, then, otherwise)


@rule("IsNaN", since="opset10")
def is_nan(op: Builder, x: Value):
    """IsNaN-10."""
    return op.IsNaN(_float(x))


@rule("IsInf", since="opset10")
def is_inf(op: Builder, x: Value, *, detect_negative: bool = True, detect_positive: bool = True):
    """IsInf-10."""
    return op.IsInf(_float(x), detect_negative=int(detect_negative), detect_positive=int(detect_positive))


@rule(
    "IsFinite",
    since="opset10",
    departs=[
        Departure(
            where="numbers below 2^-126, the least normal one",
            cpu="treats them as infinite or NaN",
            specification="treats them as finite",
            follows="specification",
            avx512=True,
        )
    ],
)
def is_finite(op: Builder, x: Value):
    """IsFinite-10."""
    return op.Not(op.Or(op.IsNaN(_float(x)), op.IsInf(x)))


def _float(x: Value) -> Value:
    if x.dtype not in FLOATS:
        raise Malformed(f"its input is {x.dtype and x.dtype.name}; expected floats")
    return x
