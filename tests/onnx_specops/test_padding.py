"""Zero padding, against NumPy's."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnx_specops.building import new_value
from onnx_specops.padding import pad
from tests.onnx_specops.test_building import builder, run

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("ranked", [True, False])
@pytest.mark.parametrize("counted", [False, True])
def test_zeros_along_some_axes(ranked, counted):
    given, shape = new_value(ir.DataType.FLOAT, [2, 3, 4], "x"), new_value(ir.DataType.INT64, [None], "shape")
    op = builder(given, shape)
    x = op.Reshape(given, [2, 3, 4] if ranked else shape)
    assert (x.rank is not None) == ranked
    after = op.Shape(x, start=0, end=1) if counted else 2  # known at run time or before
    padded = pad(op, x, [-1, 0], [1, 0], [0, after])
    # Outputs have known ranks.
    got, shape_of_it = run(op, [op.Reshape(padded, [-1]), op.Shape(padded)], x=X, shape=np.array([2, 3, 4]))
    np.testing.assert_array_equal(got.reshape(shape_of_it), np.pad(X, [(0, 2), (0, 0), (1, 0)]))


def test_pad_after_a_transpose():
    """ONNX Runtime moves it after the Pad, whose axes would then be wrong."""
    x = new_value(ir.DataType.FLOAT, [2, 3, 4], "x")
    op = builder(x)
    turned = op.Transpose(x, perm=[2, 0, 1])
    (got,) = run(op, [op.Transpose(pad(op, turned, [1], [0], [1]), perm=[1, 2, 0])], x=X)
    np.testing.assert_array_equal(got, np.pad(X, [(0, 1), (0, 0), (0, 0)]))
