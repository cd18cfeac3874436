"""The expected results of the matrix: the plugin's, unless the operations one by one confirm another result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.conformance.targets import reference
from tests.conformance.targets.reference import Arrays, by_operation, distance, plugin


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Write a model with booleans, numbers without dimensions, several results of one operation, and a constant output."""
    x = ops.parameter([2, 4], np.float32, name="x")
    halves = ops.split(x, 1, 2)
    largest = ops.reduce_max(x, np.array([0, 1]))
    below = ops.bitwise_or(ops.less(halves.output(0), ops.constant(np.float32(0))), ops.greater(largest, np.float32(5)))
    chosen = ops.select(below, halves.output(1), ops.matmul(halves.output(0), np.eye(2, dtype=np.float32), False, False))
    path = tmp_path / "model.xml"
    outputs = [chosen.output(0), largest.output(0), halves.output(1), ops.constant(np.arange(3, dtype=np.int64)).output(0)]
    ov.save_model(ov.Model([ops.result(output) for output in outputs], [x]), path, compress_to_fp16=False)
    return path


ARRAYS = [np.array([[-1, 2, 3, 4], [5, -6, -7, 8]], np.float32)]


def test_operations_one_by_one(model: Path) -> None:
    expected = [[[3, 4], [-7, 8]], 8, [[3, 4], [-7, 8]], [0, 1, 2]]  # the largest number is above 5
    for found in (by_operation(model, ARRAYS), plugin(model, ARRAYS)):
        assert [array.tolist() for array in found] == expected


def test_the_plugin_is_right(model: Path) -> None:
    outputs, departure = reference.reference(model, ARRAYS)
    assert departure == "" and distance(outputs, plugin(model, ARRAYS)) == 0


@pytest.mark.parametrize(
    ("wrong", "third", "text", "expected"),
    [
        ("static", False, "its operations one by one agree with the latter", "right"),
        ("dynamic", False, "", "right"),
        ("static", True, "undecided", "wrong"),
    ],
)
def test_results_that_differ(
    model: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, third: bool, text: str, expected: str
) -> None:
    def departing(compute: Callable[..., Arrays], amount: float) -> Callable[..., Arrays]:
        return lambda *given, **options: [array + amount for array in compute(*given, **options)]

    def computed(path: Path, arrays: Arrays, *, free: bool = False) -> Arrays:
        return departing(plugin, 1.0 if (wrong == "dynamic") == free else 0.0)(path, arrays, free=free)

    right = plugin(model, ARRAYS)
    monkeypatch.setattr(reference, "plugin", computed)
    if third:
        monkeypatch.setattr(reference, "by_operation", departing(by_operation, 3.0))
    outputs, departure = reference.reference(model, ARRAYS)
    assert (distance(outputs, right) == 0) is (expected == "right")
    assert text in departure and bool(departure) is bool(text)


def test_a_network_for_static_shapes_only(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def static(path: Path, arrays: Arrays, *, free: bool = False) -> Arrays:
        if free:
            raise RuntimeError("a static shape is required")
        return [array * 2 for array in plugin(path, arrays)]

    right = plugin(model, ARRAYS)
    monkeypatch.setattr(reference, "plugin", static)
    outputs, departure = reference.reference(model, ARRAYS)
    assert distance(outputs, right) == 0 and departure.startswith("computes other results than its operations one by one")
