"""Torchvision without its compiled operators.

Its wheel on PyPI is built for CUDA's torch, and its compiled part does not load with torch for the CPU. Detectors are then
traced with suppression and ROI alignment defined here. Only their names matter, because OpenVINO's importer recognizes
operators by name.
"""

from __future__ import annotations

import sys
import types
from unittest import mock

import torch


def _nms(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    order = scores.argsort(descending=True, stable=True)
    kept = []
    while order.numel():
        first, order = order[0], order[1:]
        kept.append(first)
        low, high = torch.maximum(boxes[first, :2], boxes[order, :2]), torch.minimum(boxes[first, 2:], boxes[order, 2:])
        shared = (high - low).clamp(min=0).prod(1)
        order = order[shared <= threshold * (areas[first] + areas[order] - shared)]
    return torch.stack(kept) if kept else torch.zeros(0, dtype=torch.int64)


def _roi_align(x, rois, scale, height, width, sampling_ratio, aligned):
    from torchvision.ops.roi_align import _roi_align

    return _roi_align(x, rois, scale, height, width, sampling_ratio, aligned)


_OPERATORS = {
    "nms": ("(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", _nms),
    "roi_align": (
        "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, "
        "bool aligned) -> Tensor",
        _roi_align,
    ),
    "_cuda_version": ("() -> int", lambda: -1),
}
_KEPT: list[torch.library.Library] = []


def load() -> None:
    """Make ``import torchvision`` work with any torch; call it before anything imports torchvision."""
    if "torchvision" in sys.modules:
        return
    try:
        import torchvision
    except RuntimeError:  # the registration of its operators' shapes fails because they are missing
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
    else:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name, (schema, function) in _OPERATORS.items():
        library.define(f"{name}{schema}")
        library.impl(name, function, "CompositeExplicitAutograd")
    _KEPT.append(library)
    for name in ("_meta_registrations", "_autograd_registrations"):
        sys.modules[f"torchvision.{name}"] = types.ModuleType(name)
    with mock.patch.object(torch.ops, "load_library"):
        import torchvision  # noqa: F401
