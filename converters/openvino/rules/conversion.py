"""Conversions between element types."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.openvino.bfloat16 import to_bfloat16
from converters.openvino.onnx_types import data_type
from converters.openvino.packed import renumbered
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Layer
from converters.openvino.rule import Context, Departure, rule
from converters.openvino.rules._low_precision import LOW_PRECISION, to_low_precision
from converters.openvino.rules._precision import BYTES, FLOATS, INTEGERS, D, truncated
from onnx_specops.building import OPSET, Builder, Value, constant_value
from onnx_specops.folding import FOLDED_ELEMENTS

_T = ElementType
_FLOAT8 = {D.FLOAT8E4M3FN, D.FLOAT8E5M2}


_DEPARTS = [
    Departure(
        where="floats beyond the range of i32, to u32, i64 and u64",
        cpu="gives the bits of the lowest i32",
        reference="converts them, those of u32 modulo 2^32",
        follows="reference",
    ),
    Departure(where="f64 beyond the range of i8 and u8, to these", cpu="saturates", reference="wraps", follows="reference"),
    Departure(
        where="floats beyond the range of i8 and u8, to these, where a dimension is dynamic",
        cpu="saturates",
        reference="wraps, as the plugin does where all dimensions are fixed",
        follows="reference",
    ),
    Departure(where="a NaN to boolean", cpu="gives false", reference="gives true", follows="reference"),
    Departure(
        name="integers",
        where="integers beyond the range of f16, to it",
        cpu="gives infinity",
        reference="gives its largest finite number",
        follows="cpu",
    ),
    Departure(
        where="f16 and f32 to bf16",
        cpu="rounds to the nearest",
        reference="rounds to the nearest where the last digit is odd, else toward zero, as the plugin does from other types",
        follows="cpu",
    ),
    Departure(where="f32 to f16 and back", cpu="leaves them unchanged", reference="rounds to f16", follows="reference"),
    Departure(
        where="floats beyond the range of i16, u16 and u32, to these and to a wider type",
        cpu="leaves their integers unchanged",
        reference="wraps them",
        follows="reference",
    ),
    Departure(
        where="numbers to i4 or u4, and to a wider type again",
        cpu="leaves them unchanged",
        reference="keeps their lowest four bits",
        follows="reference",
    ),
    Departure(where="numbers to u3 and u6", cpu="rejects them", reference="converts them", follows="reference"),
]


@rule("Convert", departs=_DEPARTS)
def convert(op: Builder, x: Value, *, destination_type: ElementType, context: Context):
    """Convert-1: floats are truncated to integers, integers wrap, and nonzero numbers become true.

    Floats out of the range of a small integer type also wrap, through a wider type.
    """
    if x.const_value is not None and x.dtype in BYTES and (x.rank or 0) > 1 and destination_type in (_T.F32, _T.F16):
        return op.at(OPSET).Cast(x, to=data_type(destination_type))  # weights stay 8 bits, however few they are
    if x.dtype in BYTES and data_type(destination_type) in FLOATS and (exact := _exact(op, x)) is not None:
        if exact.dtype == data_type(destination_type):
            return exact
        narrow = op.Cast(exact, to=data_type(destination_type))
        narrow.unrounded = True
        return narrow
    source = context.input_type()
    if source == _T.NF4 and destination_type != _T.BF16 and _is_decompressed_by_products(context.layer):
        levels = op.at(OPSET).Cast(x, to=data_type(destination_type))
        levels.unrounded = True
        return levels
    result = converted(op, x, source, destination_type)
    if (source, destination_type) == (_T.BF16, _T.F32) and x.const_value is None and _is_folded(context.layer):
        result.unrounded = True
    return result


def _is_folded(layer: Layer) -> bool:
    """Return whether OpenVINO folds the constants of a Convert from bf16, which it does in float32.

    It does not fold constants of at most 8 bits for MatMul, and then rounds the products with their scales.
    """
    constants = _constants(layer)
    consumers = [port.layer.type for port in layer.outputs[0].consumers]
    return constants is not None and not ("MatMul" in consumers and any(kind.bits <= 8 for kind in constants))


def _constants(layer: Layer) -> list[ElementType] | None:
    """Return the types of the constants from which a layer is computed; ``None`` if it depends on something else."""
    found, seen, pending = list[ElementType](), {layer}, [layer]
    while pending:
        for source in (port.source.layer for port in pending.pop().inputs):
            if source.constant is not None:
                found.append(source.constant.element_type)
            elif not source.inputs:
                return None
            elif source not in seen:
                seen.add(source)
                pending.append(source)
    return found


def _is_decompressed_by_products(convert: Layer) -> bool:
    """Return whether OpenVINO's CPU plugin keeps the levels of an nf4 constant unrounded.

    It does if only MatMul uses them, multiplied by scales, perhaps minus a zero point, with their groups merged before the
    last Convert. For other consumers, it folds them in the types of the Converts.
    """
    if convert.inputs[0].source.layer.constant is None or (layer := _only_user(convert)) is None:
        return False
    if layer.type == "Subtract" and layer.inputs[0].source.layer is convert and (layer := _only_user(layer)) is None:
        return False
    if layer.type != "Multiply":
        return False
    for kind in ("Reshape", "Convert", "Transpose"):
        if (following := _only_user(layer)) is not None and following.type == kind:
            layer = following
    return all(port.layer.type == "MatMul" for port in layer.outputs[0].consumers)


def _only_user(layer: Layer) -> Layer | None:
    consumers = layer.outputs[0].consumers
    return consumers[0].layer if len(consumers) == 1 else None


def _exact(op: Builder, x: Value) -> Value | None:
    """Return the unrounded floats of ``x``, if a rule marked them, possibly transposed."""
    orders = []
    node = x.producer()
    while node is not None and (node.op_type, node.domain) == ("Transpose", "") and isinstance(node.inputs[0], Value):
        orders.append(node.attributes.get_ints("perm"))
        x = node.inputs[0]
        node = x.producer()
    if not x.unrounded or node is None:
        return None
    (clip,) = node.inputs
    rounded = None if clip is None else clip.producer()
    exact = None if rounded is None or rounded.inputs[0] is None else rounded.inputs[0].producer()
    value = None if exact is None else exact.inputs[0]
    assert isinstance(value, Value)
    for perm in reversed(orders):
        value = op.Transpose(value) if perm is None else op.Transpose(value, perm=list(perm))
    return value


@rule("ConvertLike", departs=_DEPARTS)
def convert_like(op: Builder, x: Value, like: Value, *, context: Context):
    """ConvertLike-1: to the element type of the second input, whose values are not used."""
    source, target = context.input_type(0), context.input_type(1)
    return converted(op, x, source, target)


@rule("ConvertPromoteTypes", since="opset14")
def convert_promote_types(
    op: Builder,
    a: Value,
    b: Value,
    *,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: ElementType = ElementType.F32,
    context: Context,
):
    """ConvertPromoteTypes-14."""
    types = [context.input_type(0), context.input_type(1)]
    ranks = [(True, False) if value.rank is None else (value.rank == 0,) for value in (a, b)]
    possible = {
        _promoted(types, scalars, pytorch_scalar_promotion, u64_integer_promotion_target)
        for scalars in itertools.product(*ranks)
    }
    if len({common for common, _ in possible}) > 1:
        raise Unsupported("the ranks of its inputs determine the type of its outputs, and one rank is unknown")
    # If the ranks decide whether the promotion is safe, assume that it is not.
    common, safe = min(possible, key=lambda promoted: promoted[1])
    if not (safe or promote_unsafe):
        raise Malformed(f"promoting {types[0]} and {types[1]} to {common} may lose values, which promote_unsafe forbids")
    return [converted(op, value, kind, common) for value, kind in zip((a, b), types, strict=True)]


def _promoted(
    types: list[ElementType], scalars: Sequence[bool], pytorch: bool, u64_target: ElementType
) -> tuple[ElementType, bool]:
    """Return the common type of two, and whether it represents all their values without being wider than necessary."""
    a, b = types
    if a == b or b == _T.BOOLEAN:
        return a, True
    if a == _T.BOOLEAN:
        return b, True
    if a.is_floating != b.is_floating:
        real, integer = (a, b) if a.is_floating else (b, a)
        return real, real.bits >= 2 * integer.bits
    if pytorch and scalars[0] != scalars[1]:
        target, scalar = (b, a) if scalars[0] else (a, b)
        if target.is_signed == scalar.is_signed:
            return target, target.bits >= scalar.bits
        return target, target.is_signed and 2 * target.bits >= scalar.bits
    if a.is_signed != b.is_signed:
        unsigned, signed = (b, a) if a.is_signed else (a, b)
        if unsigned == _T.U64:
            return u64_target, False
        return _T(f"i{max(2 * unsigned.bits, signed.bits)}"), 2 * unsigned.bits <= signed.bits
    if a.bits != b.bits:
        return (a if a.bits > b.bits else b), True
    # f8e4m3 with f8e5m2, f16 with bf16.
    return (_T.F16 if a.bits == 8 else _T.F32), False


def converted(op: Builder, x: Value, source: ElementType, target: ElementType) -> Value:
    """Convert ``x``, whose type in the IR is ``source``, to ``target``."""
    to = data_type(target)
    if source == target:
        return x
    if _T.STRING in (source, target):
        raise Malformed(f"it converts {source} to {target}", "OpenVINO converts numbers only")
    if x.dtype in _FLOAT8:
        x = op.Cast(x, to=D.FLOAT)
    if target in LOW_PRECISION:
        return to_low_precision(op, x, target)
    if (x.dtype, to) == (D.DOUBLE, D.UINT32):
        # ONNX Runtime (1.32) merges a Cast to int64 and one to uint32, and gives 0 beyond the range.
        return op.Cast(op.Mod(op.Cast(x, to=D.INT64), 2**32), to=to)
    if x.dtype in FLOATS and to in INTEGERS:
        return truncated(op, x, to)
    if to in _FLOAT8:
        return _to_float8(op, x if x.dtype == D.FLOAT16 else op.Cast(x, to=D.FLOAT16), to)
    if to == D.BFLOAT16 and x.dtype not in (to, *BYTES):
        return _to_bfloat16(op, x)
    return x if x.dtype == to else op.Cast(x, to=to)


def _to_bfloat16(op: Builder, x: Value) -> Value:
    """Round constants, and types other than f16 and f32, as `to_bfloat16` does."""
    if (tensor := x.const_value) is not None:
        if tensor.size <= FOLDED_ELEMENTS:
            return op.const(to_bfloat16(tensor.numpy()))
        computed = functools.cache(lambda: ir.Tensor(to_bfloat16(tensor.numpy())))
        return constant_value(ir.LazyTensor(computed, dtype=D.BFLOAT16, shape=ir.Shape(tensor.shape.numpy())))
    if (looked_up := renumbered(op, x, lambda numbers: to_bfloat16(numbers).astype(np.float32))) is not None:
        return op.Cast(looked_up, to=D.BFLOAT16)
    nearest = op.Cast(x, to=D.BFLOAT16)
    if x.dtype in (D.FLOAT, D.FLOAT16):
        return nearest
    # Numbers that were rounded away from zero to an odd last digit are corrected by one digit toward zero.
    exact, rounded = op.Cast(x, to=D.FLOAT), op.Cast(nearest, to=D.FLOAT)
    wide = op.Mul(rounded, 2.0**17 + 1)
    shorter = op.Sub(wide, op.Sub(wide, rounded))
    lower = op.Sub(rounded, op.Mul(op.Sign(rounded), op.Abs(op.Sub(shorter, rounded))))
    moved = op.And(op.Greater(op.Abs(rounded), op.Abs(exact)), op.Less(op.Abs(rounded), 2.0**100))
    return op.Cast(op.Where(moved, lower, rounded), to=D.BFLOAT16)


def _to_float8(op: Builder, x: Value, to: ir.DataType) -> Value:
    """Convert from f16, as OpenVINO does, to the nearest number; out of range to NaN or, if the type has it, infinity."""
    return op.Cast(x, to=to, saturate=0)
