"""Bounds of integers, derived from their producers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.openvino.rules._value_ranges import bounds
from onnx_specops.building import Builder, new_value

D = ir.DataType
INT64 = -(2**63), 2**63 - 1


@pytest.fixture
def op() -> Builder:
    return Builder(ir.Graph([], [], nodes=[], name="graph"))


def value(dtype, *dims):
    return new_value(dtype, dims)


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        (lambda op, x: x, INT64),
        (lambda op, x: op.Cast(x, to=D.UINT8), (0, 255)),
        (lambda op, x: op.Cast(op.Cast(x, to=D.UINT8), to=D.INT64), (0, 255)),
        (lambda op, x: op.Cast(value(D.FLOAT, 3), to=D.INT64), INT64),
        (lambda op, x: op.Cast(value(D.BOOL, 3), to=D.INT64), (0, 1)),
        (lambda op, x: op.Clip(x, 2, 9), (2, 9)),
        (lambda op, x: op.Clip(x, 2, None), (2, 2**63 - 1)),
        (lambda op, x: op.Min(op.Max(x, 0), 7), (0, 7)),
        (lambda op, x: op.Max(x, 3), (3, 2**63 - 1)),
        (lambda op, x: op.Mod(x, 10), (0, 9)),
        (lambda op, x: op.Mod(x, 10, fmod=1), (-9, 9)),
        (lambda op, x: op.Mod(x, -10), INT64),
        (lambda op, x: op.Add(op.Mod(x, 10), 5), (5, 14)),
        (lambda op, x: op.Add(x, 1), INT64),
        (lambda op, x: op.Sub(0, op.Mod(x, 10)), (-9, 0)),
        (lambda op, x: op.Mul(op.Sub(op.Mod(x, 10), 3), -2), (-12, 6)),
        (lambda op, x: op.Where(value(D.BOOL, 3), op.Mod(x, 4), -1), (-1, 3)),
        (lambda op, x: op.Concat(op.Mod(x, 4), [9], axis=0), (0, 9)),
        (lambda op, x: op.Reshape(op.Unsqueeze(op.Mod(x, 4), [0]), [-1]), (0, 3)),
        (lambda op, x: op.ArgMax(value(D.FLOAT, 3, 8), axis=-1), (0, 7)),
        (lambda op, x: op.ArgMax(value(D.FLOAT, 3, None), axis=-1), INT64),
        (lambda op, x: op.TopK(value(D.FLOAT, 3, 8), [2])[1], (0, 7)),
        (lambda op, x: op.specops.StringToHashBucket(value(D.STRING, 3), num_buckets=10), (0, 9)),
        (lambda op, x: op.specops.VocabularyTable(x, op.const(np.arange(5)), num_oov_buckets=3), (0, 7)),
        (lambda op, x: op.specops.VocabularyTable(x, op.const(np.arange(5))), (-1, 4)),
        (lambda op, x: op.specops.Multinomial(value(D.FLOAT, 2, 6), op.const(3), with_replacement=1), (0, 5)),
        (lambda op, x: op.specops.SearchSorted(x, x), INT64),
    ],
)  # fmt: skip
def test_bounds(op, emit, expected):
    assert bounds(emit(op, value(D.INT64, 3))) == expected


def test_sums_that_wrap_around_have_no_bounds(op):
    x = op.Cast(op.Max(value(D.INT32, 3), 2**31 - 1), to=D.INT32)
    assert bounds(op.Add(x, x)) == (-(2**31), 2**31 - 1)


def test_shared_values_are_visited_once(op):
    x = op.Mod(value(D.INT64, 3), 2)
    for _ in range(22):
        x = op.Add(x, x)
    assert bounds(x) == (0, 2**22)
