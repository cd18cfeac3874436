"""Powers of integers, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings import SPELLINGS
from onnx_specops.building import new_value
from tests.converters.passes.graphs import graph, operators, run
from tests.converters.passes.spellings.spelled import spelled


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_powers_of_integers(kind: type) -> None:
    array, dtype = np.array([[1, 2, 3], [-4, 5, -6]], kind), ir.DataType.from_numpy(np.dtype(kind))

    def emit(op, x):
        return (op.Pow(x, op.const([3, 2, 1], x.dtype)),)

    model = graph(emit, new_value(dtype, [2, 3], "x"))
    SPELLINGS["rounded integer Pow"]()(model)
    (got,) = run(model, array)
    np.testing.assert_array_equal(got, array ** np.array([3, 2, 1], kind), strict=True)
    assert operators(model).count("Round") == 1


def test_powers_of_floats_stay() -> None:
    assert "Round" not in operators(spelled("rounded integer Pow", lambda op, x: (op.Pow(x, 3.0),)))
