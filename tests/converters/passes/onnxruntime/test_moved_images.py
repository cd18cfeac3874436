"""A Flatten before a Resize stops a Transpose that ONNX Runtime would move, only where its kernel would lack the axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import StopMovedTransposes, StopMovedTransposesOfBodies
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten

FIRST, LAST, REVERSED = [0, 3, 1, 2], [0, 2, 3, 1], [3, 2, 1, 0]
GROWS, SHRINKS = np.float32([1, 1, 2, 1.5]), np.float32([1, 1, 0.5, 0.5])


def _resize(op: Any, x: Any, scales: Any = GROWS, mode: str = "linear") -> Any:
    return op.Resize(x, None, scales, mode=mode)


def _turned(op: Any, x: Any, order: list[int], **how: Any) -> Any:
    return _resize(op, op.Transpose(x, perm=order), **how)


def _joined(op: Any, x: Any, order: list[int]) -> Any:
    return op.Concat(op.Transpose(x, perm=order), op.Transpose(op.Exp(x), perm=order), axis=1)


@pytest.mark.parametrize(
    ("emit", "stopped"),
    [
        (lambda op, x: _turned(op, x, LAST), True),
        (lambda op, x: _turned(op, x, FIRST), False),  # the kernel supports the second and third axes
        (lambda op, x: _turned(op, x, REVERSED), False),  # which is never moved
        (lambda op, x: _resize(op, x), False),
        (lambda op, x: _turned(op, x, LAST, mode="nearest"), False),
        # along one axis, it becomes the last or the second one
        (lambda op, x: _turned(op, x, LAST, scales=np.float32([1, 1, 2, 1])), False),
        (lambda op, x: _turned(op, x, LAST, scales=np.float32([1, 1, 1, 2])), False),
        (lambda op, x: _turned(op, x, FIRST, scales=np.float32([1, 2, 2, 1])), True),
        (lambda op, x: _turned(op, x, FIRST, mode="cubic"), False),
        (lambda op, x: _turned(op, x, FIRST, mode="cubic", scales=SHRINKS), True),
        (lambda op, x: _turned(op, x, LAST, mode="cubic"), True),
        # past functions, sums, Concats, slices and reductions
        (lambda op, x: _resize(op, op.Clip(op.Exp(op.Transpose(x, perm=LAST)), 0.5, 2.0)), True),
        (lambda op, x: _resize(op, op.Add(op.Transpose(x, perm=LAST), op.Transpose(op.Exp(x), perm=LAST))), True),
        (lambda op, x: _resize(op, _joined(op, x, LAST)), True),
        (lambda op, x: _resize(op, _joined(op, x, FIRST)), False),
        (lambda op, x: _resize(op, op.Slice(op.Transpose(x, perm=LAST), [1], [3], [1])), True),
        (lambda op, x: _resize(op, op.ReduceMax(op.Transpose(x, perm=LAST), [1], keepdims=1)), True),
        (lambda op, x: _resize(op, op.Where(op.Greater(op.Transpose(x, perm=LAST), 0.0), 1.0, 2.0)), True),
        # the product of two
        (lambda op, x: _turned(op, op.Sigmoid(op.Transpose(x, perm=FIRST)), FIRST), True),
        (lambda op, x: _turned(op, op.Sigmoid(op.Transpose(x, perm=LAST)), FIRST), False),
        # of other ranks
        (lambda op, x: _resize(op, op.Squeeze(op.Transpose(op.Unsqueeze(x, [1]), perm=[0, 1, 3, 4, 2]), [1])), True),
        # through nodes that stop it
        (lambda op, x: _resize(op, op.MatMul(op.Transpose(x, perm=LAST), np.ones((3, 4), np.float32))), False),
        (lambda op, x: _resize(op, op.Reshape(op.Flatten(op.Transpose(x, perm=LAST)), [2, 4, 5, 3])), False),
    ],
)
def test_conditions(emit: Any, stopped: bool) -> None:
    numbers = [np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)]

    def back(op: Any, x: Any) -> list[Any]:  # it is moved if it may vanish
        result = emit(op, x)
        return [op.Transpose(result, perm=order) for order in (FIRST, LAST)]

    def plain(op: Any, x: Any) -> Any:
        return emit(op, x)

    wanted = len([name for name in operators(graph(plain, floats("x", 2, 3, 4, 5))) if name == "Flatten"]) + stopped
    for whole in (back, plain):
        found = rewritten(whole, floats("x", 2, 3, 4, 5), by=[StopMovedTransposes()], numbers=numbers, optimized=True)
        assert found.count("Flatten") == wanted


@pytest.mark.parametrize("dims", [[None, 3, None, None], [2, 3, 4, 5]])
def test_unknown_sizes(dims: list[int | None]) -> None:
    """Sizes that are computed replace those of the image along two axes, which decide."""

    def emit(op: Any, x: Any, size: Any, order: list[int]) -> Any:
        image = op.Transpose(x, perm=order)
        sizes = op.ScatterElements(op.Shape(image), op.const([2, 3]), size)
        return op.Transpose(op.Resize(image, None, None, sizes, mode="linear"), perm=LAST if order == FIRST else FIRST)

    numbers = [np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32), np.array([7, 2])]
    for order, stopped in ((FIRST, False), (LAST, True)):
        inputs = floats("x", *dims), new_value(ir.DataType.INT64, [2], "size")
        found = rewritten(
            lambda op, x, size, order=order: emit(op, x, size, order),
            *inputs,
            by=[StopMovedTransposes()],
            numbers=numbers,
            optimized=True,
        )
        assert ("Flatten" in found) is stopped


@pytest.mark.parametrize(
    ("mode", "axes", "order", "stopped"),
    [
        ("linear_onnx", "2,3", LAST, True),
        ("linear_onnx", "2,3", FIRST, False),
        ("linear", "2,3", LAST, False),  # whose body gathers
        ("cubic", "2,3", LAST, False),
    ],
)
def test_bodies(mode: str, axes: str, order: list[int], stopped: bool) -> None:
    def emit(op: Any, x: Any) -> Any:
        image = op.Transpose(x, perm=order)
        scales = np.float32([8, 2]) / np.float32([(image.dims or [])[2], (image.dims or [])[3]])
        return op.Transpose(op.specops.Interpolate(image, [8, 2], scales, axes=axes, mode=mode), perm=FIRST)

    found = rewritten(emit, floats("x", 2, 3, 4, 5), by=[StopMovedTransposesOfBodies()], optimized=True)
    assert ("Flatten" in found) is stopped


def test_many_paths() -> None:
    """Two paths to each value, in forty of them."""

    def emit(op: Any, x: Any) -> Any:
        y = op.Transpose(x, perm=LAST)
        for _ in range(40):
            y = op.Mul(op.Add(y, op.Tanh(y)), 0.5)
        return _resize(op, y)

    assert "Flatten" in rewritten(emit, floats("x", 2, 3, 4, 5), by=[StopMovedTransposes()], optimized=True)


@pytest.mark.parametrize(("opset", "attributes"), [(11, set()), (14, {"allowzero"})])
def test_older_opsets(opset: int, attributes: set[str]) -> None:
    model = graph(lambda op, x: _turned(op, x, LAST), floats("x", 2, 3, 4, 5))
    StopMovedTransposes(opset)(model)
    (reshape,) = (node for node in model.graph if node.op_type == "Reshape")
    assert set(reshape.attributes) == attributes
