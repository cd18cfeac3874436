"""Kernels of convolutions: their sizes as attributes, and no dilations, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, graph, operators, rewritten, run
from tests.converters.passes.spellings.spelled import X, spelled


@pytest.mark.parametrize(
    ("emit", "stated"),
    [
        (lambda op, x: op.Conv(x, np.ones((1, 1, 1, 2), np.float32)), [1, 2]),
        (lambda op, x: op.ConvTranspose(x, np.ones((1, 1, 1, 2), np.float32)), [1, 2]),
        (lambda op, x: op.Conv(x, np.ones((1, 1, 1, 2), np.float32), kernel_shape=[1, 2]), None),
        (lambda op, x: op.MaxPool(x, kernel_shape=[1, 2]), None),
    ],
)
def test_kernels(emit: Any, stated: list[int] | None) -> None:
    model = graph(emit, floats("x", 1, 1, 2, 3))
    assert SPELLINGS["stated kernels"]()(model).modified == (stated is not None)
    assert list(model.graph[-1].attributes.get_ints("kernel_shape", ())) == (stated or [1, 2])


def test_kernels_of_unknown_sizes() -> None:
    model = graph(lambda op, x, w: op.Conv(x, w), floats("x", 1, 1, 2, 3), floats("w", 1, 1, None, 2))
    assert not SPELLINGS["stated kernels"]()(model).modified


@pytest.mark.parametrize(
    ("dims", "attributes", "kernel"),
    [
        ((1, 1), {"pads": [1, 1, 1, 1]}, [1, 1]),
        ((1, 5), {"pads": [1, 1, 1, 1]}, [1, 3]),
        ((5, 1), {"pads": [0, 2, 0, 0]}, [3, 1]),
        ((1, 1), {"pads": [1, 0, 1, 2], "strides": [2, 2]}, [1, 1]),
        ((1, 1), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}, [1, 1]),
        ((1, 5), {"pads": [1, 1, 3, 1], "dilations": [2, 1]}, [3, 3]),  # no element of the kernel meets the image
        ((1, 5), {"pads": [4, 1, 0, 1], "strides": [3, 1]}, [3, 3]),  # the image is beyond the kernel
        ((1, 1), {"pads": [2, 2, 2, 2]}, [3, 3]),  # several results
        ((2, 2), {"pads": [1, 1, 1, 1]}, [3, 3]),
        ((1, 1), {"pads": [1, 1, 1, 1], "group": 1}, [3, 3]),
    ],
)
def test_kernels_beside_the_image(dims: tuple[int, int], attributes: dict[str, Any], kernel: list[int]) -> None:
    attributes = {"group": 2, **attributes}
    weights = np.random.default_rng(0).standard_normal((2, 2 // attributes["group"], 3, 3)).astype(np.float32)
    x = np.random.default_rng(1).standard_normal((1, 2, *dims)).astype(np.float32)

    def emit(op, x):
        return op.Conv(x, weights, **attributes)

    before = run(graph(emit, floats("x", *x.shape)), x)
    model = graph(emit, floats("x", *x.shape))
    SPELLINGS["cropped kernels"]()(model)
    np.testing.assert_allclose(run(model, x)[0], before[0], rtol=1e-5, atol=1e-6)
    assert list(model.graph[0].inputs[1].shape or ())[2:] == kernel


@pytest.mark.parametrize(
    ("channels", "results", "group", "kernel", "split"),
    [
        (8, 24, 2, 1, True),
        (12, 9, 3, 1, True),
        (8, 16, 2, 1, False),  # multiples of 8
        (8, 24, 2, 3, False),
        (8, 24, 1, 1, False),
        (8, 24, 8, 1, False),  # one channel for each group
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_groups(channels: int, results: int, group: int, kernel: int, split: bool, bias: bool) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((results, channels // group, kernel, kernel)).astype(np.float32)
    offsets = [np.arange(results, dtype=np.float32)] if bias else []

    def emit(op, x):
        return op.Conv(x, weights, *offsets, group=group, kernel_shape=[kernel, kernel])

    found = rewritten(emit, floats("x", 2, channels, 5, 4), by=[SPELLINGS["split groups"]()], atol=1e-4)
    assert found == (["Concat", *["Conv"] * group, "Split"] if split else ["Conv"])


@pytest.mark.parametrize(
    ("dilations", "constant", "kernel"),
    [([2, 1], True, [3, 3]), ([2, 3], True, [3, 7]), ([1, 1], True, [2, 3]), ([2, 1], False, [2, 3])],
)
def test_dilations_of_transposed_convolutions(dilations: list[int], constant: bool, kernel: list[int]) -> None:
    weights = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 2, 2, 3)

    def emit(op, x):
        w = op.const(weights) if constant else op.Mul(op.ReduceSum(x, keepdims=1), op.const(weights))
        return op.ConvTranspose(x, w, dilations=dilations, strides=[2, 1], pads=[1, 0, 0, 1])

    model = spelled("undilated ConvTranspose", emit, X.reshape(1, 2, 1, 3))
    node = model.graph[-1]
    assert node.inputs[1] is not None and list(node.inputs[1].shape or ())[2:] == kernel
    assert ("dilations" in node.attributes) == (kernel == [2, 3])


@pytest.mark.parametrize(("more", "modified"), [(0, True), (1, False)])
def test_output_padding_that_a_dilation_allows(more: int, modified: bool) -> None:
    def emit(op, x):
        ones = np.ones((1, 1, 2, 2), np.float32)
        return op.ConvTranspose(x, ones, dilations=[2, 2], strides=[1, 1], output_padding=[0, more])

    assert SPELLINGS["undilated ConvTranspose"]()(graph(emit, floats("x", 1, 1, 2, 3))).modified is modified


@pytest.mark.parametrize(
    ("dims", "bias", "found"),
    [
        ((1, 2, 1, 1, 3), [0.5, 2], ["Add", "ConvTranspose"]),
        ((1, 2, 1, 1, 3), None, ["ConvTranspose"]),
        ((1, 2, 1, 3), [0.5, 2], ["ConvTranspose"]),
    ],
)
def test_biases_of_transposed_volumes(dims: tuple[int, ...], bias: list[float] | None, found: list[str]) -> None:
    weights = np.linspace(-1, 1, 4 * 2 ** (len(dims) - 2), dtype=np.float32).reshape(2, 2, *[2] * (len(dims) - 2))
    offsets = [] if bias is None else [np.array(bias, np.float32)]
    model = spelled("added bias of volumes", lambda op, x: op.ConvTranspose(x, weights, *offsets), X.reshape(dims))
    assert operators(model) == found


def test_computed_biases_of_transposed_volumes() -> None:
    def emit(op, x):
        return op.ConvTranspose(
            x, np.ones((2, 3, 2, 2, 2), np.float32), op.Squeeze(op.ReduceSum(x, [0, 1, 2, 3]), [0, 1, 2, 3])
        )

    assert operators(spelled("added bias of volumes", emit, X.reshape(1, 2, 1, 1, 3)))[0] == "Add"
