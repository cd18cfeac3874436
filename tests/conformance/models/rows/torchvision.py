"""Torchvision's classifiers, detectors including suppression, segmentation networks, and video networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.models.from_torch import imported, torchvision_model
from tests.conformance.models.network import Network, Size, floats, squares, uniform


def of_pictures(name: str, image: int = 64, **options: Any) -> Network:
    """Return a classifier or a segmentation network."""
    make = torchvision_model(name, {"num_classes": 10} | options)
    return Network(
        _label(name), "torchvision", "torchvision", imported(make), {"x": floats("b", 3, "h", "w")}, squares(image)
    )


def of_films(name: str, frames: int, image: int, **options: Any) -> Network:
    """Return a video classifier."""
    make = torchvision_model(name, {"num_classes": 10} | options)
    inputs = {"x": floats("b", 3, frames, image, image)}
    return Network(_label(name), "torchvision", "torchvision", imported(make), inputs, [{"b": 2}, {"b": 1}])


def detector(
    name: str, classes: int = 5, sizes: Sequence[Size] = ({"h": 96, "w": 96}, {"h": 96, "w": 128}), **options: Any
) -> Network:
    """Return a detector for one image."""
    make = torchvision_model(f"detection.{name}", {"num_classes": classes, "weights_backbone": None} | options)
    return Network(name, "torchvision", "torchvision", imported(make), {"image": uniform(3, "h", "w")}, sizes)


def _label(name: str) -> str:
    return f"torchvision {name.rpartition('.')[2]}"


PICTURE = {"min_size": 96, "max_size": 128}

NETWORKS = [
    of_pictures("alexnet"),
    of_pictures("squeezenet1_1"),
    of_pictures("googlenet", init_weights=False, aux_logits=False),
    of_pictures("shufflenet_v2_x0_5"),
    of_pictures("mobilenet_v3_small"),
    of_pictures("swin_v2_t"),
    of_pictures("maxvit_t", 224),
    of_pictures("segmentation.fcn_resnet50", weights_backbone=None),
    of_pictures("segmentation.deeplabv3_mobilenet_v3_large", weights_backbone=None),
    of_pictures("segmentation.lraspp_mobilenet_v3_large", weights_backbone=None),
    detector("fasterrcnn_mobilenet_v3_large_320_fpn", **PICTURE),
    detector("fasterrcnn_resnet50_fpn", **PICTURE),
    detector("maskrcnn_resnet50_fpn", **PICTURE),
    detector("keypointrcnn_resnet50_fpn", 2, **PICTURE),
    detector("fcos_resnet50_fpn", **PICTURE),
    of_films("video.r3d_18", 4, 32),
    of_films("video.s3d", 16, 224),
    of_films("video.swin3d_t", 4, 64),
    Network(
        "torchvision raft_small",
        "torchvision",
        "torchvision",
        imported(torchvision_model("optical_flow.raft_small", {})),
        {"first": floats("b", 3, 128, 128), "second": floats("b", 3, 128, 128)},
        [{"b": 2}, {"b": 1}],
    ),
]
