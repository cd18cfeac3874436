"""VolumeConv with transformed lines: three taps along the width as four products for two pixels.

Only constant weights are transformed, so that the same weights as an input give the direct sums.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.onnx_specops.ops import one_node
from tests.processor import instruction_sets

F = np.float32
Shape = tuple[int, ...]


def _inputs(x: Shape, w: Shape) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(sum(x) + sum(w))
    return {
        "X": rng.standard_normal(x).astype(F),
        "W": rng.standard_normal(w).astype(F),
        "bias": rng.standard_normal(w[0]).astype(F),
    }


def _transformed(inputs: dict[str, np.ndarray], **attributes: Any) -> np.ndarray:
    result: np.ndarray = one_node.run("native", "VolumeConv", inputs, attributes, constants=["W"])
    return result


def _direct(inputs: dict[str, np.ndarray], **attributes: Any) -> np.ndarray:
    result: np.ndarray = one_node.run("native", "VolumeConv", inputs, attributes)
    return result


HITS: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "volume": ((2, 3, 5, 9, 20), (16, 3, 3, 3, 3), {"pads": "1,1,1,1,1,1"}),
    "odd_width": ((1, 8, 2, 9, 13), (17, 8, 1, 3, 3), {"pads": "0,1,1,0,1,1", "slope": 0.25}),
    "image": ((1, 8, 12, 33), (20, 8, 3, 3), {"pads": "1,1,1,1", "slope": 0.0}),
    "line": ((1, 24, 61), (16, 24, 3), {"pads": "1,1"}),
    "longest_line": ((1, 24, 514), (16, 24, 3), {}),
    "no_pads": ((1, 8, 4, 9, 12), (16, 8, 2, 3, 3), {}),
    "wide_pads": ((1, 8, 4, 3, 6), (16, 8, 3, 3, 3), {"pads": "2,4,9,3,2,5"}),
    "strides": ((1, 4, 9, 21, 14), (19, 4, 3, 3, 3), {"strides": "2,3,1", "pads": "1,1,1,1,1,1"}),
    "dilations": ((1, 4, 9, 21, 14), (16, 4, 3, 3, 3), {"dilations": "3,2,1", "pads": "3,2,1,3,2,1"}),
    "groups": ((2, 16, 4, 9, 12), (34, 8, 1, 3, 3), {"group": 2, "pads": "0,1,1,0,1,1"}),
    "columns_in_parts": ((1, 8, 6, 9), (300, 8, 3, 3), {"pads": "1,1,1,1"}),
    "channels_in_parts": ((1, 260, 12, 33), (16, 260, 3, 3), {"pads": "1,1,1,1"}),
    "no_depth": ((1, 9, 2, 7, 7), (24, 9, 3, 3, 3), {"pads": "3,1,1,3,1,1"}),
}


def check(name: str) -> None:
    """Compare transformed lines with direct sums and ONNX Runtime's Conv."""
    x, w, attributes = HITS[name]
    inputs = _inputs(x, w)
    got, direct = (run(inputs, **attributes) for run in (_transformed, _direct))
    expected = one_node.run("body", "VolumeConv", inputs, attributes)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=2e-6)
    np.testing.assert_allclose(got / scale, direct / scale, rtol=0, atol=2e-6)
    assert not np.array_equal(got, direct)


@pytest.mark.parametrize("name", HITS)
def test_transformed_lines(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", instruction_sets("portable", "avx2", "avx512"))
def test_each_instruction_set(name: str) -> None:
    environment = {**os.environ, "ONNX_SPECOPS_SIMD": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    module = "tests.onnx_specops.native.test_transformed_lines"
    program = f"from {module} import HITS, check; [check(name) for name in HITS]"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


NEAR_MISSES: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "two_taps": ((1, 16, 9, 20), (16, 16, 3, 2), {}),
    "four_taps": ((1, 16, 9, 20), (16, 16, 3, 4), {}),
    "stride": ((1, 16, 9, 40), (16, 16, 3, 3), {"strides": "1,2"}),
    "dilation": ((1, 16, 9, 20), (16, 16, 3, 3), {"dilations": "1,2"}),
    "few_columns": ((1, 16, 9, 20), (15, 16, 3, 3), {}),
    "few_columns_of_groups": ((1, 32, 9, 20), (30, 16, 3, 3), {"group": 2}),
    "few_products": ((1, 7, 9, 20), (16, 7, 3, 3), {}),
    "few_positions": ((1, 16, 9, 8), (16, 16, 3, 3), {}),
    "long_line": ((1, 24, 515), (16, 24, 3), {}),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name: str) -> None:
    x, w, attributes = NEAR_MISSES[name]
    inputs = _inputs(x, w)
    np.testing.assert_array_equal(_transformed(inputs, **attributes), _direct(inputs, **attributes))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_numbers_that_are_not_finite(special: float, slope: float) -> None:
    inputs = _inputs((2, 8, 9, 21), (16, 8, 3, 3))
    for x, y in ((0, 0), (4, 7), (8, 20)):
        inputs["X"][1, 3, x, y] = special
    attributes = {"pads": "1,1,1,1", "slope": slope}
    got = _transformed(inputs, **attributes)
    np.testing.assert_array_equal(got, _direct(inputs, **attributes))
    np.testing.assert_allclose(got, one_node.run("body", "VolumeConv", inputs, attributes), rtol=1e-4, atol=1e-4)


def test_sums_beyond_the_largest_number() -> None:
    inputs = _inputs((1, 8, 9, 20), (16, 8, 3, 3))
    inputs["X"][...] = np.finfo(F).max * F(0.75)  # their sums are infinite, but not their products with small weights
    inputs["W"] *= F(1e-3)
    got = _transformed(inputs)
    assert np.isfinite(got).all()
    np.testing.assert_array_equal(got, _direct(inputs))
