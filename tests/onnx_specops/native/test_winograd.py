"""VolumeConv with Winograd's transforms: three taps along the width, or nine of a square, with fewer products.

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
    "long_line": ((1, 24, 1501), (16, 24, 3), {"pads": "0,3"}),
    "line_in_channels": ((1, 300, 130), (16, 300, 3), {"pads": "1,1"}),
    "line_of_groups": ((2, 48, 131), (34, 24, 3), {"group": 2, "dilations": "2", "pads": "1,4"}),
    **{
        f"line_{gap}_apart": (
            (2, 24, 9 * gap + 101),
            (17, 24, 3),
            {"dilations": f"{gap}", "pads": f"{gap + 1},2", "slope": 0.5},
        )
        for gap in (2, 3, 4, 5, 7, 8, 9, 16, 17, 40)
    },
    **{
        f"line_of_{taps}_taps_{gap}_apart": (
            (2, 24, taps * gap + 101),
            (17, 24, taps),
            {"dilations": f"{gap}", "pads": f"{gap},5", "slope": 0.5},
        )
        for taps in (5, 6, 9, 11)
        for gap in (1, 2, 3, 16)
    },
    "line_of_25_taps": ((1, 24, 200), (16, 24, 25), {"pads": "12,12"}),
    "line_of_taps_in_channels": ((1, 200, 130), (16, 200, 5), {"pads": "4,1"}),
    "causal_line": ((1, 24, 512), (16, 24, 3), {"dilations": "32", "pads": "64,0"}),
    "wide_pads_of_line": ((1, 24, 70), (16, 24, 3), {"dilations": "8", "pads": "90,75"}),
    "dilated_image_of_one_line": ((1, 24, 1, 120), (16, 24, 1, 3), {"dilations": "1,4", "pads": "0,3,0,4"}),
    "no_pads": ((1, 8, 4, 9, 12), (16, 8, 2, 3, 3), {}),
    "wide_pads": ((1, 8, 4, 3, 6), (16, 8, 3, 3, 3), {"pads": "2,4,9,3,2,5"}),
    "strides": ((1, 4, 9, 21, 14), (19, 4, 3, 3, 3), {"strides": "2,3,1", "pads": "1,1,1,1,1,1"}),
    "dilations": ((1, 4, 9, 21, 14), (16, 4, 3, 3, 3), {"dilations": "3,2,1", "pads": "3,2,1,3,2,1"}),
    "groups": ((2, 16, 4, 9, 12), (34, 8, 1, 3, 3), {"group": 2, "pads": "0,1,1,0,1,1"}),
    "columns_in_parts": ((1, 8, 6, 9), (300, 8, 3, 3), {"pads": "1,1,1,1"}),
    "channels_in_parts": ((1, 260, 12, 33), (16, 260, 3, 3), {"pads": "1,1,1,1"}),
    "no_depth": ((1, 9, 2, 7, 7), (24, 9, 3, 3, 3), {"pads": "3,1,1,3,1,1"}),
    "odd_square": ((2, 16, 13, 27), (17, 16, 3, 3), {"pads": "0,1,1,0", "slope": 0.25}),
    "wide_square": ((1, 8, 5, 300), (16, 8, 3, 3), {"pads": "1,1,1,1"}),
    "high_square": ((1, 8, 300, 5), (16, 8, 3, 3), {"pads": "1,1,1,1", "slope": 0.0}),
    "squares_of_groups": ((2, 48, 9, 10), (64, 24, 3, 3), {"group": 2, "pads": "1,1,1,1"}),
    "wide_pads_of_squares": ((1, 8, 3, 4), (16, 8, 3, 3), {"pads": "6,5,4,7"}),
    "squares_in_columns": ((1, 8, 11, 9), (300, 8, 3, 3), {"pads": "1,1,1,1"}),
    "squares_in_channels": ((1, 520, 12, 9), (16, 520, 3, 3), {"pads": "1,1,1,1"}),
    "squares_of_volumes": ((1, 9, 7, 11, 13), (16, 9, 3, 3, 3), {"strides": "2,1,1", "pads": "2,1,1,1,1,1"}),
    "volumes_in_channels": ((1, 60, 4, 8, 10), (16, 60, 3, 3, 3), {"dilations": "2,1,1", "pads": "2,1,1,2,1,1"}),
    "one_line": ((1, 16, 3, 40), (16, 16, 3, 3), {}),
}


def check(name: str) -> None:
    """Compare transforms with direct sums and ONNX Runtime's Conv."""
    x, w, attributes = HITS[name]
    inputs = _inputs(x, w)
    got, direct = (run(inputs, **attributes) for run in (_transformed, _direct))
    expected = one_node.run("body", "VolumeConv", inputs, attributes)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=2e-6)
    np.testing.assert_allclose(got / scale, direct / scale, rtol=0, atol=2e-6)
    assert not np.array_equal(got, direct)


@pytest.mark.parametrize("name", HITS)
def test_transforms(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", instruction_sets("portable", "avx2", "avx512"))
def test_each_instruction_set(name: str) -> None:
    environment = {**os.environ, "ONNX_SPECOPS_SIMD": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    module = "tests.onnx_specops.native.test_winograd"
    program = f"from {module} import HITS, check; [check(name) for name in HITS]"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


NEAR_MISSES: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "two_taps": ((1, 16, 9, 20), (16, 16, 3, 2), {}),
    "four_taps": ((1, 16, 9, 20), (16, 16, 3, 4), {}),
    "five_taps_of_two_lines": ((1, 16, 4, 80), (16, 16, 3, 5), {}),
    "five_taps_of_lines_with_three_rows": ((1, 16, 3, 80), (16, 16, 3, 5), {}),
    "dilation_of_lines_with_three_rows": ((1, 16, 3, 120), (16, 16, 3, 3), {"dilations": "1,4"}),
    "two_taps_of_line": ((1, 24, 120), (16, 24, 2), {}),
    "four_taps_of_line": ((1, 24, 120), (16, 24, 4), {}),
    "stride_of_line": ((1, 24, 120), (16, 24, 9), {"strides": "2"}),
    "stride": ((1, 16, 9, 40), (16, 16, 3, 3), {"strides": "1,2"}),
    "dilation": ((1, 16, 9, 20), (16, 16, 3, 3), {"dilations": "1,2"}),
    "few_columns": ((1, 16, 9, 20), (15, 16, 3, 3), {}),
    "few_columns_of_groups": ((1, 32, 9, 20), (30, 16, 3, 3), {"group": 2}),
    "few_products": ((1, 7, 9, 20), (16, 7, 3, 3), {}),
    "few_positions": ((1, 16, 8, 6), (16, 16, 3, 3), {}),
    "dilation_of_two_lines": ((1, 16, 4, 120), (16, 16, 3, 3), {"dilations": "1,2"}),
    "dilation_of_most_pixels": ((1, 24, 300), (16, 24, 3), {"dilations": "99"}),
    "few_positions_of_line": ((1, 24, 48), (16, 24, 3), {}),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name: str) -> None:
    x, w, attributes = NEAR_MISSES[name]
    inputs = _inputs(x, w)
    np.testing.assert_array_equal(_transformed(inputs, **attributes), _direct(inputs, **attributes))


def _is_transformed(axis: int, x: Shape, w: Shape, attributes: dict[str, Any]) -> bool:
    """Return whether the taps of an axis are transforms, which round numbers together that direct sums multiply by 0."""
    inputs = _inputs(x, w)
    inputs["W"].swapaxes(0, axis)[w[axis] // 2] = 0
    out = _direct(inputs, **attributes).shape[axis] // 2

    def stated(name: str, default: int) -> int:
        return int(attributes[name].split(",")[axis - 2]) if name in attributes else default

    at = out * stated("strides", 1) + w[axis] // 2 * stated("dilations", 1) - stated("pads", 0)
    inputs["X"].swapaxes(0, axis)[at] *= 2.0**30
    got, direct = (run(inputs, **attributes).swapaxes(0, axis)[out] for run in (_transformed, _direct))
    return bool(np.abs(got - direct).max() > 1)


LINES_ONLY: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "two_taps_down": ((1, 16, 9, 20), (16, 16, 2, 3), {}),
    "five_taps_down": ((1, 16, 19, 20), (16, 16, 5, 3), {}),
    "stride_down": ((1, 16, 19, 20), (16, 16, 3, 3), {"strides": "2,1", "pads": "1,1,1,1"}),
    "dilation_down": ((1, 16, 19, 20), (16, 16, 3, 3), {"dilations": "2,1", "pads": "1,1,1,1"}),
    "few_squares": ((1, 16, 7, 12), (16, 16, 3, 3), {}),
}


@pytest.mark.parametrize("name", LINES_ONLY)
def test_lines_only(name: str) -> None:
    x, w, attributes = LINES_ONLY[name]
    assert [_is_transformed(axis, x, w, attributes) for axis in (2, 3)] == [False, True]


@pytest.mark.parametrize("name", ["odd_square", "wide_square", "high_square", "squares_of_groups", "one_line"])
def test_squares(name: str) -> None:
    x, w, attributes = HITS[name]
    assert [_is_transformed(axis, x, w, attributes) for axis in (2, 3)] == [True, True]


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("gap", [1, 2, 5, 16])
@pytest.mark.parametrize("taps", [3, 9])
def test_lines_that_are_not_finite(special: float, gap: int, taps: int) -> None:
    inputs = _inputs((2, 24, 150 + taps * gap), (16, 24, taps))
    inputs["X"][1, 3, [0, 70, 149]] = special
    attributes = {"pads": f"{gap},{gap}", "dilations": f"{gap}"}
    got = _transformed(inputs, **attributes)
    np.testing.assert_array_equal(got, _direct(inputs, **attributes))
    np.testing.assert_allclose(got, one_node.run("body", "VolumeConv", inputs, attributes), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_numbers_that_are_not_finite(special: float, slope: float) -> None:
    inputs = _inputs((2, 8, 9, 21), (16, 8, 3, 3))
    for x, y in ((0, 0), (4, 7), (8, 20)):
        inputs["X"][1, 3, x, y] = special
    attributes = {"pads": "1,1,1,1", "slope": slope}
    assert _is_transformed(2, (2, 8, 9, 21), (16, 8, 3, 3), {"pads": "1,1,1,1"})
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
