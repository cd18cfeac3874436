"""Updates of a slice, as OpenVINO's PyTorch frontend writes them, and near misses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset15 as ops

from converters.openvino import convert

DIMS = [2, 50, 60]
COUNT = int(np.prod(DIMS))
"""More than are folded when a graph is built."""


def _positions(dims: Any = DIMS, *, start: int = 0, step: int = 1) -> Any:
    """Return the positions in a tensor, computed at run time."""
    bounds = [ops.constant(np.int64(number)) for number in (start, start + step * COUNT, step)]
    return ops.reshape(ops.range(*bounds, "i64"), ops.constant(np.array(dims)), False)


def _sliced(x: Any, starts: Any, stops: Any, axes: Any, steps: Any = None) -> Any:
    given = (np.array(one) for one in (starts, stops, steps or [1] * len(axes), axes))
    return ops.slice(x, *(ops.constant(one) for one in given))


def _gathered(x: Any, index: Any, axis: int) -> Any:
    return ops.gather(x, ops.constant(np.array(index)), ops.constant(np.array(axis)))


def _flat(x: Any) -> Any:
    return ops.reshape(x, ops.constant(np.array([-1])), False)


LAST = 2**63 - 1


@pytest.mark.parametrize(
    ("positions", "scattered"),
    [
        (lambda: _sliced(_positions(), [1, 1], [LAST, LAST], [1, 2]), False),
        (lambda: _sliced(_positions(), [-3], [-1], [-1]), False),
        (lambda: _sliced(_sliced(_positions(), [5], [30], [2]), [2], [-7], [2]), False),
        (lambda: _gathered(_sliced(_positions(), [1], [3], [1]), -1, 2), False),
        (lambda: _sliced(_gathered(_positions(), 1, 0), [1], [3], [1]), False),
        (lambda: _positions(), False),
        (lambda: _sliced(_positions(), [0], [60], [2], [2]), True),  # another step
        (lambda: _sliced(_positions(start=1, step=1), [0], [1], [0]), True),
        (lambda: _sliced(ops.transpose(_positions(), ops.constant(np.array([1, 0, 2]))), [0], [1], [0]), True),
        (lambda: _gathered(_positions(), [0, 2], 1), True),  # several indices
        (lambda: _sliced(_flat(_sliced(_positions(), [1], [3], [1])), [1], [9], [0]), True),
    ],
)
def test_slices_of_positions(positions: Callable[[], Any], scattered: bool, tmp_path: Path) -> None:
    _check(positions(), scattered, tmp_path)


def _constant(*inside: Any) -> np.ndarray:
    return np.arange(COUNT).reshape(DIMS)[inside].reshape(-1)


@pytest.mark.parametrize(
    ("positions", "scattered"),
    [
        (_constant(slice(None), slice(1, None), slice(1, 3)), False),
        (_constant(1), False),
        (_constant(slice(None), slice(None), slice(0, None, 2)), False),  # the first of pairs
        (_constant(slice(None), slice(None), slice(0, None, 7)), True),  # 60 is not a multiple of 7
        (_constant(0, 0, slice(3, 4)), False),
        (_constant(slice(None), [0, 2], slice(1, 5)), False),
        (_constant(slice(None), [0, 1, 3], slice(1, 5)), True),
        (_constant(slice(0, 1), [1, 0], slice(1, 5)), True),
        (_constant(1)[::-1].copy(), True),
        (np.array([5, 6, 6, 7]), True),  # equal positions
        (_constant(1) - COUNT, True),  # negative ones
    ],
)
def test_constant_positions(positions: np.ndarray, scattered: bool, tmp_path: Path) -> None:
    _check(ops.constant(positions.astype(np.int64)), scattered, tmp_path)


def _check(positions: Any, scattered: bool, folder: Path) -> None:
    x = ops.parameter(DIMS, np.float32, name="x")
    indices = ops.reshape(positions, ops.constant(np.array([-1, 1])), False)
    count = int(indices.shape[0])
    updates = ops.parameter([count], np.float32, name="updates")
    written = ops.scatter_nd_update(_flat(x), indices, updates)
    model = ov.Model([ops.result(ops.reshape(written, ops.constant(np.array(DIMS)), False))], [x, updates], "model")
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    arrays = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in (DIMS, [count])]
    expected = next(iter(ov.Core().compile_model(model, "CPU")(arrays).values()))
    proto, _ = convert(folder / "model.xml", folder / "model.onnx", target="standard")
    assert any(node.op_type.startswith("Scatter") for node in proto.graph.node) is scattered
    session = ort.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {given.name: array for given, array in zip(session.get_inputs(), arrays, strict=True)})
    np.testing.assert_array_equal(found, expected)
