"""IsNaN and IsInf as comparisons, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.non_numbers import ComparedNonNumbers
from onnx_specops.building import new_value
from tests.converters.passes.graphs import rewritten

NUMBERS = np.array([0, -0.0, 1, -2, np.inf, -np.inf, np.nan, 3.4028235e38, -3.4028235e38], np.float32)


@pytest.mark.parametrize("kind", [ir.DataType.FLOAT, ir.DataType.DOUBLE])
@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.IsNaN(x), ["GreaterOrEqual", "Less", "Not", "Or"]),
        (lambda op, x: op.IsInf(x), ["Abs", "Greater"]),
        (lambda op, x: op.IsInf(x, detect_negative=0), ["Greater"]),
        (lambda op, x: op.IsInf(x, detect_positive=0), ["Less"]),
        (lambda op, x: op.IsInf(x, detect_positive=0, detect_negative=0), ["Less"]),
        (lambda op, x: op.Equal(x, x), ["Equal"]),
    ],
)
def test_comparisons(emit: Any, found: list[str], kind: ir.DataType) -> None:
    x = new_value(kind, NUMBERS.shape, "x")
    assert rewritten(emit, x, by=[ComparedNonNumbers()], numbers=[NUMBERS.astype(kind.numpy())]) == found


def test_a_scalar() -> None:
    x = new_value(ir.DataType.FLOAT, (), "x")
    found = rewritten(lambda op, x: op.IsInf(x), x, by=[ComparedNonNumbers()], numbers=[np.array(-np.inf, np.float32)])
    assert found == ["Abs", "Greater"]
