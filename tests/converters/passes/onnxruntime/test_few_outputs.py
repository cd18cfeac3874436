"""Convolutions of images to few channels by the domain's VolumeConv."""

from __future__ import annotations

from typing import Any

import pytest

from converters.passes.onnxruntime import FewOutputs, fusion_guards
from tests.converters.passes.graphs import floats, graph, rewritten
from tests.converters.passes.onnxruntime.test_volumes import numbers

DIMS = (1, 6, 64, 64)


def convolution(out: int = 3, kernel: tuple[int, ...] = (3, 3), into: int = 6, bias: bool = False, **stated: Any) -> Any:
    """Return a function that emits a convolution."""
    given = [numbers(out, into, *kernel), numbers(out, seed=1)] if bias else [numbers(out, into, *kernel)]
    return lambda op, x: op.Conv(x, *given, **stated)


@pytest.mark.parametrize(
    ("emit", "changed"),
    [
        (convolution(), True),
        (convolution(bias=True, pads=[1, 2, 0, 1], strides=[2, 1], dilations=[1, 2]), True),
        (convolution(4), True),
        (convolution(5), False),
        (convolution(1, (1, 3)), True),
        (convolution(kernel=(1, 1)), False),  # a matrix product
        (convolution(2, into=3, group=2), False),
        (convolution(auto_pad="SAME_UPPER"), False),
        (convolution(auto_pad="NOTSET"), True),
    ],
)
def test_conditions(emit: Any, changed: bool) -> None:
    found = rewritten(emit, floats("x", *DIMS), by=[FewOutputs()], atol=1e-4)
    assert ("VolumeConv" in found, "Conv" in found) == (changed, not changed)


@pytest.mark.parametrize(
    ("dims", "changed"),
    [((None, 6, 64, 64), True), ((1, 6, 64, 63), False), ((1, 6, None, 64), False), ((1, 6, 1, 4096), True)],
)
def test_sizes(dims: tuple[int | None, ...], changed: bool) -> None:
    assert FewOutputs()(graph(convolution(pads=[1] * 4), floats("x", *dims))).modified is changed


def test_unknown_weights_lines_and_volumes_stay() -> None:
    unknown = graph(lambda op, x, w: op.Conv(x, w), floats("x", *DIMS), floats("w", None, 6, 3, 3))
    lines = graph(convolution(kernel=(3,)), floats("x", 2, 6, 4096))
    assert not FewOutputs()(unknown).modified
    assert not FewOutputs()(lines).modified


@pytest.mark.parametrize(("opset", "found"), [(20, False), (21, True)])
def test_opsets(opset: int, found: bool) -> None:
    """The plugin's kernels do not apply to older ones."""
    assert any(isinstance(step, FewOutputs) for step in fusion_guards(opset)) is found
