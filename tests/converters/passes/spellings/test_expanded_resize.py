"""Linear Resize of images with a height or width of 1, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, graph, operators, run


@pytest.mark.parametrize(
    ("dims", "sizes", "found"),
    [
        ((1, 2, 1, 1), [1, 2, 3, 4], ["Expand"]),
        ((1, 2, 1, 4), [1, 2, 1, 6], ["Expand", "Resize"]),
        ((1, 2, 4, 1), [1, 2, 6, 5], ["Expand", "Resize"]),
        ((1, 2, 2, 3), [1, 2, 4, 6], ["Resize"]),
    ],
)
@pytest.mark.parametrize("scaled", [False, True, None])
def test_sides_of_one(dims: tuple[int, ...], sizes: list[int], found: list[str], scaled: bool | None) -> None:
    """By sizes, by scales, or by sizes with scales that are empty, as older opsets have them."""

    def emit(op, x):
        scales = np.array(sizes, np.float32) / np.array(dims, np.float32)
        given = op.const(scales if scaled else scales[:0]) if scaled is not False else None
        return op.Resize(x, None, given, None if scaled else sizes, mode="linear")

    array = np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    before = run(graph(emit, floats("x", *dims)), array)
    model = graph(emit, floats("x", *dims))
    SPELLINGS["expanded Resize"]()(model)
    assert operators(model) == found
    np.testing.assert_allclose(run(model, array)[0], before[0], rtol=1e-6, atol=1e-6, strict=True)
