"""Pow of 32-bit integers by one exponent."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime.powers import PowersInDoubles
from converters.passes.verification import Verifier
from onnx_specops.building import Builder, Value, new_value
from onnx_specops.graphs import mark_full_range
from onnx_specops.replacing import checked_by
from tests.converters.passes.graphs import graph, operators, run

D = ir.DataType

BASES = [0, 1, -1, 2, -3, 1290, 1291, -1291, 46340, 46341, -46341, 65536, 2**31 - 1, -(2**31)]


def _power(exponent: Any, *, marked: bool = True, dtype: ir.DataType = D.INT32) -> Any:
    def emit(op: Builder, x: Value) -> Value:
        power: Value = op.Pow(x, op.const(exponent, dtype))
        if marked:
            mark_full_range(power)
        return power

    return emit


@pytest.mark.parametrize(
    ("emit", "dtype", "found"),
    [
        (_power(2), D.INT32, True),
        (_power([3]), D.INT32, True),
        (_power(4), D.INT32, False),
        (_power(1), D.INT32, False),
        (_power([2, 3]), D.INT32, False),
        (_power(2, marked=False), D.INT32, False),  # dimensions and indices
        (_power(2, dtype=D.INT64), D.INT64, False),  # OpenVINO's CPU plugin and its reference differ
        (_power(2.0, dtype=D.FLOAT), D.FLOAT, False),
    ],
)
def test_conditions(emit: Any, dtype: ir.DataType, found: bool) -> None:
    assert PowersInDoubles()(graph(emit, new_value(dtype, [2], "x"))).modified is found


@pytest.mark.parametrize(("dims", "found"), [(None, True), ([None], True), ([1, 1], True), ([2], False), ([None, 2], False)])
def test_exponents_at_run_time(dims: Any, found: bool) -> None:
    def emit(op: Builder, x: Value, exponent: Value) -> Value:
        power: Value = op.Pow(x, exponent)
        mark_full_range(power)
        return power

    model = graph(emit, new_value(D.INT32, [2], "x"), new_value(D.INT32, dims, "exponent"))
    assert PowersInDoubles()(model).modified is found


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 31])
def test_powers_out_of_range_are_the_lowest_number(exponent: int) -> None:
    x = np.array(BASES, np.int32)
    model = graph(_power(exponent), new_value(D.INT32, [len(x)], "x"))
    PowersInDoubles()(model)
    exact = [base**exponent for base in BASES]
    expected = [power if -(2**31) <= power < 2**31 else -(2**31) for power in exact]
    np.testing.assert_array_equal(run(model, x)[0], np.array(expected, np.int32), strict=True)
    assert "Pow" in operators(model)


def test_the_check_of_a_conversion_accepts_the_change() -> None:
    """ONNX Runtime's products of the original node wrap, which ``--verify`` would report."""

    def emit(op: Builder, x: Value) -> Value:
        return _power(3)(op, op.Cast(x, to=D.INT32))

    model, verifier = graph(emit, new_value(D.FLOAT, [8], "x")), Verifier()
    with checked_by(verifier):
        assert PowersInDoubles()(model).modified
    assert not verifier.differences
