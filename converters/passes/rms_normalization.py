"""RMS normalization in the only form that ONNX Runtime recognizes.

ONNX has the operator from opset 23. Before, ONNX Runtime fuses ``Pow``, ``ReduceMean``, ``Add``, ``Sqrt``, ``Div`` and
``Mul`` with scalars and a vector as constants. OpenVINO's constants have the rank of the data, and there are several forms
of the square, the root and the quotient.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, number, rewrite
from onnx_specops.building import Builder, Value

_Form = Callable[[Any, Any], Any]

_SQUARES: tuple[_Form, ...] = (
    lambda op, x: op.Pow(x, number(2)),
    lambda op, x: op.Mul(x, x),
)
_INVERSE_ROOTS: tuple[_Form, ...] = (
    lambda op, x: op.Div(number(1), op.Sqrt(x)),
    lambda op, x: op.Reciprocal(op.Sqrt(x)),
    lambda op, x: op.Pow(op.Sqrt(x), number(-1)),
    lambda op, x: op.Pow(x, number(-0.5)),
)


def _spelling(square: _Form, normal: Callable[[Any, Any, Any], Any]) -> Rewrite:
    def pattern(op: Any, x: Any, axes: Any, epsilon: Any, scale: Any) -> Any:
        mean = op.ReduceMean(square(op, x), axes, _outputs=["mean"])
        return op.Mul(normal(op, x, op.Add(mean, epsilon)), scale, _outputs=["whole"])

    @rewrite("Mul", pattern, commute=True)
    def replace(
        op: Builder, *, x: Value, axes: Value, epsilon: Value, scale: Value, mean: Value, whole: Value
    ) -> Value | None:
        rank, size = x.rank, None if scale.dims is None else scale.dims[-1:]
        if x.dtype != ir.DataType.FLOAT or not rank or (whole.rank or 0) < rank or not size or not _is_last(axes, rank):
            return None
        if epsilon.constant is None or epsilon.constant.size != 1 or mean.rank != rank or scale.dims is None:
            return None
        if size != (x.dims or [])[-1:] or size[0] is None or any(d != 1 for d in scale.dims[:-1]):
            return None
        squares = op.ReduceMean(op.Pow(x, op.const(2.0, x.dtype)), [-1], keepdims=1)
        root = op.Sqrt(op.Add(squares, op.const(epsilon.constant.item(), x.dtype)))
        result: Value = op.Mul(op.Div(x, root), scale if len(scale.dims) == 1 else op.Reshape(scale, size))
        # ONNX Runtime's fusion would lose the dimensions that a constant of a higher rank adds.
        added = range((whole.rank or 0) - rank)
        return op.Unsqueeze(result, list(added)) if added else result

    return replace


def _is_last(axes: Value, rank: int) -> bool:
    return axes.constant is not None and axes.constant.size == 1 and int(axes.constant.item()) in (-1, rank - 1)


def _multiplied(inverse_root: _Form) -> Callable[[Any, Any, Any], Any]:
    return lambda op, x, square: op.Mul(x, inverse_root(op, square))


class CanonicalizeRMSNormalization(PatternPass):
    """Canonicalize x / sqrt(mean(x^2) + epsilon) * scale."""

    rewrites = tuple(
        _spelling(square, normal)
        for square, normal in product(
            _SQUARES, (lambda op, x, square: op.Div(x, op.Sqrt(square)), *map(_multiplied, _INVERSE_ROOTS))
        )
    )
