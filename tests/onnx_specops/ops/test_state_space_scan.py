"""StateSpaceScan in all forms agrees with OpenVINO's CPU plugin on the layers that optimum-intel exports."""

from __future__ import annotations

import numpy as np
import pytest

from tests.onnx_specops.ops import one_node
from tests.onnx_specops.ops.openvino_layers import by_openvino
from tests.onnx_specops.ops.state_space_layers import arrays, layers, operator_inputs

INPUTS = ("x", "decay", "input_gate", "output_gate", "state")
FORMS = ["numpy", "native", "python", "body", "reference"]


def run(form: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return list(one_node.run(form, "StateSpaceScan", dict(zip(INPUTS, arrays, strict=True))))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 2, 4, 1, 16),
        (2, 7, 6, 5, 3, 16),  # one row of the state besides four
        (2, 3, 4, 8, 2, 19),  # three elements besides 16
        (1, 65, 3, 4, 3, 128),
        (3, 2, 1, 1, 1, 1),
        (2, 4, 2, 3, 1, 8),
    ],
)
def test_values(form: str, shape: tuple[int, int, int, int, int, int]) -> None:
    given = arrays(*shape)
    expected = by_openvino(layers(given), given)
    for got, wanted in zip(run(form, operator_inputs(given)), expected, strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, atol=1e-6 * np.abs(wanted).max(), rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_infinite_and_vanishing_numbers(form: str) -> None:
    given = arrays(1, 3, 4, 4, 1, 16)
    given["decay"][:] = -500, -90, 60, 0
    given["x"][0, 1, 0, 0] = np.inf
    expected = by_openvino(layers(given), given)
    for got, wanted in zip(run(form, operator_inputs(given)), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({1: (2, 5, 3)}, "decay has the shape"),
        ({3: (2, 5, 2, 7)}, "output_gate has the shape"),
        ({4: (1, 4, 3, 8)}, "state has the shape"),
        ({2: (2, 5, 3, 8), 3: (2, 5, 3, 8)}, "x has 4 heads; expected a multiple of 3"),
        ({2: (2, 5, 0, 8), 3: (2, 5, 0, 8)}, "x has 4 heads; expected a multiple of 0"),
    ],
)
def test_errors(form: str, changes: dict[int, tuple[int, ...]], message: str) -> None:
    given = operator_inputs(arrays(2, 5, 4, 3, 2, 8))
    for place, shape in changes.items():
        given[place] = np.ones(shape, np.float32)
    with pytest.raises(Exception, match=message if form in ("numpy", "native", "python") else None):
        run(form, given)


@pytest.mark.parametrize("form", FORMS[:-1])  # ONNX's evaluator cannot join the outputs of no iterations
def test_no_tokens(form: str) -> None:
    given = operator_inputs(arrays(2, 0, 4, 3, 2, 8))
    y, present = run(form, given)
    assert y.shape == (2, 0, 4, 3)
    np.testing.assert_array_equal(present, given[4])


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_state(form: str) -> None:
    y, present = run(form, operator_inputs(arrays(2, 5, 4, 3, 2, 0)))
    assert present.shape == (2, 4, 3, 0) and not y.any() and y.shape == (2, 5, 4, 3)
