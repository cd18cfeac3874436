"""MatMulIntegerToFloat: the product of two quantized matrices, as floats."""

from __future__ import annotations

from onnx import TensorProto as Type

from onnx_specops.contrib.declaring import contrib_operator


@contrib_operator(
    inputs={
        "A": "T1", "B": "T2", "a_scale": "T3", "b_scale": "T3", "a_zero_point": "T1", "b_zero_point": "T2", "bias": "T3"
    },
    outputs={"Y": "T3"},
    types={"T1": ("int8", "uint8"), "T2": ("int8", "uint8"), "T3": ("float",)},
)  # fmt: skip
def MatMulIntegerToFloat(op, A, B, a_scale, b_scale, a_zero_point=None, b_zero_point=None, bias=None):
    """Computes the matrix product of ``a_scale * (A - a_zero_point)`` and ``b_scale * (B - b_zero_point)``, plus ``bias``.

    Inputs:
        A: [..., M, K].
        B: [..., K, N].
        a_scale, a_zero_point: one element each. An omitted zero point is 0.
        b_scale, b_zero_point: one element or [N] each.
        bias: [N]; optional.

    Output: [..., M, N].

    Source: ONNX Runtime, docs/ContribOperators.md.
    """
    product = op.MatMul(_numbers(op, A, a_scale, a_zero_point), _numbers(op, B, b_scale, b_zero_point))
    return product if bias is None else op.Add(product, bias)


def _numbers(op, integers, scale, zero):
    numbers = op.Cast(integers, to=Type.FLOAT)
    if zero is not None:
        numbers = op.Sub(numbers, op.Cast(zero, to=Type.FLOAT))
    return op.Mul(numbers, scale)


@MatMulIntegerToFloat.infer_shapes
def _(node):
    a, b = node.shape(0), node.shape(1)
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return [None]
    batch = a[:-2] if len(b) == 2 else [None] * (max(len(a), len(b)) - 2)
    return [[*batch, a[-2], b[-1]]]
