"""Attributes of pooling and copies of volumes for MNN, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converters.passes.graphs import operators
from tests.converters.passes.spellings.spelled import X, spelled

IMAGE = X.reshape(1, 1, 2, 3)
VOLUME = X.reshape(1, 1, 1, 2, 3)


@pytest.mark.parametrize(
    ("attributes", "strides", "pads"),
    [
        ({}, [1, 1], [0] * 4),
        ({"strides": [2, 1]}, [2, 1], [0] * 4),
        ({"pads": [0, 1, 0, 0]}, [1, 1], [0, 1, 0, 0]),
        ({"auto_pad": "SAME_UPPER"}, [1, 1], []),
        ({"auto_pad": "VALID", "strides": [1, 2]}, [1, 2], []),
    ],
)
@pytest.mark.parametrize("operator", ["AveragePool", "LpPool", "MaxPool"])
def test_windows(operator: str, attributes: dict[str, Any], strides: list[int], pads: list[int]) -> None:
    model = spelled("stated windows", lambda op, x: op.node(operator, x, kernel_shape=[1, 2], **attributes), IMAGE)
    found = model.graph[-1].attributes
    assert list(found.get_ints("strides", ())) == strides and list(found.get_ints("pads", ())) == pads


def test_operators_without_windows_stay() -> None:
    model = spelled("stated windows", lambda op, x: op.GlobalMaxPool(x), IMAGE)
    assert not model.graph[-1].attributes


@pytest.mark.parametrize(
    ("emit", "array", "copied"),
    [
        (lambda op, x: op.Relu(x), VOLUME, True),
        (lambda op, x: op.Clip(x, 0.0, 1.0), VOLUME, True),
        (lambda op, x: op.BatchNormalization(x, *np.ones((4, 1), np.float32)), VOLUME, True),
        (lambda op, x: op.Relu(x), IMAGE, False),
        (lambda op, x: op.Sigmoid(x), VOLUME, False),
        (lambda op, x: op.Neg(op.Relu(x)), VOLUME, False),
    ],
)
def test_outputs_of_volumes(emit: Any, array: np.ndarray, copied: bool) -> None:
    assert ("Identity" in operators(spelled("copied volumes", emit, array))) == copied


@pytest.mark.parametrize(
    ("emit", "copied"),
    [
        (lambda op, x: ((y := op.Add(x, x)), op.Relu(y)), True),
        (lambda op, x: ((y := op.MatMul(x, np.eye(3, dtype=np.float32))), op.Sigmoid(y)), True),
        (lambda op, x: (op.Add(x, x), op.Relu(x)), False),  # no other node reads it
        (lambda op, x: ((y := op.Neg(x)), op.Relu(y)), False),  # not merged
        (lambda op, x: ((y := op.Add(op.Cast(x, to=6), 1)), op.Neg(y)), False),  # integers
        (lambda op, x: (op.Relu(op.Add(x, x)),), False),  # the sum is no output
    ],
)
def test_outputs_that_other_nodes_read(emit: Any, copied: bool) -> None:
    assert ("Max" in operators(spelled("separate outputs", emit, X))) == copied
