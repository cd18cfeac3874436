"""A linear Resize, axis by axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from tests.onnx_specops.optimizing import graphs
from tests.onnx_specops.optimizing.graphs import X, made

COORDINATES = "coordinate_transformation_mode"
DOUBLED = np.float32([1, 1, 2, 2])


def resize(scales: str = "scales", sizes: str = "", x: str = X, **stated: Any) -> NodeProto:
    return helper.make_node("Resize", [x, "", scales, *([sizes] if sizes else [])], ["y"], **{"mode": "linear"} | stated)


def changed(
    node: NodeProto | list[NodeProto],
    dims: Sequence[int | None] = (2, 3, 5, 20),
    scales: np.ndarray = DOUBLED,
    sizes: Sequence[int] = (2, 3, 9, 40),
    **given: Any,
) -> bool:
    nodes = node if isinstance(node, list) else [node]
    model = made(nodes, dims, weights={"scales": scales, "sizes": np.array(sizes), "none": np.zeros(0, np.float32)}, **given)
    return graphs.changed(model, ["Interpolate"])


@pytest.mark.parametrize(
    ("scales", "found"),
    [
        (DOUBLED, True),
        (np.float32([1, 1, 2.1, 1.7]), True),
        (np.float32([1, 1, 0.5, 1]), True),
        (np.float32([1, 1, 2, 0.9]), False),
    ],
)
def test_scales(scales: np.ndarray, found: bool) -> None:
    assert changed(resize(), scales=scales) is found


@pytest.mark.parametrize(
    ("sizes", "stated", "found"),
    [
        ((2, 3, 9, 40), {}, True),
        ((2, 3, 9, 40), {COORDINATES: "align_corners"}, True),
        ((2, 3, 1, 40), {COORDINATES: "pytorch_half_pixel"}, True),
        ((2, 3, 9, 40), {COORDINATES: "asymmetric"}, True),
        ((2, 3, 2, 20), {}, True),  # less high, as wide
        ((2, 3, 9, 19), {}, False),
        ((2, 3, 9, 40), {COORDINATES: "half_pixel_symmetric"}, False),
        ((2, 3, 9, 40), {"keep_aspect_ratio_policy": "stretch"}, False),
        ((2, 3, 9, 40), {"antialias": 1}, False),
        ((2, 3, 9, 40), {"mode": "nearest"}, False),
    ],
)
def test_sizes(sizes: Sequence[int], stated: dict[str, Any], found: bool) -> None:
    assert changed(resize("", "sizes", **stated), sizes=sizes) is found
    assert changed(resize("none", "sizes", **stated), sizes=sizes) is found


def test_axes_stay() -> None:
    assert not changed(resize(axes=[2, 3]), scales=np.float32([2, 2]))


def test_excluded_pixels_stay() -> None:
    assert not changed(resize(exclude_outside=1))


@pytest.mark.parametrize(
    ("dims", "found"), [((2, 3, 5, 16), True), ((2, 3, 5, 15), False), ((None, 3, 5, 16), False), ((2, 3, None, 16), False)]
)
def test_dimensions(dims: tuple[int | None, ...], found: bool) -> None:
    assert changed(resize(), dims) is found


def test_other_ranks_stay() -> None:
    assert not changed(resize(), (5, 20), np.float32([2, 2]))


def test_other_types_stay() -> None:
    cast = helper.make_node("Cast", [X], ["h"], to=TensorProto.INT32)
    back = helper.make_node("Resize", ["h", "", "scales"], ["y"], mode="linear")
    model = made([cast, back], (2, 3, 5, 20), weights={"scales": DOUBLED})
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    assert not graphs.changed(model, ["Interpolate"])


def test_computed_scales_stay() -> None:
    nodes = [helper.make_node("Neg", ["scales"], ["n"]), helper.make_node("Neg", ["n"], ["computed"]), resize("computed")]
    assert not changed(nodes)


def test_older_opsets_stay() -> None:
    node = helper.make_node("Resize", [X, "scales"], ["y"], mode="linear")
    assert not changed(node, opset=10)
    assert changed(helper.make_node("Resize", [X, "none", "scales"], ["y"], mode="linear"), opset=11)
