"""Sizes of dynamic dimensions for random inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from converters.validation.arrays import DYNAMIC_SIZE, InputSpec

_IMAGE_RANK = 4
_SIZES = (64, 224, 512)
"""Common minimum sizes of an image or a sequence in networks."""


def candidates(specs: Sequence[InputSpec], shapes: Mapping[str, Sequence[int]]) -> Iterator[dict[str, list[int]]]:
    """Yield shapes for inputs with dynamic dimensions that `shapes` does not name, smallest first.

    First, every dynamic dimension is 2. Then the height and width of an image, or all dimensions except the first of other
    inputs, are 64, 224 or 512. Finally, the batch is 1, because a model may concatenate it with constants.
    """
    guessed = [spec for spec in specs if spec.name not in shapes and spec.is_guess and spec.dims is not None]
    yield {spec.name: list(spec.random_shape) for spec in guessed}
    for batch in (DYNAMIC_SIZE, 1):
        for size in _SIZES:
            yield {spec.name: _of_size(spec, size, batch) for spec in guessed}


def _of_size(spec: InputSpec, size: int, batch: int) -> list[int]:
    assert spec.dims is not None
    bounds = spec.bounds if len(spec.bounds) == len(spec.dims) else [(0, None)] * len(spec.dims)
    found = []
    for axis, (dim, (low, high)) in enumerate(zip(spec.dims, bounds, strict=True)):
        wanted = batch if axis == 0 else size
        if len(spec.dims) == _IMAGE_RANK and axis not in _spatial(spec.dims):
            wanted = batch if axis == 0 else DYNAMIC_SIZE
        found.append(dim if dim is not None else max(low, wanted if high is None else min(high, wanted)))
    return found


def _spatial(dims: Sequence[int | None]) -> tuple[int, int]:
    """Return the axes of height and width: the last two, unless the last one has 1 to 4 channels."""
    last = dims[-1]
    return (1, 2) if last is not None and last <= 4 else (2, 3)


def first_that_runs(
    specs: Sequence[InputSpec], shapes: Mapping[str, Sequence[int]], runs: Callable[[dict[str, list[int]]], bool]
) -> dict[str, list[int]] | None:
    """Return the first of the `candidates` for which the model runs, or ``None``."""
    tried = []
    for shape in candidates(specs, shapes):
        if shape not in tried and runs(shape):
            return shape
        tried.append(shape)
    return None
