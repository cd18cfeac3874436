"""Pooling of regions of feature maps."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, shaped, static, statics, unranked

F16, F32 = np.float16, np.float32
_MAPS, _BOXES = [-1, -1, -1, -1], [-1, 5]


def _case(operation, version, make, name, inputs, arguments, **settings):
    return layer_case(operation, version, lambda ops, *n: getattr(ops, make)(*n, *arguments), name, inputs, **settings)


def _maps(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _regions(count, images, scale, *, seed=0, ends=None, grid=0):
    """``image, x1, y1, x2, y2``, some outside the map, the last ones ended by a -1."""
    rng = np.random.default_rng(seed)
    start, size = rng.random((count, 2)) * 0.9 - 0.1, rng.random((count, 2)) * 0.7
    regions = np.concatenate([rng.integers(0, images, (count, 1)), start * scale, (start + size) * scale], axis=1)
    if grid:
        regions = np.round(regions * grid) / grid
    if ends is not None:
        regions[ends, 0] = -1
    return regions.astype(np.float32)


def _roi_pooling():
    case = partial(_case, "ROIPooling", "opset2", "roi_pooling")
    maps = _maps(2, 5, 9, 11)
    pixels, fractions = _regions(12, 2, 100, ends=9), _regions(12, 2, 1, seed=1, ends=9)
    yield case("max", statics([maps, pixels]), [[3, 4], 0.1, "max"])
    yield case("max-rounding", statics([maps, _regions(20, 2, 10, grid=2)]), [[2, 2], 1.0, "max"])
    yield case("max-small", statics([maps, _regions(6, 2, 3, seed=3)]), [[7, 7], 1.0, "max"])
    beyond = np.array([[0, 1.2, 1.3, 3.2, 5.5], [1, 6.4, 2.9, 9.1, 6.1]], F32)
    yield case("max-constant-beyond", [static(_maps(2, 3, 1, 1)), beyond], [[3, 1], 1.0, "max"])
    yield case("bilinear", statics([maps, fractions]), [[3, 4], 1.0, "bilinear"])
    yield case("bilinear-one", statics([maps, fractions]), [[1, 1], 0.5, "bilinear"])
    other = _maps(1, 3, 4, 5)
    runs = [maps, pixels], [other, _regions(4, 1, 30)]
    yield case("dynamic-max", shaped([_MAPS, _BOXES], *runs), [[2, 3], 0.15, "max"])
    runs = [maps, fractions], [other, _regions(4, 1, 1)]
    yield case("dynamic-bilinear", shaped([_MAPS, _BOXES], *runs), [[2, 3], 1.0, "bilinear"])
    yield case("dynamic-rank", [unranked(maps), unranked(fractions)], [[3, 4], 1.0, "bilinear"])
    yield case("f16", statics([maps.astype(F16), pixels.astype(F16)]), [[3, 3], 0.125, "max"])


def _typed(arrays, dtype=F32, index=np.int32):
    """Return maps, regions and the image indices of the regions in these types."""
    return [*(array.astype(dtype) for array in arrays[:2]), arrays[2].astype(index)]


def _roi_align():
    def data(images, channels, height, width, count, seed=0):
        regions = _regions(count, images, 60, seed=seed)
        return _maps(images, channels, height, width, seed=seed), regions[:, 1:], regions[:, 0]

    plain, more = data(2, 5, 9, 11, 8), data(1, 3, 4, 5, 3, seed=4)
    arrays, shapes = _typed(plain), [_MAPS, [-1, 4], [-1]]
    shapeless = decided("cpu", "Model.evaluate finds no shape for the output")
    rounded = decided("cpu", "Model.evaluate rounds every step to float16")
    for version in ("opset3", "opset9"):
        case = partial(_case, "ROIAlign", version, "roi_align")
        yield case("avg", statics(_typed(plain, index=np.int64)), [3, 2, 2, 0.15, "avg"])
        yield case("avg-adaptive", statics(arrays), [2, 3, 0, 0.15, "avg"])
        yield case("max", statics(arrays), [3, 2, 2, 0.15, "max"])
        yield case("max-adaptive", statics(arrays), [2, 2, 0, 0.15, "max"])
        yield case("dynamic-max", shaped(shapes, arrays, _typed(more)), [2, 2, 1, 0.1, "max"], **shapeless)
        yield case("f16", statics(_typed(plain, F16)), [2, 2, 2, 0.125, "avg"], **rounded)
        # All samples are outside the map, and the model is loaded with this knowledge.
        beyond = np.array([[300, 20, 400, 50]], F32), np.array([1], np.int32)
        yield case("avg-beyond", [*statics(arrays[:1]), *beyond], [2, 3, 0, 0.15, "avg"])
    yield case("dynamic-rank-max", map(unranked, arrays), [3, 2, 2, 0.15, "max"])
    for mode in ("half_pixel", "half_pixel_for_nn", "asymmetric"):
        yield case(f"avg-{mode}", statics(arrays), [2, 2, 2, 0.15, "avg", mode])
        yield case(f"max-{mode}", shaped(shapes, arrays, _typed(more)), [2, 3, 0, 0.15, "max", mode])


def _roi_align_rotated():
    case = partial(_case, "ROIAlignRotated", "opset15", "roi_align_rotated")

    def data(images, channels, height, width, count, seed=0):
        rng = np.random.default_rng(seed)
        regions = np.concatenate([rng.random((count, 4)) * 40 + 5, rng.random((count, 1)) * 6 - 3], axis=1)
        return _maps(images, channels, height, width, seed=seed), regions, rng.integers(0, images, count)

    plain = data(2, 4, 9, 11, 8)
    arrays = _typed(plain)
    yield case("clockwise", statics(arrays), [3, 2, 2, 0.2, True])
    yield case("counterclockwise", statics(_typed(plain, index=np.int64)), [2, 3, 3, 0.15, False])
    yield case("adaptive", statics(arrays), [2, 2, 0, 0.2, True])
    yield case("dynamic-rank", map(unranked, arrays), [3, 2, 2, 0.2, True])
    runs = arrays, _typed(data(1, 3, 4, 5, 3, seed=4))
    yield case("dynamic", shaped([_MAPS, _BOXES, [-1]], *runs), [2, 3, 0, 0.1, False])
    yield case("f16", statics(_typed(plain, F16)), [2, 2, 1, 0.25, True])


def _small():
    maps = np.arange(36, dtype=F32).reshape(1, 4, 3, 3)
    return maps, np.array([[0, 0, 0, 2, 2], [0, 1, 0, 2, 1]], F32)


_REFUSED = "the CPU plugin does not support dynamic shapes; expected is its result for static ones"


def _psroi_pooling():
    case = partial(_case, "PSROIPooling", "opset1", "psroi_pooling")
    maps = _maps(2, 36, 9, 11)
    pixels, fractions = _regions(12, 2, 100, ends=9), _regions(12, 2, 1, seed=1, ends=9)
    yield case("average", statics([maps, pixels]), [4, 3, 0.1, 1, 1, "average"])
    yield case("average-no-bins", statics([maps, pixels]), [4, 3, 0.1, 0, 0, "average"])
    yield case("average-halves", statics([maps, _regions(20, 2, 10, grid=2)]), [9, 2, 1.0, 1, 1, "average"])
    yield case("average-one", statics([maps, pixels]), [36, 1, 0.05, 1, 1, "average"])
    beyond = np.array([[1, 30, 2, 40, 5]], F32)  # each bin is empty, and the model is loaded with this knowledge
    yield case("average-beyond", [*statics([maps]), beyond], [4, 3, 1.0, 1, 1, "average"])
    yield case("bilinear", statics([maps, fractions]), [4, 3, 1.0, 3, 3, "bilinear"])
    yield case("bilinear-one", statics([maps, fractions]), [6, 1, 0.9, 3, 2, "bilinear"])
    yield case("f16", statics([maps.astype(F16), pixels.astype(F16)]), [4, 3, 0.125, 1, 1, "average"])
    answer = np.array([[[[2, 12], [23, 33]]], [[[1, 11], [22, 32]]]], F32)
    inputs, settings = shaped([_MAPS, _BOXES], _small()), decided("expected", _REFUSED, answer)
    yield case("dynamic", inputs, [1, 2, 1.0, 1, 1, "average"], **settings)


def _deformable_psroi_pooling():
    def case(name, inputs, attributes, **settings):
        def make(ops, maps, regions, offsets=None, **attributes):
            moved = {} if offsets is None else {"offsets": offsets}
            return ops.deformable_psroi_pooling(maps, regions, **moved, **attributes)

        return layer_case("DeformablePSROIPooling", "opset1", make, name, inputs, attributes, **settings)

    maps, pixels = _maps(2, 36, 9, 11), _regions(12, 2, 100, ends=9)
    plain = {"output_dim": 4, "spatial_scale": 0.1, "group_size": 3}
    binned = plain | {"spatial_bins_x": 2, "spatial_bins_y": 3}
    yield case("plain", statics([maps, pixels]), plain)
    yield case("offsets", statics([maps, pixels, _maps(12, 2, 3, 3)]), binned | {"trans_std": 0.3, "part_size": 3})
    yield case("classes", statics([maps, pixels, _maps(12, 4, 2, 2)]), binned | {"trans_std": 0.1, "part_size": 2})
    arrays = [array.astype(F16) for array in (maps, pixels, _maps(12, 2, 1, 1))]
    yield case("f16", statics(arrays), binned | {"trans_std": 0.25})
    given = {"output_dim": 1, "spatial_scale": 1.0, "group_size": 2, "spatial_bins_x": 2, "spatial_bins_y": 2}
    offsets = np.array([0.1, -0.2, 0.3, 0, 0.2, 0.1, 0, -0.1] * 2, F32).reshape(2, 2, 2, 2)
    inputs = [*shaped([_MAPS, _BOXES], _small()), dynamic(offsets)]
    answer = np.array([[[[1.025, 10.675], [22.475, 32.05]]], [[[1.15, 10.7], [21.3, 30.7]]]], F32)
    settings = decided("expected", _REFUSED, answer)
    yield case("dynamic", inputs, given | {"trans_std": 0.5, "part_size": 2}, **settings)


CASES = [*_psroi_pooling(), *_deformable_psroi_pooling(), *_roi_pooling(), *_roi_align(), *_roi_align_rotated()]
