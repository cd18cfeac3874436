"""Random nodes on regions of feature maps, including regions outside the map, reversed, disabled, and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.onnx_specops.native import nodes
from tests.onnx_specops.native.nodes import Node
from tests.onnx_specops.native.test_random_nodes import FLOATS, pick


def _maps(rng: np.random.Generator, channels: Any, type_: Any) -> np.ndarray:
    return rng.standard_normal((rng.integers(1, 4), channels, *rng.integers(1, 12, 2))).astype(type_)


def _regions(rng: np.random.Generator, count: int, extent: float, type_: Any) -> np.ndarray:
    start, size = rng.uniform(-0.3, 1, (count, 2)), rng.uniform(-0.2, 0.8, (count, 2))
    regions = np.concatenate([start, start + size], axis=1) * extent
    if count and rng.random() < 0.2:
        regions[rng.integers(count), rng.integers(4)] = pick(rng, (np.nan, np.inf, -np.inf, 1e4))
    return np.round(regions * 8) / 8 if rng.random() < 0.3 else regions


def _images(rng: np.random.Generator, count: int, images: int) -> np.ndarray:
    batch = rng.integers(0, images, count)
    if count and rng.random() < 0.3:
        batch[rng.integers(count) :] = -1
    return batch


def _scale(rng: np.random.Generator) -> float:
    return float(np.float32(pick(rng, (0.25, 0.3, 1))))


def _node(rng: np.random.Generator, name: str, arrays: list[Any], attributes: dict[str, Any]) -> Node:
    sizes = {"pooled_h": int(rng.integers(1, 5)), "pooled_w": int(rng.integers(1, 5))} if "PS" not in name else {}
    return name, arrays, [nodes.element_type(arrays[0])], attributes | sizes


def roi_align(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    maps = _maps(rng, rng.integers(0, 40), type_)
    count = rng.integers(0, pick(rng, (3, 30)))
    attributes = {
        "sampling_ratio": int(rng.integers(0, 4)),
        "spatial_scale": _scale(rng),
        "mode": pick(rng, ("avg", "max")),
        "aligned_mode": pick(rng, ("asymmetric", "half_pixel_for_nn", "half_pixel")),
    }
    regions = np.nan_to_num(_regions(rng, count, 30, type_), posinf=100, neginf=-100).astype(type_)
    return _node(rng, "ROIAlign", [maps, regions, _images(rng, count, len(maps))], attributes)


def roi_align_rotated(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    maps = _maps(rng, rng.integers(0, 40), type_)
    count = rng.integers(0, pick(rng, (3, 30)))
    regions = np.concatenate([rng.uniform(-5, 40, (count, 4)), rng.uniform(-7, 7, (count, 1))], axis=1)
    attributes = {
        "sampling_ratio": int(rng.integers(0, 4)),
        "spatial_scale": _scale(rng),
        "clockwise_mode": int(rng.integers(2)),
    }
    arrays = [maps, regions.astype(type_), rng.integers(0, len(maps), count)]
    return _node(rng, "ROIAlignRotated", arrays, attributes)


def roi_pooling(rng: np.random.Generator) -> Node:
    type_, method = pick(rng, FLOATS), pick(rng, ("max", "bilinear"))
    maps = _maps(rng, rng.integers(0, 40), type_)
    count = rng.integers(0, pick(rng, (3, 30)))
    regions = _regions(rng, count, 30 if method == "max" else 1, type_)
    arrays = [maps, np.concatenate([_images(rng, count, len(maps))[:, None], regions], axis=1).astype(type_)]
    return _node(rng, "ROIPooling", arrays, {"spatial_scale": _scale(rng), "method": method})


def psroi_pooling(rng: np.random.Generator) -> Node:
    type_, mode = pick(rng, FLOATS), pick(rng, ("average", "bilinear"))
    size, across, down, channels = (int(n) for n in rng.integers(1, 4, 4))
    maps = _maps(rng, channels * (size**2 if mode == "average" else across * down), type_)
    count = rng.integers(0, pick(rng, (3, 30)))
    regions = _regions(rng, count, 30 if mode == "average" else 1, type_)
    arrays = [maps, np.concatenate([_images(rng, count, len(maps))[:, None], regions], axis=1).astype(type_)]
    attributes = {"output_dim": channels, "group_size": size, "spatial_bins_x": across, "spatial_bins_y": down}
    return _node(rng, "PSROIPooling", arrays, attributes | {"spatial_scale": _scale(rng), "mode": mode})


def deformable_psroi_pooling(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    size, across, down, parts, classes = (int(n) for n in rng.integers(1, 4, 5))
    channels = classes * int(rng.integers(1, 3))
    maps = _maps(rng, channels * size**2, type_)
    count = rng.integers(0, pick(rng, (3, 30)))
    regions = _regions(rng, count, 30, type_)
    arrays = [maps, np.concatenate([_images(rng, count, len(maps))[:, None], regions], axis=1).astype(type_)]
    shifts = rng.standard_normal((count, 2 * classes, parts, parts)).astype(type_)
    arrays.append(pick(rng, (None, np.zeros(0, type_), shifts, shifts)))
    attributes = {"output_dim": channels, "group_size": size, "spatial_bins_x": across, "spatial_bins_y": down}
    attributes |= {"spatial_scale": _scale(rng), "trans_std": 0.25, "part_size": parts}
    return _node(rng, "DeformablePSROIPooling", arrays, attributes)


MAKERS = (deformable_psroi_pooling, psroi_pooling, roi_align, roi_align_rotated, roi_pooling)
