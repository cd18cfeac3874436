"""Pixel shuffles after quantized convolutions, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.pixel_shuffles import ShuffleRows
from onnx_specops.building import new_value
from onnx_specops.domain import find
from tests.converters.passes.graphs import graph, rewritten

RNG = np.random.default_rng(0)
PERMUTATION = [0, 1, 4, 2, 5, 3]


def _conv(op: Any, x: Any, columns: int = 24, *, group: int = 1, function: str = "none", **given: Any) -> Any:
    """A convolution of 4 channels with a number for each column in each input that may have one."""
    rng = np.random.default_rng(1)

    def numbers() -> np.ndarray:
        return rng.uniform(0.01, 0.1, columns).astype(np.float32)

    named = {
        "W": rng.integers(-127, 128, (columns, 4 // group, 3, 3)).astype(np.int8),
        "scale": numbers(),
        "bias": 100 * numbers(),
        "x_zero_point": np.uint8(128),
        "y_zero_point": rng.integers(0, 255, columns).astype(np.uint8),
        "factor": 20 * numbers(),
        "slope": numbers(),
        **given,
    }
    attributes = {"channels": 4, "kernel": "3,3", "pads": "1,1,1,1", "group": group, "function": function}
    return op.specops.QuantizedConv(x, *named.values(), **attributes)


def _with_residual(op: Any, x: Any) -> Any:
    omitted = list(find("QuantizedConv").inputs)[8:-1]
    residual = op.Cast(op.Concat(*[x] * 6, axis=3), to=1)
    return _conv(op, x, y_zero_point=np.float32(0), **dict.fromkeys(omitted), residual=residual)


def _shuffle(op: Any, y: Any, channels: int, rows: int, wide: int, perm: list[int] = PERMUTATION) -> Any:
    split = op.Reshape(op.Transpose(y, perm=[0, 3, 1, 2]), [2, channels, rows, wide, 5, 6])
    return op.Reshape(op.Transpose(split, perm=perm), [2, channels, 5 * rows, 6 * wide])


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _shuffle(op, _conv(op, x), 6, 2, 2), True),
        (lambda op, x: _shuffle(op, _conv(op, x, 36, function="prelu"), 4, 3, 3), True),
        (lambda op, x: _shuffle(op, _conv(op, x), 4, 2, 3), True),
        (lambda op, x: _shuffle(op, _conv(op, x, y_zero_point=np.uint8(9)), 6, 2, 2), True),
        (lambda op, x: _shuffle(op, _conv(op, x, y_zero_point=np.float32(0)), 6, 2, 2), True),
        # Parts before channels, another permutation, other consumers and groups.
        (lambda op, x: _shuffle(op, _conv(op, x), 6, 2, 2, [0, 1, 2, 4, 5, 3]), False),
        (lambda op, x: _shuffle(op, _conv(op, x), 6, 2, 2, [0, 1, 5, 2, 4, 3]), False),
        (lambda op, x: [_shuffle(op, y := _conv(op, x), 6, 2, 2), op.Cast(y, to=1)], False),
        (lambda op, x: [y := _conv(op, x), _shuffle(op, y, 6, 2, 2)], False),
        (lambda op, x: _shuffle(op, _conv(op, x, group=2), 6, 2, 2), False),
        (lambda op, x: _shuffle(op, op.Concat(*[x] * 6, axis=3), 6, 2, 2), False),
        (lambda op, x: _shuffle(op, _conv(op, x, bias=op.Relu(op.const(np.ones(24, np.float32)))), 6, 2, 2), False),
        (
            lambda op, x: _shuffle(
                op,
                _conv(
                    op,
                    x,
                    addend=op.Concat(*[x] * 6, axis=3),
                    addend_scale=np.float32(0.1),
                    addend_zero_point=np.uint8(3),
                    sum_scale=np.float32(0.5),
                    sum_zero_point=np.uint8(7),
                ),
                6,
                2,
                2,
            ),
            False,
        ),
        (lambda op, x: _shuffle(op, _with_residual(op, x), 6, 2, 2), False),
    ],
)
def test_conditions(emit: Any, found: bool) -> None:
    numbers = [RNG.integers(0, 255, (2, 5, 6, 4)).astype(np.uint8)]
    rewritten(emit, new_value(ir.DataType.UINT8, [2, 5, 6, 4], "x"), by=[ShuffleRows()], numbers=numbers, atol=0)
    assert ShuffleRows()(graph(emit, new_value(ir.DataType.UINT8, [2, 5, 6, 4], "x"))).modified is found


def test_unknown_sizes() -> None:
    model = graph(lambda op, x: _shuffle(op, _conv(op, x), 6, 2, 2), new_value(ir.DataType.UINT8, [2, None, 6, 4], "x"))
    assert not ShuffleRows()(model).modified
