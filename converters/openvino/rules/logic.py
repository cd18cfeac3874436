"""Elementwise logic of booleans and bits."""

from __future__ import annotations

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._elementwise import PDPD_REJECTED, binary, check_types
from converters.openvino.rules._precision import SIGNED, UNSIGNED, D
from onnx_specops.building import Builder, Value

_PDPD_REJECTED = Departure(
    where="`auto_broadcast=pdpd`",
    cpu="rejects it",
    specification="broadcasts the second operand to the first",
    follows="specification",
)

# Operations on booleans, and on bits, where a boolean is one bit: operation -> (since, node for booleans, node for integers,
# where the CPU plugin differs from the reference).
_BINARY = {
    "LogicalAnd": ("opset1", "And", None, [PDPD_REJECTED]),
    "LogicalOr": ("opset1", "Or", None, [PDPD_REJECTED]),
    "LogicalXor": ("opset1", "Xor", None, [PDPD_REJECTED]),
    "Xor": ("opset1", "Xor", None, []),
    "BitwiseAnd": ("opset13", "And", "BitwiseAnd", [_PDPD_REJECTED]),
    "BitwiseOr": ("opset13", "Or", "BitwiseOr", [_PDPD_REJECTED]),
    "BitwiseXor": ("opset13", "Xor", "BitwiseXor", [_PDPD_REJECTED]),
}


def _register(operation: str, since: str, of_booleans: str, of_integers: str | None, departs: list[Departure]) -> None:
    @binary(operation, since=since, departs=departs)
    def emit(op: Builder, a: Value, b: Value):
        return op.node(of_integers if of_integers and a.dtype != D.BOOL else of_booleans, a, b)


for _operation, _row in _BINARY.items():
    _register(_operation, *_row)


@rule("LogicalNot")
def logical_not(op: Builder, x: Value):
    """LogicalNot-1; OpenVINO also accepts numbers, and gives 1 for 0 and 0 for all others."""
    return op.Not(x) if x.dtype == D.BOOL else op.Cast(op.Equal(x, 0), to=x.dtype)


@rule("BitwiseNot", since="opset13")
def bitwise_not(op: Builder, x: Value):
    """BitwiseNot-13."""
    return op.Not(x) if x.dtype == D.BOOL else op.BitwiseNot(x)


_PDPD_OF_BITS = Departure(
    where="`auto_broadcast=pdpd`",
    cpu="uses the first element of the second operand for all elements",
    specification="broadcasts the second operand to the first",
    follows="specification",
)
_UNSIGNED_OF = {D.INT8: D.UINT8, D.INT16: D.UINT16, D.INT32: D.UINT32, D.INT64: D.UINT64}


@binary("BitwiseLeftShift", since="opset15", departs=[_PDPD_OF_BITS])
def bitwise_left_shift(op: Builder, a: Value, b: Value):
    """BitwiseLeftShift-15: bits beyond the type's width are dropped. For large or negative shifts, see `_within`."""
    return _shift(op, a, b, "LEFT")


@binary(
    "BitwiseRightShift",
    since="opset15",
    departs=[
        Departure(
            where="u32 and u64 whose top bit is set",
            cpu="shifts in copies of that bit, as for signed integers",
            specification="shifts in zeros",
            follows="specification",
        ),
        _PDPD_OF_BITS,
    ],
)
def bitwise_right_shift(op: Builder, a: Value, b: Value):
    """BitwiseRightShift-15: the sign bit of negative numbers is shifted in."""
    if a.dtype not in SIGNED:
        return _shift(op, a, b, "RIGHT")
    # ~(~a >> b) shifts ones into a negative a. Both cases are combined as a ^ mask, where mask is all ones for negative
    # numbers.
    mask = op.Where(op.Less(a, 0), op.const(-1, a.dtype), op.const(0, a.dtype))
    return op.BitwiseXor(_shift(op, op.BitwiseXor(a, mask), b, "RIGHT"), mask)


def _shift(op: Builder, a: Value, b: Value, direction: str) -> Value:
    """Shift integers. ONNX supports unsigned ones only."""
    check_types(a, b)
    if a.dtype not in UNSIGNED and a.dtype not in SIGNED:
        raise Malformed(f"its inputs are {a.dtype and a.dtype.name}; expected integers")
    if a.dtype in UNSIGNED:
        return op.BitShift(a, _within(op, b), direction=direction)
    to = _UNSIGNED_OF[a.dtype]
    return op.Cast(op.BitShift(op.Cast(a, to=to), op.Cast(_within(op, b), to=to), direction=direction), to=a.dtype)


def _within(op: Builder, b: Value) -> Value:
    """Return shifts modulo 32, or 64 for wider types, as processors compute them.

    The specification leaves shifts undefined that are negative or exceed the type's bits. Narrow types are shifted as
    integers of 32 bits.
    """
    assert b.dtype is not None
    bits = max(32, 8 * int(b.dtype.itemsize))
    if b.constant is not None and ((b.constant >= 0) & (b.constant < bits)).all():
        return b
    return op.Mod(b, op.const(bits, b.dtype))
