"""Products of matrices."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case


def _mat_mul(a, b, transpose_a=False, transpose_b=False, dtype=np.float32, constant_b=False):
    """A model of one MatMul; ``a`` and ``b`` are partial shapes, ``None`` an unknown rank."""
    import openvino as ov
    from openvino import opset1

    def build():
        shapes = [ov.PartialShape.dynamic() if s is None else ov.PartialShape(list(s)) for s in (a, b)]
        x = opset1.parameter(shapes[0], dtype)
        if constant_b:
            weights = np.arange(int(np.prod(b)), dtype=dtype).reshape(b) % 7
            return ov.Model([opset1.matmul(x, opset1.constant(weights), transpose_a, transpose_b)], [x])
        y = opset1.parameter(shapes[1], dtype)
        return ov.Model([opset1.matmul(x, y, transpose_a, transpose_b)], [x, y])

    return build


def _values(*shape, dtype=np.float32):
    return ((np.arange(int(np.prod(shape))) * 7 % 11) - 5).astype(dtype).reshape(shape)


_NOTHING = {"oracle": "evaluate", "reason": "the CPU plugin fails where the dimension to sum over is empty"}
CASES = [
    Case("MatMul", "opset1", "vectors", _mat_mul([5], [5], True, True), [(_values(5), _values(5))]),
    Case("MatMul", "opset1", "vector-matrix", _mat_mul([5], [3, 5], False, True), [(_values(5), _values(3, 5))]),
    Case("MatMul", "opset1", "matrix-vector", _mat_mul([5, 3], [5], True, True), [(_values(5, 3), _values(5))]),
    Case(
        "MatMul", "opset1", "batches", _mat_mul([2, 1, 4, 3], [5, 4, 2], True), [(_values(2, 1, 4, 3), _values(5, 4, 2))]
    ),
    Case(
        "MatMul",
        "opset1",
        "dynamic-rank",
        _mat_mul(None, None, True, True),
        [(_values(3, 2), _values(4, 3)), (_values(2, 3, 2), _values(4, 3)), (_values(3), _values(3)), (_values(3, 2), _values(3))],
        oracle="evaluate",
        reason="the CPU plugin takes no Parameter of dynamic rank",
    ),
    Case("MatMul", "opset1", "i32", _mat_mul([-1, 3], [3, -1], dtype=np.int32), [(_values(2, 3, dtype=np.int32), _values(3, 4, dtype=np.int32))]),
    Case("MatMul", "opset1", "f16", _mat_mul([-1, 3], [3, -1], dtype=np.float16), [(_values(2, 3, dtype=np.float16), _values(3, 4, dtype=np.float16))]),
    Case("MatMul", "opset1", "constant-transposed", _mat_mul([-1, 3], [4, 3], False, True, constant_b=True), [(_values(2, 3),), (_values(0, 3),)]),
    Case("MatMul", "opset1", "i8-bounded", _mat_mul([-1, 4], [4, -1], dtype=np.int8), [(_values(2, 4, dtype=np.int8) * 4, _values(4, 3, dtype=np.int8) * 3)]),
    Case("MatMul", "opset1", "nothing-summed", _mat_mul([-1, 0, 3], [2, 4, 0], True, True), [(_values(2, 0, 3), _values(2, 4, 0))], **_NOTHING),
    Case("MatMul", "opset1", "nothing-summed-of-a-vector", _mat_mul([-1], [2, 4, 0], True, True), [(_values(0), _values(2, 4, 0))], **_NOTHING),
]  # fmt: skip
