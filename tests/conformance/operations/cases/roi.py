"""Regions of feature maps in one size."""

from __future__ import annotations

import functools

import numpy as np

from tests.conformance.case import Case


def _build(opset, factory, shapes, types, arguments):
    import openvino as ov

    opset = __import__(f"openvino.{opset}", fromlist=["opset"])
    partial = [ov.PartialShape.dynamic() if s is None else ov.PartialShape(list(s)) for s in shapes]
    inputs = [opset.parameter(s, t) for s, t in zip(partial, types, strict=True)]
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
    yield case("dynamic-rank", [(maps, fractions)], [[3, 4], 1.0, "bilinear"], shapes=[None, None])
    yield case("f16", [(maps, pixels)], [[3, 3], 0.125, "max"], dtype=np.float16)


def _roi_align():
    def case(version, name, runs, arguments, *, shapes=None, dtype=np.float32, index=np.int32, reason=""):
        runs = [(*(a.astype(dtype) for a in run[:2]), run[2].astype(index)) for run in runs]
        build = functools.partial(
            _build, f"opset{version}", "roi_align", shapes or [a.shape for a in runs[0]], [dtype, dtype, index], arguments
        )
        oracle = "cpu" if reason else "both"
        return Case("ROIAlign", f"opset{version}", name, build, runs, oracle=oracle, reason=reason)

    def inputs(images, channels, height, width, count, seed=0):
        regions = _regions(count, images, 60, seed=seed)
        return _maps(images, channels, height, width, seed=seed), regions[:, 1:], regions[:, 0]

    data = inputs(2, 5, 9, 11, 8)
    dynamic = [[-1, -1, -1, -1], [-1, 4], [-1]]
    shapeless, rounded = "Model.evaluate finds no shape for the output", "Model.evaluate rounds every step to float16"
    for version in (3, 9):
        yield case(version, "avg", [data], [3, 2, 2, 0.15, "avg"], index=np.int64)
        yield case(version, "avg-adaptive", [data], [2, 3, 0, 0.15, "avg"])
        yield case(version, "max", [data], [3, 2, 2, 0.15, "max"])
        yield case(version, "max-adaptive", [data], [2, 2, 0, 0.15, "max"])
        more = inputs(1, 3, 4, 5, 3, seed=4)
        yield case(version, "dynamic-max", [data, more], [2, 2, 1, 0.1, "max"], shapes=dynamic, reason=shapeless)
        yield case(version, "f16", [data], [2, 2, 2, 0.125, "avg"], dtype=np.float16, reason=rounded)
    yield case(9, "dynamic-rank-max", [data], [3, 2, 2, 0.15, "max"], shapes=[None] * 3)
    for mode in ("half_pixel", "half_pixel_for_nn", "asymmetric"):
        yield case(9, f"avg-{mode}", [data], [2, 2, 2, 0.15, "avg", mode])
        yield case(9, f"max-{mode}", [data, more], [2, 3, 0, 0.15, "max", mode], shapes=dynamic)


def _roi_align_rotated():
    def case(name, runs, arguments, *, shapes=None, dtype=np.float32, index=np.int32):
        runs = [(*(a.astype(dtype) for a in run[:2]), run[2].astype(index)) for run in runs]
        build = functools.partial(
            _build, "opset15", "roi_align_rotated", shapes or [a.shape for a in runs[0]], [dtype, dtype, index], arguments
        )
        return Case("ROIAlignRotated", "opset15", name, build, runs)

    def inputs(images, channels, height, width, count, seed=0):
        rng = np.random.default_rng(seed)
        regions = np.concatenate([rng.random((count, 4)) * 40 + 5, rng.random((count, 1)) * 6 - 3], axis=1)
        return _maps(images, channels, height, width, seed=seed), regions, rng.integers(0, images, count)

    data = inputs(2, 4, 9, 11, 8)
    yield case("clockwise", [data], [3, 2, 2, 0.2, True])
    yield case("counterclockwise", [data], [2, 3, 3, 0.15, False], index=np.int64)
    yield case("adaptive", [data], [2, 2, 0, 0.2, True])
    yield case("dynamic-rank", [data], [3, 2, 2, 0.2, True], shapes=[None] * 3)
    yield case(
        "dynamic", [data, inputs(1, 3, 4, 5, 3, seed=4)], [2, 3, 0, 0.1, False], shapes=[[-1, -1, -1, -1], [-1, 5], [-1]]
    )
    yield case("f16", [data], [2, 2, 1, 0.25, True], dtype=np.float16)


_DYNAMIC = [[-1, -1, -1, -1], [-1, 5]]


def _small():
    maps = np.arange(36, dtype=np.float32).reshape(1, 4, 3, 3)
    return maps, np.array([[0, 0, 0, 2, 2], [0, 1, 0, 2, 1]], np.float32)


def _refused(answer):
    reason = "the CPU plugin takes no dynamic shapes; expected is its answer for the static ones"
    return {"oracle": "expected", "reason": reason, "expected": [answer]}


def _psroi_pooling():
    def case(name, runs, arguments, *, shapes=None, dtype=np.float32):
        runs = [tuple(a.astype(dtype) for a in run) for run in runs]
        build = functools.partial(
            _build, "opset1", "psroi_pooling", shapes or [a.shape for a in runs[0]], [dtype] * 2, arguments
        )
        return Case("PSROIPooling", "opset1", name, build, runs)

    maps = _maps(2, 36, 9, 11)
    pixels, fractions = _regions(12, 2, 100, ends=9), _regions(12, 2, 1, seed=1, ends=9)
    yield case("average", [(maps, pixels)], [4, 3, 0.1, 1, 1, "average"])
    yield case("average-no-bins", [(maps, pixels)], [4, 3, 0.1, 0, 0, "average"])
    yield case("average-halves", [(maps, _regions(20, 2, 10, grid=2))], [9, 2, 1.0, 1, 1, "average"])
    yield case("average-one", [(maps, pixels)], [36, 1, 0.05, 1, 1, "average"])
    yield case("bilinear", [(maps, fractions)], [4, 3, 1.0, 3, 3, "bilinear"])
    yield case("bilinear-one", [(maps, fractions)], [6, 1, 0.9, 3, 2, "bilinear"])
    yield case("f16", [(maps, pixels)], [4, 3, 0.125, 1, 1, "average"], dtype=np.float16)
    build = functools.partial(_build, "opset1", "psroi_pooling", _DYNAMIC, [np.float32] * 2, [1, 2, 1.0, 1, 1, "average"])
    answer = [np.array([[[[2, 12], [23, 33]]], [[[1, 11], [22, 32]]]], np.float32)]
    yield Case("PSROIPooling", "opset1", "dynamic", build, [_small()], **_refused(answer))


def _deformable_psroi_pooling():
    def case(name, run, arguments, *, dtype=np.float32):
        run = tuple(a.astype(dtype) for a in run)
        factory = "deformable_psroi_pooling"
        if len(run) == 2:
            build = functools.partial(_build, "opset1", factory, [a.shape for a in run], [dtype] * 2, arguments)
        else:
            build = functools.partial(_build_with_offsets, [a.shape for a in run], dtype, arguments)
        return Case("DeformablePSROIPooling", "opset1", name, build, [run])

    maps, pixels = _maps(2, 36, 9, 11), _regions(12, 2, 100, ends=9)
    arguments = {"output_dim": 4, "spatial_scale": 0.1, "group_size": 3, "spatial_bins_x": 2, "spatial_bins_y": 3}
    yield case("plain", (maps, pixels), list(arguments.values())[:3])
    yield case("offsets", (maps, pixels, _maps(12, 2, 3, 3)), arguments | {"trans_std": 0.3, "part_size": 3})
    yield case("classes", (maps, pixels, _maps(12, 4, 2, 2)), arguments | {"trans_std": 0.1, "part_size": 2})
    yield case("f16", (maps, pixels, _maps(12, 2, 1, 1)), arguments | {"trans_std": 0.25}, dtype=np.float16)
    given = {"output_dim": 1, "spatial_scale": 1.0, "group_size": 2, "spatial_bins_x": 2, "spatial_bins_y": 2}
    build = functools.partial(
        _build_with_offsets, [*_DYNAMIC, [-1, -1, -1, -1]], np.float32, given | {"trans_std": 0.5, "part_size": 2}
    )
    offsets = np.array([0.1, -0.2, 0.3, 0, 0.2, 0.1, 0, -0.1] * 2, np.float32).reshape(2, 2, 2, 2)
    answer = [[[[1.025, 10.675], [22.475, 32.05]]], [[[1.15, 10.7], [21.3, 30.7]]]]
    answer = [np.array(answer, np.float32)]
    yield Case("DeformablePSROIPooling", "opset1", "dynamic", build, [(*_small(), offsets)], **_refused(answer))


def _build_with_offsets(shapes, dtype, arguments):
    import openvino as ov
    from openvino import opset1

    inputs = [opset1.parameter(ov.PartialShape(list(s)), dtype) for s in shapes]
    node = opset1.deformable_psroi_pooling(*inputs[:2], offsets=inputs[2], **arguments)
    return ov.Model([node], inputs)


CASES = [*_psroi_pooling(), *_deformable_psroi_pooling(), *_roi_pooling(), *_roi_align(), *_roi_align_rotated()]
