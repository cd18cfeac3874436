"""QuantizedGroupMoments in all forms against the normalizations of OpenVINO's CPU plugin."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset14 as ops

from tests.onnx_specops.ops import one_node
from tests.onnx_specops.ops.openvino_layers import by_openvino

FORMS = ["numpy", "native", "python", "body", "reference"]
F, U8 = np.float32, np.uint8


def _given(*shape: int, scale: float = 0.02, zero: int = 100) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(0).integers(0, 256, shape).astype(U8)
    return {"X": numbers, "x_scale": np.array(scale, F), "x_zero_point": np.array(zero, U8)}


def _run(form: str, given: dict[str, np.ndarray], groups: int, epsilon: float = 1e-5, **attributes: Any) -> list[np.ndarray]:
    stated = {"channels": given["X"].shape[-1], "num_groups": groups, "epsilon": epsilon} | attributes
    constants = ["x_scale", "x_zero_point"] if form in ("body", "reference") else []
    return list(one_node.run(form, "QuantizedGroupMoments", given, stated, constants))


def _normalized(given: dict[str, np.ndarray], groups: int, epsilon: float) -> np.ndarray:
    """OpenVINO's normalization, with channels last."""
    x = given["X"]
    numbers = (x.astype(F) - given["x_zero_point"].astype(F)) * given["x_scale"]
    rank = x.ndim
    node = ops.parameter(list(x.shape), F, name="x")
    first = ops.transpose(node, np.array([0, rank - 1, *range(1, rank - 1)]))
    ones = np.ones(x.shape[-1], F)
    result = ops.group_normalization(first, ones, 0 * ones, groups, epsilon)
    last = ops.transpose(result, np.array([0, *range(2, rank), 1]))
    return by_openvino(ov.Model([last], [node]), {"x": numbers})[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        ((1, 7, 6), 6),
        ((2, 5, 6, 16), 4),
        ((1, 9, 8, 33), 33),
        ((3, 4, 5, 2, 12), 1),
        ((1, 70, 90, 3), 3),  # more pixels than are added at once
        ((2, 6000, 4), 2),
        ((1, 1, 1, 8), 2),
    ],
)
def test_values(form: str, shape: tuple[int, ...], groups: int) -> None:
    given = _given(*shape)
    numbers = (given["X"].astype(F) - given["x_zero_point"].astype(F)) * given["x_scale"]
    mean, factor = _run(form, given, groups)
    assert mean.shape == factor.shape == (shape[0], *(1 for _ in shape[1:-1]), shape[-1])
    assert mean.dtype == factor.dtype == F
    np.testing.assert_allclose((numbers - mean) * factor, _normalized(given, groups, 1e-5), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_equal_numbers_have_no_variance(form: str) -> None:
    given = _given(1, 50, 50, 4) | {"X": np.full((1, 50, 50, 4), 173, U8)}
    mean, factor = _run(form, given, 2, 0.25)
    np.testing.assert_allclose(mean, np.full(mean.shape, 73 * 0.02), rtol=1e-4)
    np.testing.assert_allclose(factor, np.full(mean.shape, 2.0), rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_epsilon(form: str) -> None:
    given = _given(2, 30, 6, scale=0.001)
    numbers = (given["X"].astype(F) - 100) * F(0.001)
    mean, factor = _run(form, given, 3, 0.5)
    np.testing.assert_allclose((numbers - mean) * factor, _normalized(given, 3, 0.5), atol=1e-6)


@pytest.mark.parametrize("form", ["numpy", "native", "python", "body"])
def test_no_images(form: str) -> None:
    mean, factor = _run(form, _given(0, 5, 4), 2)
    assert mean.shape == factor.shape == (0, 1, 4)


@pytest.mark.parametrize("form", ["numpy", "native", "python"])
@pytest.mark.parametrize(
    ("shape", "attributes", "changes", "message"),
    [
        ((2, 5, 6), {"num_groups": 4}, {}, "num_groups = 4 does not divide 6 channels"),
        ((2, 5, 6), {"num_groups": 0}, {}, "num_groups"),
        ((2, 5, 6), {"channels": 8}, {}, "X has 3 dimensions and 6 channels; expected at least 3, and 8"),
        ((5, 6), {}, {}, "X has 2 dimensions and 6 channels"),
        ((2, 5, 6), {}, {"x_scale": np.ones(2, F)}, "x_scale has the shape"),
    ],
)
def test_errors(form: str, shape: tuple[int, ...], attributes: Any, changes: Any, message: str) -> None:
    with pytest.raises(Exception, match=message):
        _run(form, _given(*shape) | changes, 2, **attributes)
