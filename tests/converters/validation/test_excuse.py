"""Differences that are excused, in quantized networks and of rounded sums, and those that are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from converters.validation.compare import DEFAULT, compare
from converters.validation.excuse import CHANGED_INPUTS, LAST_DIGITS, LOW_PRECISION, excused, excused_elements
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


LARGE = np.full(2000, 1e6, np.float32)
LARGE[:10] = 0.01


def _elements(count: int = 1, error: float = 0.05, change: float | None = 0.02, others: float = 0.0) -> tuple[bool, str]:
    """Compare an output in which ``count`` elements near zero have an error, and the others a relative one."""
    value = LARGE * np.float32(1 + others)
    value[:count] += np.float32(error)
    found = compare(value, LARGE, DEFAULT)
    changes = None if change is None else np.full(LARGE.shape, change)
    result = excused_elements(found, value, LARGE, DEFAULT, lambda: changes)
    return result.agrees, result.note


@pytest.mark.parametrize(
    ("given", "agrees"),
    [
        ({}, True),
        ({"count": 10}, True),
        ({"count": 10, "change": 0.006}, False),  # times 8, and the tolerance of 1.1e-4
        ({"count": 10, "change": 0.0063}, True),
        ({"change": None}, False),
        ({"others": 9e-6}, True),
        ({"others": 2e-5}, False),
        ({"count": 2, "change": 0.0}, True),  # a thousandth of the elements
        ({"count": 3, "change": 0.0}, False),
        ({"error": np.nan}, False),
        ({"error": np.inf, "change": np.inf}, False),
    ],
)
def test_elements_that_differ_in_the_last_digits(given: dict, agrees: bool) -> None:
    assert _elements(**given) == (
        agrees,
        LAST_DIGITS if agrees else "NaN at different positions" if "nan" in str(given) else "",
    )


def _products(path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """Save products whose terms cancel in some elements, and return inputs."""
    rng = np.random.default_rng(0)
    x = ops.parameter([100, 2048], np.float32, name="x")
    y = ops.matmul(x, ops.constant((1e3 * rng.standard_normal((2048, 500))).astype(np.float32)), False, False, name="y")
    ov.save_model(ov.Model([y], [x], "products"), path, compress_to_fp16=False)
    return path, {"x": (1e3 * rng.standard_normal((100, 2048))).astype(np.float32)}


def test_sums_whose_terms_cancel(tmp_path: Path) -> None:
    path, inputs = _products(tmp_path / "model.xml")
    convert(path, tmp_path / "model.onnx")
    (found,) = (
        validate(path, tmp_path / "model.onnx", inputs=inputs, runtimes=["openvino", "none"]).results[1].outputs.values()
    )
    assert found.agrees and found.beyond > 0 and found.note == LAST_DIGITS


def test_another_weight_is_a_difference(tmp_path: Path) -> None:
    path, inputs = _products(tmp_path / "model.xml")
    model, _ = convert(path)
    (weights,) = (one for one in model.graph.initializer if len(one.dims) == 2)
    changed = onnx.numpy_helper.to_array(weights).copy()
    changed[0, 0] *= np.float32(1.1)
    weights.CopyFrom(onnx.numpy_helper.from_array(changed, weights.name))
    onnx.save(model, tmp_path / "model.onnx")
    assert not validate(path, tmp_path / "model.onnx", inputs=inputs, runtimes=["openvino", "none"]).agrees
