"""Layers that pool regions of feature maps."""

from __future__ import annotations

import numpy as np

from tests.conformance.random.graph import Graph, Value, maker
from tests.conformance.random.layers.networks import images


def _boxes(g: Graph, count: int, extent: float) -> np.ndarray:
    start, size = g.rng.random((count, 2)) * 0.8, g.rng.random((count, 2)) * 0.6
    return (np.concatenate([start, start + size], axis=1) * extent).astype(np.float32)


def _regions(g: Graph, images_: int, extent: float) -> Value:
    """Return image and box, in the form of the older operations."""
    count = g.int(1, 4)
    numbers = g.rng.integers(0, images_, (count, 1))
    return g.leaf(np.concatenate([numbers, _boxes(g, count, extent)], axis=1).astype(np.float32), 0.2)


@maker()
def aligned(g: Graph) -> None:
    maps = images(g, (4, 4), ("f32",))
    count = g.int(1, 4)
    numbers = g.index(g.rng.integers(0, maps.dims[0], count), 0.3, ("i32", "i64"))
    given = {
        "pooled_h": g.int(1, 3),
        "pooled_w": g.int(1, 3),
        "sampling_ratio": g.int(0, 2),
        "spatial_scale": g.pick(1.0, 0.5, 0.25),
    }
    if g.chance(0.25):
        turned = np.concatenate([_boxes(g, count, 8) + 1, g.rng.uniform(-3, 3, (count, 1)).astype(np.float32)], axis=1)
        g.layer("ROIAlignRotated", "opset15", maps, g.leaf(turned, 0.2), numbers, **given)
    else:
        g.layer("ROIAlign", g.pick("opset3", "opset9"), maps, g.leaf(_boxes(g, count, 8), 0.2), numbers, **given)


@maker()
def pooled(g: Graph) -> None:
    maps = images(g, (4, 4), ("f32",))
    method = g.pick("max", "bilinear")
    regions = _regions(g, maps.dims[0], 8 if method == "max" else 1)
    size = [g.int(1, 3), g.int(1, 3)]
    g.layer("ROIPooling", "opset2", maps, regions, output_roi=size, spatial_scale=1.0, method=method)


@maker()
def position_sensitive(g: Graph) -> None:
    g.static = True
    group, outputs = g.int(1, 3), g.int(1, 2)
    shape = [g.int(1, 2), group * group * outputs, g.int(3, 6), g.int(3, 6)]
    maps = g.fresh(("f32",), shape, 0.1)
    if g.chance(0.6):
        mode = g.pick("average", "bilinear")
        bins = {"spatial_bins_x": 1, "spatial_bins_y": 1}
        if mode == "bilinear":
            bins, group = {"spatial_bins_x": group, "spatial_bins_y": group}, 1
        given = {"output_dim": outputs, "group_size": group, "spatial_scale": 1.0, "mode": mode}
        if mode == "bilinear":
            given["group_size"] = g.int(1, 3)
        g.layer("PSROIPooling", "opset1", maps, _regions(g, shape[0], 6 if mode == "average" else 1), **given, **bins)
    else:
        given = {"output_dim": outputs, "group_size": group, "spatial_scale": 1.0, "trans_std": g.float(0, 0.5)}
        bins = {"spatial_bins_x": g.int(1, 3), "spatial_bins_y": g.int(1, 3), "part_size": 1}
        g.layer("DeformablePSROIPooling", "opset1", maps, _regions(g, shape[0], 6), **given, **bins)
