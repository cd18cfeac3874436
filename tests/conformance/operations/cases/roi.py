"""Regions of feature maps in one size."""

from __future__ import annotations

import functools

import numpy as np

from tests.conformance.case import Case


def _build(opset, factory, shapes, types, arguments):
    import openvino as ov

    opset = __import__(f"openvino.{opset}", fromlist=["opset"])
    inputs = [opset.parameter(ov.PartialShape(list(s)), t) for s, t in zip(shapes, types, strict=True)]
    return ov.Model([getattr(opset, factory)(*inputs, *arguments)], inputs)


def _maps(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _regions(count, images, scale, *, seed=0, ends=None, grid=0):
    """``image, x1, y1, x2, y2``, some beyond the map, the last ones ended by a -1."""
    rng = np.random.default_rng(seed)
    start, size = rng.random((count, 2)) * 0.9 - 0.1, rng.random((count, 2)) * 0.7
    regions = np.concatenate([rng.integers(0, images, (count, 1)), start * scale, (start + size) * scale], axis=1)
    if grid:
        regions = np.round(regions * grid) / grid
    if ends is not None:
        regions[ends, 0] = -1
    return regions.astype(np.float32)


def _roi_pooling():
    def case(name, runs, arguments, *, shapes=None, dtype=np.float32):
        runs = [tuple(a.astype(dtype) for a in run) for run in runs]
        build = functools.partial(
            _build, "opset2", "roi_pooling", shapes or [a.shape for a in runs[0]], [dtype] * 2, arguments
        )
        return Case("ROIPooling", "opset2", name, build, runs)

    maps = _maps(2, 5, 9, 11)
    pixels, fractions = _regions(12, 2, 100, ends=9), _regions(12, 2, 1, seed=1, ends=9)
    dynamic = [[-1, -1, -1, -1], [-1, 5]]
    yield case("max", [(maps, pixels)], [[3, 4], 0.1, "max"])
    yield case("max-rounding", [(maps, _regions(20, 2, 10, grid=2))], [[2, 2], 1.0, "max"])
    yield case("max-small", [(maps, _regions(6, 2, 3, seed=3))], [[7, 7], 1.0, "max"])
    yield case("bilinear", [(maps, fractions)], [[3, 4], 1.0, "bilinear"])
    yield case("bilinear-one", [(maps, fractions)], [[1, 1], 0.5, "bilinear"])
    yield case(
        "dynamic-max", [(maps, pixels), (_maps(1, 3, 4, 5), _regions(4, 1, 30))], [[2, 3], 0.15, "max"], shapes=dynamic
    )
    yield case(
        "dynamic-bilinear",
        [(maps, fractions), (_maps(1, 3, 4, 5), _regions(4, 1, 1))],
        [[2, 3], 1.0, "bilinear"],
        shapes=dynamic,
    )
    yield case("f16", [(maps, pixels)], [[3, 3], 0.125, "max"], dtype=np.float16)


CASES = [*_roi_pooling()]
