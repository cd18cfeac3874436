"""Changed numbers change the outputs' values, not their shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset11

from tests.conformance.changed import infer_changed, infer_limited
from tests.conformance.oracle import Oracle


@pytest.mark.parametrize("halves", [False, True])
def test_scales_of_interpolate_are_kept(halves: bool, oracle: Oracle, tmp_path: Path) -> None:
    x = opset11.parameter([1, 1, -1, 4], np.float32)
    weights = opset11.constant(np.arange(1, 5, dtype=np.float32))
    scales = opset11.constant(np.full(2, 2, np.float16 if halves else np.float32))
    large = opset11.interpolate(
        opset11.multiply(x, weights),
        opset11.convert(scales, "f32") if halves else scales,
        "nearest",
        "scales",
        axes=opset11.constant(np.array([2, 3])),
    )
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model([large], [x]), path, compress_to_fp16=False)
    ones = np.ones((1, 1, 8, 4), np.float32)
    (got,) = oracle.ask(infer_changed, str(path), [ones], 0.25, 0)
    assert got.shape == (1, 1, 16, 8)
    expected = np.repeat(np.arange(1, 5, dtype=np.float32), 2)
    assert (np.abs(got / expected - 1) > 0.05).all()  # the inputs and weights are changed


def test_limited_numbers(oracle: Oracle, tmp_path: Path) -> None:
    """Finite numbers beyond the limit, also of scalars. Infinities and others are kept."""
    x = opset11.parameter([4], np.float32)
    numbers = opset11.constant(np.array([1e5, -3e38, -np.inf, 2], np.float32))
    path = tmp_path / "model.xml"
    scaled = opset11.multiply(opset11.add(x, numbers), opset11.constant(np.float32(-1e6)))
    ov.save_model(ov.Model([opset11.add(x, numbers), scaled], [x]), path, compress_to_fp16=False)
    sums, products = oracle.ask(infer_limited, str(path), [np.ones(4, np.float32)], 65504.0)
    np.testing.assert_array_equal(sums, np.array([65505, -65503, -np.inf, 3], np.float32))
    np.testing.assert_array_equal(products, sums * np.float32(-65504))
