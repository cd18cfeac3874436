"""SelectiveScan in all forms agrees with OpenVINO's CPU plugin on the layers that optimum-intel exports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.onnx_specops.ops import one_node
from tests.onnx_specops.ops.openvino_layers import by_openvino
from tests.onnx_specops.ops.scan_layers import arrays, layers

INPUTS = ("x", "time_step", "decay", "input_gate", "output_gate", "state")
FORMS = ["numpy", "native", "python", "body", "reference"]
Given = dict[str, np.ndarray]


def run(form: str, given: Given, **options: Any) -> list[np.ndarray]:
    return list(one_node.run(form, "SelectiveScan", given, {"epsilon": 1e-12, **options}))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("shape", "options", "width"),
    [
        ((1, 1, 4, 16), {}, 0.5),
        ((2, 7, 3, 8), {}, 0.5),
        ((2, 7, 3, 8), {"epsilon": 1e-4}, 5.0),  # most contributions of past tokens are below epsilon
        ((1, 65, 5, 3), {}, 0.3),
        ((3, 2, 1, 11), {"epsilon": 0.0}, 0.1),
    ],
)
def test_values(form: str, shape: tuple[int, int, int, int], options: dict[str, float], width: float) -> None:
    given = arrays(*shape, width=width)
    expected = by_openvino(layers(given["decay"], **options), given)  # type: ignore[arg-type]
    for got, wanted in zip(run(form, given, **options), expected, strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, atol=1e-5 * np.abs(wanted).max(), rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_exponents_of_all_sizes(form: str) -> None:
    """Decays that erase the past, and decays that grow beyond float32."""
    given = arrays(1, 3, 4, 9)
    given["decay"][:] = np.array([-500, -90, 1, 60], np.float32)[:, None]
    given["time_step"][:] = 1
    expected = by_openvino(layers(given["decay"]), given)
    for got, wanted in zip(run(form, given), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time_step": (2, 5, 4)}, "time_step has the shape"),
        ({"decay": (3, 7)}, "input_gate has the shape"),
        ({"state": (2, 3, 7)}, "state has the shape"),
        ({"x": (2, 0, 3), "time_step": (2, 0, 3), "input_gate": (2, 0, 8), "output_gate": (2, 0, 8)}, "x has no tokens"),
    ],
)
def test_errors(form: str, changes: dict[str, tuple[int, ...]], message: str) -> None:
    given = arrays(2, 5, 3, 8) | {name: np.ones(shape, np.float32) for name, shape in changes.items()}
    with pytest.raises(Exception, match=message if form in ("numpy", "native", "python") else None):
        run(form, given)


def test_an_empty_state() -> None:
    given = arrays(2, 5, 3, 0)
    for form in ("numpy", "native"):
        y, present = run(form, given)
        assert present.shape == (2, 3, 0) and not y.any() and y.shape == (2, 5, 3)
