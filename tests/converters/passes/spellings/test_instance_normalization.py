"""InstanceNormalization of four dimensions, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.passes.graphs import operators
from tests.converters.passes.spellings.spelled import X, spelled


@pytest.mark.parametrize(("dims", "axes"), [((1, 2, 3), [3]), ((1, 1, 2, 3), None)])
def test_images(dims: tuple[int, ...], axes: list[int] | None) -> None:
    ones = np.ones(dims[1], np.float32)

    def emit(op, x):
        return op.InstanceNormalization(x, ones, ones)

    model = spelled("4D InstanceNormalization", emit, X.reshape(dims))
    assert operators(model) == (["InstanceNormalization", "Squeeze", "Unsqueeze"] if axes else ["InstanceNormalization"])


@pytest.mark.parametrize(("dims", "shapes"), [((1, 1, 1, 2, 3), 2), ((1, 2, 3, 1, 1), 2), ((1, 1, 1, 1, 2, 3), 0)])
def test_volumes(dims: tuple[int, ...], shapes: int) -> None:
    ones = np.ones(dims[1], np.float32)

    def emit(op, x):
        return op.InstanceNormalization(x, ones, ones)

    model = spelled("4D InstanceNormalization", emit, X.reshape(dims))
    assert operators(model) == ["InstanceNormalization", *["Reshape"] * shapes]


def test_volumes_of_unknown_sizes_stay() -> None:
    ones = np.ones(1, np.float32)

    def emit(op, x):
        return op.InstanceNormalization(x, ones, ones)

    model = spelled("4D InstanceNormalization", emit, X.reshape(1, 1, 1, 2, 3), 1, 1, None, 2, 3)
    assert operators(model) == ["InstanceNormalization"]
