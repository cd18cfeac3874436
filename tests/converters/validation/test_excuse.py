"""Differences that are excused in quantized networks, and those that are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from converters.openvino import convert
from converters.validation.compare import DEFAULT, compare
from converters.validation.excuse import CHANGED_INPUTS, LOW_PRECISION, excused
from converters.validation.validate import validate
from tests.conformance.quantized.record import unpack
from tests.processor import SATURATES

EXACT = np.array([1, 2, 3, 4], np.float32)
FAR = EXACT * np.float32(1.02)


def _excused(value: np.ndarray, low: np.ndarray, changed: float) -> tuple[bool, str]:
    found = compare(value, EXACT, DEFAULT)
    result = excused(found, compare(low, EXACT, DEFAULT), value, low, DEFAULT, lambda: changed)
    return result.agrees, result.note


@pytest.mark.parametrize(
    ("low", "changed", "expected"),
    [
        (EXACT, 1.0, (False, "")),  # nothing is quantized
        (EXACT * np.float32(0.97), 0.0, (True, LOW_PRECISION)),
        (FAR + np.float32(1e-5), 0.0, (True, LOW_PRECISION)),
        (EXACT * np.float32(0.99), 0.0, (False, "")),
        (EXACT * np.float32(1.0001), 0.0, (False, "")),  # low precision agrees within the tolerance
        (EXACT * np.float32(1.0001), 0.03, (True, CHANGED_INPUTS)),
        (EXACT * np.float32(1.0001), 0.01, (False, "")),
        (EXACT * np.float32(np.nan), 0.0, (False, "")),
    ],
)
def test_conditions(low: np.ndarray, changed: float, expected: tuple[bool, str]) -> None:
    assert _excused(FAR, low, changed) == expected


def test_nonfinite_values_are_not_excused() -> None:
    value = EXACT.copy()
    value[0] = np.nan
    assert not _excused(value, FAR, 0.5)[0]


def test_the_largest_error_is_not_decisive() -> None:
    """One element has a larger error than any in low precision, but the total error is smaller."""
    value = EXACT.copy()
    value[0] += np.float32(0.05)
    low = EXACT + np.float32(0.04)
    assert np.abs(value - EXACT).max() > np.abs(low - EXACT).max()
    assert _excused(value, low, 0.0) == (True, LOW_PRECISION)


@pytest.mark.parametrize("seed", [0, 2])
def test_networks_that_amplify_other_levels(tmp_path: Path, seed: int) -> None:
    """OpenVINO in low precision is closer to its exact result than we are, unless its sums saturate; with slightly changed
    inputs it is not.
    """
    path = unpack("segmentation", tmp_path)
    onnx_path = tmp_path / "model.onnx"
    model, _ = convert(path, onnx_path)
    validation = validate(path, onnx_path, runtimes=["openvino", "none"], seed=seed)
    assert validation.agrees
    expected = LOW_PRECISION if SATURATES else CHANGED_INPUTS
    assert {found.note for found in validation.results[1].outputs.values()} == {expected}
    last = next(node for node in model.graph.node if node.output[0] == model.graph.output[0].name)
    last.output[0] = "before"
    model.graph.node.append(onnx.parser.parse_node(f"{model.graph.output[0].name} = Mul (before, factor)"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(1.02), "factor"))
    onnx.save(model, onnx_path)
    assert not validate(path, onnx_path, runtimes=["openvino", "none"], seed=seed).agrees
