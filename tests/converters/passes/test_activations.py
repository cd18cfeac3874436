"""Activations in the form that is quickest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import FORMS, converted, operators

LARGEST = np.finfo(np.float32).max
X = np.float32([*np.linspace(-30, 30, 601), -LARGEST, -104, -88, 88, 104, LARGEST, np.inf, 1e-30, -1e-30, 0])


@pytest.mark.parametrize("form", FORMS)
def test_mish(form: str, oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([-1], np.float32)
    found = operators(converted(ov.Model([ops.mish(x)], [x]), [X], oracle, tmp_path, form, rtol=1e-5, atol=1e-6))
    assert found == ["Add", "Add", "Div", "Exp", "Min", "Mul", "Mul"]


@pytest.mark.parametrize("form", FORMS)
def test_log_sigmoid(form: str, oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([-1], np.float32)
    gate = ops.sigmoid(x)
    # OpenVINO's CPU gives -inf from -87 on, and Model.evaluate from -88.7 on.
    values = np.float32([*np.linspace(-86, 30, 601), -LARGEST, -104, -90, 88, 104, 1e-30, -1e-30, 0])
    model = ov.Model([ops.log(gate), ops.multiply(x, gate)], [x])
    found = operators(converted(model, [values], oracle, tmp_path, form, rtol=1e-5, atol=1e-6))
    assert found == ["Less", "Mul", "Neg", "Neg", "Sigmoid", "Softplus", "Where"]
