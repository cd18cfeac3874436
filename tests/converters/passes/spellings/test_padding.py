"""The padding of convolutions and poolings, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings import SPELLINGS
from converters.passes.spellings.padding import GatheredEdges, GatheredReflection, SlicedConvTranspose
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run
from tests.converters.passes.spellings.spelled import X, spelled


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("sizes", [[8, 7], [9, 9], [10, 9]])
def test_padding(auto_pad: str, sizes: list[int]) -> None:
    x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(1, 2, 4, 4)
    w = np.linspace(-1, 1, 36, dtype=np.float32).reshape(2, 2, 3, 3)

    def emit(op, x):
        kwargs = {"strides": [2, 2], "output_shape": sizes, "auto_pad": auto_pad, "kernel_shape": [3, 3]}
        return op.node("ConvTranspose", x, op.const(w), types=[(ir.DataType.FLOAT, [1, 2, *sizes])], **kwargs)

    (node,) = spelled("explicit padding", emit, x).graph
    assert "output_shape" not in node.attributes


@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({"pads": [0, 0, 1, 1], "count_include_pad": 1}, ["Pad"]),
        ({"pads": [0, 0, 1, 1], "count_include_pad": 0}, ["Mul", "Pad"]),  # fewer elements are averaged at the end
        ({"auto_pad": "SAME_UPPER"}, ["Mul", "Pad"]),
        ({"pads": [0, 1, 1, 0], "dilations": [2, 1]}, ["Mul", "Pad"]),
        ({"pads": [0, 0, 1, 1], "ceil_mode": 1}, None),
        ({"pads": [1, 1, 1, 1], "count_include_pad": 1}, []),
        ({"auto_pad": "SAME_LOWER", "count_include_pad": 1}, ["Pad"]),
    ],
)
def test_even_padding(operator: str, attributes: dict, found: list[str] | None) -> None:
    x = np.linspace(-3, 1, 30, dtype=np.float32).reshape(1, 1, 5, 6)
    given = {name: value for name, value in attributes.items() if operator == "AveragePool" or name != "count_include_pad"}
    found = ["Pad"] if operator == "MaxPool" and found else found or []

    def emit(op, x):
        return op.node(operator, x, kernel_shape=[2, 2], strides=[2, 2], **given)

    before = run(graph(emit, floats("x", *x.shape)), x)
    model = graph(emit, floats("x", *x.shape))
    SPELLINGS["symmetric padding"]()(model)
    np.testing.assert_allclose(run(model, x)[0], before[0], rtol=1e-6, strict=True)
    assert operators(model) == sorted([*found, operator])


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({"pads": [1, 1, 1, 1], "count_include_pad": 1}, ["AveragePool", "Pad"]),
        ({"pads": [0, 0, 1, 1], "count_include_pad": 1, "strides": [2, 2]}, ["AveragePool", "Pad"]),
        ({"pads": [1, 1, 1, 1]}, ["AveragePool"]),
        ({"pads": [0, 0, 0, 0], "count_include_pad": 1}, ["AveragePool"]),
        ({"pads": [1, 1, 1, 1], "count_include_pad": 1, "ceil_mode": 1, "strides": [2, 2]}, ["AveragePool"]),
    ],
)
def test_padding_before_means(attributes: dict[str, Any], found: list[str]) -> None:
    def emit(op, x):
        return op.AveragePool(x, kernel_shape=[3, 3], **attributes)

    assert rewritten(emit, floats("x", 1, 2, 6, 7), by=[SPELLINGS["counted padding"]()]) == found


@pytest.mark.parametrize(
    ("dims", "pads", "found"),
    [
        ((1, 1, 6), [2, 0], ["Conv", "Pad"]),
        ((1, 1, 6), [2, 2], ["Conv"]),
        ((1, 1, 6), None, ["Conv"]),
        ((1, 1, 2, 3), [1, 0, 0, 1], ["Conv"]),  # two dimensions
    ],
)
def test_padding_of_one_dimension(dims: tuple[int, ...], pads: list[int] | None, found: list[str]) -> None:
    def emit(op, x):
        return op.Conv(x, np.ones((1, 1, *[2] * (len(dims) - 2)), np.float32), pads=pads)

    model = spelled("symmetric 1D padding", emit, X.reshape(dims))
    assert operators(model) == found


@pytest.mark.parametrize(
    ("kernel", "pads", "found"),
    [
        ((1, 1), [1, 0, 1, 1], ["Conv", "Pad"]),
        ((1, 1), [1, 1, 1, 1], ["Conv", "Pad"]),
        ((1,), [0, 2], ["Conv", "Pad"]),
        ((1, 1), [0, 0, 0, 0], ["Conv"]),
        ((1, 1), None, ["Conv"]),
        ((1, 2), [1, 0, 1, 1], ["Conv"]),
    ],
)
def test_padding_of_small_kernels(kernel: tuple[int, ...], pads: list[int] | None, found: list[str]) -> None:
    def emit(op, x):
        return op.Conv(x, np.ones((2, 1, *kernel), np.float32), pads=pads, strides=[2] * len(kernel))

    assert rewritten(emit, floats("x", 1, 1, *[6] * len(kernel)), by=[SPELLINGS["unpadded 1x1 kernels"]()]) == found


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({"pads": [1, 1, 0, 0]}, ["ConvTranspose", "Slice"]),
        ({"pads": [0, 1, 2, 1]}, ["ConvTranspose", "Slice"]),
        ({"pads": [1, 0, 0, 2], "output_padding": [1, 0], "group": 2}, ["ConvTranspose", "Slice"]),
        ({"pads": [1, 2, 1, 2]}, ["ConvTranspose"]),
        ({}, ["ConvTranspose"]),
        ({"output_shape": [8, 9]}, ["ConvTranspose"]),
        ({"auto_pad": "SAME_LOWER"}, ["ConvTranspose"]),
    ],
)
def test_transposed_convolutions_with_uneven_padding(attributes: dict[str, Any], found: list[str]) -> None:
    weights = np.random.default_rng(0).standard_normal((4, 2, 3, 3)).astype(np.float32)

    def emit(op, x):
        return op.ConvTranspose(x, op.const(weights), strides=[2, 2], kernel_shape=[3, 3], **attributes)

    assert rewritten(emit, floats("x", 2, 4, 5, 6), by=[SlicedConvTranspose()]) == found


@pytest.mark.parametrize(
    ("pads", "mode", "gathers"),
    [
        ([0, 1, 0, 2], "edge", 1),
        ([0, 0, 0, 3], "edge", 1),
        ([2, 1, 0, 0], "edge", 2),
        ([2, 0, 1, 0], "edge", 0),
        ([0, 1, 0, 2], "reflect", 0),
        ([0, 1, 0, 2], "constant", 0),
        ([0, -1, 0, 2], "edge", 0),
    ],
)
def test_edges(pads: list[int], mode: str, gathers: int) -> None:
    numbers = [np.arange(12, dtype=np.float32).reshape(3, 4)]
    found = rewritten(lambda op, x: op.Pad(x, pads, mode=mode), floats("x", 3, 4), by=[GatheredEdges()], numbers=numbers)
    assert found == (["Gather"] * gathers or ["Pad"])


def test_edges_of_unknown_dimensions_stay() -> None:
    numbers = [np.arange(12, dtype=np.float32).reshape(3, 4)]
    emit = lambda op, x: op.Pad(x, [0, 1, 0, 2], mode="edge")  # noqa: E731
    assert rewritten(emit, floats("x", 3, None), by=[GatheredEdges()], numbers=numbers) == ["Pad"]


@pytest.mark.parametrize(
    ("dims", "pads", "mode", "found"),
    [
        ((1, 2, 20), [0, 0, 16, 0, 0, 17], "reflect", ["Gather"]),
        ((3, 4), [2, 1, 0, 0], "reflect", ["Gather"] * 2),
        ((3, 4), [0, 1, 0, 2], "edge", ["Pad"]),
        ((3, 4), [0, 1, 0, 2], "constant", ["Pad"]),
        ((3, 4), [0, -1, 0, 2], "reflect", ["Pad"]),
        ((3, None), [0, 1, 0, 2], "reflect", ["Pad"]),
    ],
)
def test_every_reflection(dims: tuple[int | None, ...], pads: list[int], mode: str, found: list[str]) -> None:
    numbers = [np.arange(40, dtype=np.float32)[: np.prod([dim or 4 for dim in dims])].reshape([dim or 4 for dim in dims])]
    by = [GatheredReflection()]
    assert rewritten(lambda op, x: op.Pad(x, pads, mode=mode), floats("x", *dims), by=by, numbers=numbers) == found
