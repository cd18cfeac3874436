"""Resize as matrix multiplications, one for each axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.resized_elements import has_clear_elements, nearest_elements, positions_of, scales_of
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value

_IMAGE = 4
_MAX_MATRIX = 1 << 24
"""The largest number of elements of a matrix."""

_WIDE_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64)
"""Integers that float32 does not represent exactly."""


class ResizeByMatrices(Workaround):
    """Convert a cubic Resize, and a linear or nearest Resize of tensors other than images, to matrix multiplications and
    Gather.

    OpenCV 4.14 does not support these. MNN (3.6) computes cubic coordinates differently, and does not support volumes. For a
    nearest Resize, MNN adds 0.499 to the positions, so the Resize is kept only if no position is near the midpoint between
    two elements.

    Conditions: known sizes and scales, matrices of at most 16,777,216 elements, coordinates that depend on the sizes and
    scales only, and float32, except for a nearest Resize. An infinity or a NaN in the input makes all elements of its line
    NaN.
    """

    operators = frozenset(("Resize",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value):
            return None
        if not x.is_static or not result.is_static or x.dims is None or result.dims is None:
            return None
        mode = node.attributes.get_string("mode", "nearest")
        if mode not in ("cubic", "linear", "nearest") or (mode != "nearest" and x.dtype != ir.DataType.FLOAT):
            return None
        if node.attributes.get_int("antialias", 0):
            return None
        if node.attributes.get_string("keep_aspect_ratio_policy", "stretch") != "stretch":
            return None
        scales = scales_of(node, x.dims, result.dims)
        if scales is None:
            return None
        axes = [
            k for k, (size, count) in enumerate(zip(x.dims, result.dims, strict=True)) if size != count or scales[k] != 1
        ]
        positions = {k: positions_of(node, x.dims[k] or 0, result.dims[k] or 0, scales[k]) for k in axes}
        if any(found is None for found in positions.values()):
            return None
        if mode != "nearest" and any((x.dims[k] or 0) * (result.dims[k] or 0) > _MAX_MATRIX for k in axes):
            return None
        is_image = len(x.dims) == _IMAGE and not {0, 1}.intersection(axes)
        if self.computes(node, x, result) if is_image else self.computes_other(node, x, result):
            return None
        if is_image and (other := self.respelled(op, node, x, result)) is not None:
            return [other]
        changed: Value = x
        for axis, found in positions.items():
            size = x.dims[axis] or 0
            assert found is not None
            if mode == "nearest":
                changed = op.Gather(changed, op.const(nearest_elements(found, size, node)), axis=axis)
                continue
            weights = _weights(found, size, node).astype(np.float32)
            changed = multiplied(op, changed, axis, weights)
        return [changed if axes else op.Identity(x)]

    def computes(self, node: ir.Node, x: Value, result: Value) -> bool:
        """Return whether the program computes a Resize of images."""
        mode = node.attributes.get_string("mode", "nearest")
        if mode != "nearest":
            return mode != "cubic"
        rounding = node.attributes.get_string("nearest_mode", "round_prefer_floor")
        return rounding in ("floor", "round_prefer_floor") and _is_clear(node, x, result, 2e-3)

    def computes_other(self, node: ir.Node, x: Value, result: Value) -> bool:
        """Return whether the program computes a Resize of a tensor that is not an image, or along other axes."""
        return False

    def respelled(self, op: Builder, node: ir.Node, x: Value, result: Value) -> Value | None:
        """Return a Resize of images that the program computes, and that gives the same result."""
        return None


class ResizeOfOpenCV5(ResizeByMatrices):
    """Convert a nearest Resize of images to Gather if a position is near the midpoint between two elements, or if the scales
    differ from the ratios of the sizes.

    OpenCV (5.0.0) computes positions in a different order of operations, and from the sizes instead of the scales. It does
    not support a Resize of tensors other than images, and ignores a Resize of the channels; these become Gather and matrix
    multiplications.
    """

    def computes(self, node: ir.Node, x: Value, result: Value) -> bool:
        if node.attributes.get_string("mode", "nearest") != "nearest":
            return True
        return _by_sizes(node, x, result) and _is_clear(node, x, result, 1e-3)


class ResizeOfTract(ResizeByMatrices):
    """Convert a Resize of images that tract (0.23) computes differently to Gather, or to matrix multiplications.

    tract rounds some positions with ``align_corners`` differently. For a cubic Resize to one element with
    ``pytorch_half_pixel``, it computes a different position.
    """

    def computes_other(self, node: ir.Node, x: Value, result: Value) -> bool:
        return True

    def computes(self, node: ir.Node, x: Value, result: Value) -> bool:
        coordinates = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
        match node.attributes.get_string("mode", "nearest"):
            case "cubic":
                return coordinates != "pytorch_half_pixel" or all(count > 1 for _, count in _image_sizes(x, result))
            case "nearest":
                return coordinates != "align_corners" or _is_clear(node, x, result, 1e-3)
        return True


class ResizeOfTVM(ResizeByMatrices):
    """Convert a Resize that TVM (0.27) computes differently to Gather, or to matrix multiplications.

    TVM uses the sizes instead of the scales. Near the midpoint between two elements, it selects the other one. It computes
    integers as float32, and divides by 0 for ``align_corners`` with one element.
    """

    def computes(self, node: ir.Node, x: Value, result: Value) -> bool:
        if not _by_sizes(node, x, result):
            return False
        coordinates = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
        if coordinates == "align_corners" and any(count <= 1 for _, count in _image_sizes(x, result)):
            return False
        if node.attributes.get_string("mode", "nearest") != "nearest":
            return True
        return x.dtype not in _WIDE_INTEGERS and _is_clear(node, x, result, 1e-3)

    def computes_other(self, node: ir.Node, x: Value, result: Value) -> bool:
        same_channels = (x.dims or ())[:2] == (result.dims or ())[:2]
        return same_channels and x.rank in (3, 5) and self.computes(node, x, result)


class ResizeOfTinygrad(ResizeByMatrices):
    """Convert a Resize that tinygrad (0.14) computes differently or not at all to Gather, or to matrix multiplications.

    tinygrad multiplies by the reciprocal of the scale, so positions near the midpoint between two elements can be on the
    other side. It does not support a Resize of matrices, or of volumes by sizes.
    """

    def computes(self, node: ir.Node, x: Value, result: Value) -> bool:
        is_nearest = node.attributes.get_string("mode", "nearest") == "nearest"
        return _has_sizes(node, x, result) and (not is_nearest or _is_clear(node, x, result, 1e-3))

    def computes_other(self, node: ir.Node, x: Value, result: Value) -> bool:
        by_sizes = len(node.inputs) > 3 and node.inputs[3] is not None
        same_channels = (x.dims or ())[:2] == (result.dims or ())[:2]
        return same_channels and (x.rank == 3 or (x.rank == 5 and not by_sizes)) and self.computes(node, x, result)


class ResizeOfOpenCV4(ResizeByMatrices):
    """Convert a Resize that OpenCV (4.14.0) computes differently to matrix multiplications and Gather.

    OpenCV selects other elements for some nearest Resize nodes. It computes a linear Resize to one element with
    ``pytorch_half_pixel`` differently.
    """

    def computes(self, node: ir.Node, x: Value, result: Value) -> bool:
        mode = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
        sizes, scales = _image_sizes(x, result), scales_of(node, x.dims or (), result.dims or ())
        match node.attributes.get_string("mode", "nearest"):
            case "cubic":
                return False
            case "linear":
                return mode != "pytorch_half_pixel" or all(count > 1 for _, count in sizes)
        return scales is not None and _chooses(node, mode, sizes, scales[2:])


class ResizeOfImages(ResizeByMatrices):
    """Convert every Resize of known sizes to matrix multiplications and Gather. jaxonnxruntime (0.3) lacks Resize."""

    def computes(self, node: ir.Node, x: Value, result: Value) -> bool:
        return False


class ResizeOfNcnn(ResizeByMatrices):
    """Convert a Resize that pnnx (2026) converts incorrectly to matrix multiplications and Gather, or to a nearest Resize.

    pnnx ignores the coordinate transformation of a nearest Resize. For a linear or cubic Resize, it distinguishes only
    ``align_corners`` and ``half_pixel``. ncnn supports only one ``cubic_coeff_a``, and reads out of bounds for images with
    fewer pixels than weights.
    """

    def computes(self, node: ir.Node, x: Value, result: Value) -> bool:
        mode = node.attributes.get_string("mode", "nearest")
        coordinates = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
        if mode == "nearest":
            return False
        sizes = _image_sizes(x, result)
        outside: int = node.attributes.get_int("exclude_outside", 0)
        if mode == "cubic" and (outside or node.attributes.get_float("cubic_coeff_a", -0.75) != -0.75):
            return False
        if any(size < (4 if mode == "cubic" else 2) for size, _ in sizes):
            return False
        single = coordinates == "pytorch_half_pixel" and any(count == 1 for _, count in sizes)
        return coordinates != "asymmetric" and not single

    def respelled(self, op: Builder, node: ir.Node, x: Value, result: Value) -> Value | None:
        """Return a nearest Resize with asymmetric coordinates that are rounded down, if it has the same elements."""
        if node.attributes.get_string("mode", "nearest") != "nearest" or x.dims is None or result.dims is None:
            return None
        scales = scales_of(node, x.dims, result.dims)
        if (
            scales is None
            or x.dims[:2] != result.dims[:2]
            or not _chooses(node, "asymmetric", _image_sizes(x, result), scales[2:])
        ):
            return None
        sizes = op.const([dim or 0 for dim in result.dims])
        modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        other: Value = op.Resize(x, None, None, sizes, mode="nearest", **modes)
        return other


def multiplied(op: Builder, x: Value, axis: int, matrix: np.ndarray) -> Value:
    """Multiply a matrix by ``x`` along an axis."""
    rank = x.rank or 0
    order = [k for k in range(rank) if k != axis] + [axis]
    moved = x if axis == rank - 1 else op.Transpose(x, perm=order)
    moved = op.MatMul(moved, op.const(np.ascontiguousarray(matrix.T)))
    return moved if axis == rank - 1 else op.Transpose(moved, perm=[order.index(k) for k in range(rank)])


def _image_sizes(x: Value, result: Value) -> list[tuple[int, int]]:
    """Return the height and width before and after."""
    return [(size or 0, count or 0) for size, count in zip(x.dims or (), result.dims or (), strict=True)][2:]


def _by_sizes(node: ir.Node, x: Value, result: Value) -> bool:
    """Return whether the scales are the quotients of the sizes, in float32."""
    scales = scales_of(node, x.dims or (), result.dims or ()) or []
    quotients = [(count or 0) / (size or 1) for size, count in zip(x.dims or (), result.dims or (), strict=True)]
    return np.array_equal(np.array(scales, np.float32), np.array(quotients, np.float32))


def _has_sizes(node: ir.Node, x: Value, result: Value) -> bool:
    """Return whether the sizes by the scales, in float64, are those of the result."""
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        return True
    scales = scales_of(node, x.dims or (), result.dims or ()) or []
    triples = zip(scales, x.dims or (), result.dims or (), strict=True)
    return all(int(scale * (size or 0)) == count for scale, size, count in triples)


def _is_clear(node: ir.Node, x: Value, result: Value, distance: float) -> bool:
    """Return whether a nearest Resize of images has clear elements, see `has_clear_elements`."""
    scales = scales_of(node, x.dims or (), result.dims or ()) or []
    pairs = zip(_image_sizes(x, result), scales[2:], strict=True)
    return all(has_clear_elements(node, size, count, scale, distance) for (size, count), scale in pairs if size and count)


def _chooses(node: ir.Node, mode: str, sizes: Sequence[tuple[int, int]], scales: Sequence[float]) -> bool:
    """Return whether a nearest Resize has the elements that `_chosen` returns for coordinates of a mode."""
    for (size, count), scale in zip(sizes, scales, strict=True):
        positions = positions_of(node, size, count, scale)
        if positions is None or (nearest_elements(positions, size, node) != _chosen(mode, size, count)).any():
            return False
    return True


def _chosen(mode: str, size: int, count: int) -> np.ndarray:
    """Return the elements that OpenCV (4.14.0) chooses along an axis, and ncnn for asymmetric coordinates."""
    x = np.arange(count, dtype=np.float32)
    if mode == "align_corners":
        step = np.float32(size - 1) / np.float32(count - 1) if count > 1 else np.float32(size)
        found = np.floor(x * step + np.float32(0.5))
    else:
        step = np.float32(size) / np.float32(count)
        found = np.floor(x * step + (np.float32(0) if mode == "asymmetric" else np.float32(0.5) * step))
    return np.minimum(found, size - 1).astype(np.int64)


def _weights(positions: np.ndarray, size: int, node: ir.Node) -> np.ndarray:
    """Return the matrix with a row of weights for each element of the result."""
    if node.attributes.get_string("mode", "nearest") == "linear":
        positions = np.clip(positions, 0, size - 1)
        first = np.floor(positions).astype(np.int64)
        after = positions - first
        taps = [(first, 1 - after), (first + 1, after)]
    else:
        a = node.attributes.get_float("cubic_coeff_a", -0.75)
        first = np.floor(positions).astype(np.int64)
        taps = [(first + k, _cubic(np.abs(positions - (first + k)), a)) for k in (-1, 0, 1, 2)]
    excluded = bool(node.attributes.get_int("exclude_outside", 0))
    matrix = np.zeros((len(positions), size))
    rows = np.arange(len(positions))
    for place, weight in taps:
        within = (place >= 0) & (place < size)
        np.add.at(matrix, (rows, np.clip(place, 0, size - 1)), np.where(within | (not excluded), weight, 0))
    return matrix / matrix.sum(1, keepdims=True) if excluded else matrix


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Return the weight of an element at a distance of less than 2."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, far)
