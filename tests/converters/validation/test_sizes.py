"""Sizes for the unknown dimensions of a model."""

from __future__ import annotations

import pytest

from converters.validation.arrays import InputSpec
from converters.validation.sizes import candidates, first_that_runs

IMAGE = InputSpec("image", "float", (None, 3, None, None))


def test_the_smallest_comes_first() -> None:
    assert next(candidates([IMAGE], {})) == {"image": [2, 3, 2, 2]}
    assert {"image": [1, 3, 224, 224]} in list(candidates([IMAGE], {}))


@pytest.mark.parametrize(
    ("dims", "shape"),
    [
        ((None, 3, None, None), [2, 3, 64, 64]),
        ((None, None, None, None), [2, 2, 64, 64]),
        ((None, None, None, 3), [2, 64, 64, 3]),
        ((None, None, None, 8), [2, 2, 64, 8]),
        ((1, 3, 32, None), [1, 3, 32, 64]),
        ((None, None), [2, 64]),
        ((None,), [2]),
    ],
)
def test_which_dimensions_grow(dims: tuple[int | None, ...], shape: list[int]) -> None:
    assert list(candidates([InputSpec("x", "float", dims)], {}))[1] == {"x": shape}


def test_bounds_and_given_shapes_are_kept() -> None:
    bounded = InputSpec("x", "float", (None, None), ((1, 1), (3, 40)))
    assert list(candidates([bounded], {}))[:2] == [{"x": [1, 3]}, {"x": [1, 40]}]
    assert list(candidates([bounded], {"x": [1, 7]}))[1] == {}


def test_the_first_that_runs() -> None:
    asked = []

    def runs(shapes: dict[str, list[int]]) -> bool:
        asked.append(shapes)
        return shapes["image"][2] >= 200

    assert first_that_runs([IMAGE], {}, runs) == {"image": [2, 3, 224, 224]}
    assert len(asked) == 3
    assert first_that_runs([IMAGE], {}, lambda shapes: False) is None
