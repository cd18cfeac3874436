"""Linear Resize of images: ONNX Runtime's kernel (1.32) computes each element from four others.

The native kernel of Interpolate resizes one axis after the other. From 65 x 65 to 520 x 520 pixels with 21 channels, ONNX
Runtime takes 6.2 ms, and Interpolate takes 1.7 ms.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from onnx_specops.optimizing.graph import Graph, attributes_of, is_a

_FIRST_OPSET = 11
"""The first opset in which Resize has the inputs of later opsets."""

_LEAST_WIDTH = 16
_COORDINATES = (b"half_pixel", b"pytorch_half_pixel", b"align_corners", b"asymmetric")
_SCALES = 2
"""The index of the input."""


def use_interpolate(graph: Graph) -> None:
    """Replace a linear Resize by the domain's Interpolate.

    Conditions:

    - The input is a four-dimensional float32 tensor, and the dimensions of the input and the result are known.
    - Only the last two dimensions change.
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
    given, result = graph.type_of(node.input[0]), graph.type_of(node.output[0])
    if given.element_type != TensorProto.FLOAT or given.dims is None or result.dims is None:
        return None
    if len(given.dims) != 4 or len(result.dims) != 4 or not all(given.dims) or not all(result.dims):
        return None
    before, after = given.dims[2:], result.dims[2:]
    if given.dims[:2] != result.dims[:2] or before[1] < _LEAST_WIDTH or after[1] < before[1]:
        return None
    scales = np.array(after, np.float32) / np.array(before, np.float32)
    if len(node.input) > _SCALES and node.input[_SCALES]:
        stated_scales = graph.array(node, _SCALES)
        if stated_scales is None or stated_scales.size not in (0, 4):
            return None
        if stated_scales.size:
            scales = stated_scales[2:].astype(np.float32)
    return np.array(after, np.int64), scales
