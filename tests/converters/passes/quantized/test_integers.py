"""What lies between quantised tensors, in integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties of their own
STEP = 1 / 64


@pytest.mark.parametrize(
    ("shape", "axes", "pooled"),
    [
        ([2, 4, 5, 6], [2, 3], True),
        ([2, 4, 5, 6], [-1, 2], True),
        ([2, 4, 5], [2], True),
        ([2, 4, 5, 6], [3], False),
        ([2, 4, 5, 6], [1, 2, 3], False),
        ([2, 4], [], False),
        ([2, 4], [1], False),
        ([4], [], False),
    ],
    ids=str,
)
def test_mean(shape: list[int], axes: list[int], pooled: bool, tmp_path: Path) -> None:
    """A mean over all but batch and channels is a pooling; over no axes it is nothing, of two dimensions too."""
    x = ops.parameter(shape, np.float32, name="x")
    mean = ops.reduce_mean(quantized(x), constant(np.array(axes, np.int64)), True)
    weights = constant(np.float32([[0.5]]))
    flat = ops.reshape(quantized(mean), constant(np.array([-1, 1])), False)
    given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    model = compared(ov.Model([ops.matmul(flat, weights, False, False)], [x]), tmp_path, given, atol=0.51 * STEP)
    assert ("GlobalAveragePool" in names(model)) is pooled
