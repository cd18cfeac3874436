"""Linear Resize of images: ONNX Runtime's kernel (1.32) computes each element from four others.

The native kernel of Interpolate resizes one axis after the other. From 65 x 65 to 520 x 520 pixels with 21 channels, ONNX
Runtime takes 6.2 ms, and Interpolate takes 1.7 ms.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from onnx_specops.ops.interpolate import MOST_SIZE
from onnx_specops.optimizing.graph import Graph
from onnx_specops.optimizing.nodes import attributes_of, is_a

_FIRST_OPSET = 11
"""The first opset in which Resize has the inputs of later opsets."""

_LEAST_WIDTH = 16
_COORDINATES = (b"half_pixel", b"pytorch_half_pixel", b"align_corners", b"asymmetric")
_SCALES = 2
"""The index of the input."""


def use_interpolate(graph: Graph) -> None:
    """Replace a linear Resize by the domain's Interpolate.

    Conditions:

    - The input is a four-dimensional float32 tensor. Its dimensions and those of the result follow from the model's inputs
      and constants.
    - Only the last two dimensions change, and at least one of them. A dimension that does not change has a scale of 1.
    - The image has a width of at least `_LEAST_WIDTH`, and does not become narrower. Interpolate computes other elements one
      by one.
    - The coordinates depend only on the sizes and the scales. The scales are constant or follow from the sizes.
    - There are no ``axes`` or ``keep_aspect_ratio_policy``, and ``antialias`` and ``exclude_outside`` are 0.
    """
    if graph.opset < _FIRST_OPSET:
        return
    for node in graph.nodes:
        if is_a(node, "Resize") and len(node.input) > 1 and (found := _sizes_and_scales(graph, node)) is not None:
            coordinates = attributes_of(node).get("coordinate_transformation_mode", b"half_pixel")
            graph.become(
                node,
                "Interpolate",
                node.input[0],
                *found,
                axes="2,3",
                mode="linear_onnx",
                coordinate_transformation_mode=coordinates,
            )


def _sizes_and_scales(graph: Graph, node: NodeProto) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the inputs of Interpolate; ``None`` if it does not compute the same, or is not faster."""
    stated = attributes_of(node)
    if stated.get("mode", b"nearest") != b"linear" or {"axes", "keep_aspect_ratio_policy"} & stated.keys():
        return None
    if stated.get("coordinate_transformation_mode", _COORDINATES[0]) not in _COORDINATES:
        return None
    if stated.get("antialias", 0) or stated.get("exclude_outside", 0):
        return None
    given = graph.proven_type_of(node.input[0])
    if given.element_type != TensorProto.FLOAT or given.dims is None or len(given.dims) != 4 or not all(given.dims):
        return None
    if (found := _scaled(graph, node, given.dims)) is None:
        return None
    before, (after, scales) = np.array(given.dims[2:]), found
    if before[1] < _LEAST_WIDTH or after[1] < before[1] or not 0 < after.min() <= after.max() <= MOST_SIZE:
        return None
    # If the size is the same, Interpolate does not use the scale.
    is_same = after == before
    return None if is_same.all() or (is_same != (scales == 1)).any() else (after, scales)


def _scaled(graph: Graph, node: NodeProto, dims: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the sizes and scales of the last two dimensions; ``None`` if they are unknown or the others change."""
    if len(node.input) > _SCALES and node.input[_SCALES]:
        given = graph.array(node, _SCALES)
        if given is None or given.dtype != np.float32 or given.size not in (0, 4):
            return None
        if given.size:
            if (given[:2] != 1).any() or not (abs(given) <= MOST_SIZE).all() or any(node.input[_SCALES + 1 :]):
                return None
            scales = given[2:]
            return (np.array(dims[2:], np.float32) * scales).astype(np.int64), scales  # in float32, as ONNX Runtime
    result = graph.proven_type_of(node.output[0]).dims
    if result is None or result[:2] != dims[:2] or not all(result):
        return None
    sizes = np.array(result[2:], np.int64)
    return sizes, sizes.astype(np.float32) / np.array(dims[2:], np.float32)
