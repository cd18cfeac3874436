"""Prior boxes: a grid of boxes over an image."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import AttributeGroup, Departure, rule
from converters.openvino.rules._indices import int64
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value

_F = np.float32


@dataclass(frozen=True, kw_only=True)
class PriorBoxes(AttributeGroup):
    """The attributes of both versions of PriorBox."""

    of_image: ClassVar[bool] = True
    """Whether sizes without `scale_all_sizes` are fractions of the image's height, not pixels."""

    min_size: tuple[float, ...] = ()
    max_size: tuple[float, ...] = ()
    aspect_ratio: tuple[float, ...] = ()
    flip: bool = False
    clip: bool = False
    step: float = 0.0
    offset: float
    variance: tuple[float, ...] = ()
    scale_all_sizes: bool = True
    fixed_ratio: tuple[float, ...] = ()
    fixed_size: tuple[float, ...] = ()
    density: tuple[float, ...] = ()

    def places(self) -> int:
        """The number of boxes of a cell in the output.

        OpenVINO does not count the boxes of ``min_size`` next to fixed ones and, without ``scale_all_sizes``, those of
        ``max_size``. Surplus boxes are cut off the end of the whole output.
        """
        known = _ratios(self.aspect_ratio, False)
        ratios = len({round(ratio, 6) for ratio in [*known, *(1 / ratio for ratio in known if self.flip)]})
        if self.fixed_size:
            count = ratios * len(self.fixed_size)
        elif self.scale_all_sizes:
            count = ratios * len(self.min_size) + len(self.max_size)
        else:
            count = ratios + len(self.min_size) - 1
        if not all(math.isfinite(number) for number in self.density):
            raise Malformed(f"its densities {self.density} are not all finite")
        count += sum((len(self.fixed_ratio) or ratios) * (int(number) ** 2 - 1) for number in self.density)
        return _checked_count(count)


_ODD = Departure(
    where="an odd `fixed_size`, and sizes that are not constant",
    cpu="centers the boxes; for constant sizes, OpenVINO folds the layer with its reference kernel",
    reference="shifts them by half a pixel",
    follows="cpu",
)


@rule("PriorBox", departs=[_ODD])
def prior_box_1(op: Builder, output_size: Value, image_size: Value, *, priors: PriorBoxes):
    """PriorBox-1: like PriorBox-8, with boxes of the maximum size before those of other ratios."""
    return _grid(op, output_size, image_size, priors, max_first=True)


@rule(
    "PriorBox",
    since="opset8",
    departs=[
        _ODD,
        Departure(
            where="`min_max_aspect_ratios_order` false, sizes that are not constant",
            cpu="rejects it",
            specification="allows it",
            follows="specification",
        ),
    ],
)
def prior_box_8(
    op: Builder, output_size: Value, image_size: Value, *, priors: PriorBoxes, min_max_aspect_ratios_order: bool = True
):
    """PriorBox-8."""
    return _grid(op, output_size, image_size, priors, max_first=min_max_aspect_ratios_order)


@rule("PriorBoxClustered")
def prior_box_clustered(
    op: Builder,
    output_size: Value,
    image_size: Value,
    *,
    width: tuple[float, ...] = (1.0,),
    height: tuple[float, ...] = (1.0,),
    clip: bool = True,
    step: float = 0.0,
    step_w: float = 0.0,
    step_h: float = 0.0,
    offset: float,
    variance: tuple[float, ...] = (),
):
    """PriorBoxClustered-1: if both steps are 0, they divide the image evenly."""
    if len(width) != len(height):
        raise Malformed(f"it has {len(width)} widths and {len(height)} heights")
    cells, grid, image = _sizes(op, output_size, image_size)
    given = [step_h or step, step_w or step]
    steps = [op.const(_F(size)) if any(given) else _step(op, grid, image, axis, 0.0) for axis, size in enumerate(given)]
    centers = [_centers(op, cells, axis, offset, steps[axis]) for axis in (0, 1)]
    half = np.array([width, height], _F) / 2
    corners = []
    for sign in (-1, 1):
        for axis, center in ((1, centers[1]), (0, centers[0])):
            size = half[0 if axis == 1 else 1] * _F(sign)
            corners.append(op.Div(op.Add(center, size), _element(op, image, axis)))
    return _boxes(op, cells, corners, len(width), len(width), clip, variance)


class _Boxes:
    """The boxes of one cell: offsets of the center, half widths and heights, and whether the box is clipped to the image.

    Sizes are in pixels. If ``scaled``, they are fractions of the image's height: some scale with it, and others with its
    square root.
    """

    def __init__(self, priors: PriorBoxes, max_first: bool, folded: bool) -> None:
        self.shifts: list[tuple[float, float]] = []
        self.halves: list[tuple[float, float]] = []
        self.powers: list[float] = []
        self.cut: list[bool] = []
        self.scaled = priors.of_image and not priors.scale_all_sizes
        self._folded = folded
        ratios = _ratios(priors.aspect_ratio, priors.flip)
        if priors.fixed_size and len(priors.density) < len(priors.fixed_size):
            raise Malformed(f"it has {len(priors.fixed_size)} fixed sizes and {len(priors.density)} densities")
        for size, count in zip(priors.fixed_size, priors.density, strict=False):
            self._fixed(size, int(count), ratios, priors.fixed_ratio)
        for index, size in enumerate(priors.min_size):
            self._add(0, 0, size / 2, size / 2, 1, False)
            largest = [math.sqrt(size * priors.max_size[index]) / 2] if index < len(priors.max_size) else []
            others = []
            if priors.scale_all_sizes or index == len(priors.min_size) - 1:
                base = size if priors.scale_all_sizes else priors.min_size[0]
                others = [(base / 2 * math.sqrt(r), base / 2 / math.sqrt(r)) for r in ratios if abs(r - 1) >= 1e-6]
            for part in ("max", "ratios") if max_first else ("ratios", "max"):
                if part == "max":
                    for half in largest:
                        self._add(0, 0, half, half, 0.5, False)
                else:
                    for half_width, half_height in others:
                        self._add(0, 0, half_width, half_height, 1, False)

    def _fixed(self, size: float, count: int, ratios: list[float], fixed_ratio: tuple[float, ...]) -> None:
        if not 1 <= count <= 256:
            raise Malformed(f"a density of {count} is not a valid number of boxes")
        whole, step = int(size), int(size / count)
        first = step / 2 - (whole // 2 if self._folded else whole / 2)
        places = [first + i * step for i in range(count)]
        shapes = [(size / 2 * math.sqrt(r), size / 2 / math.sqrt(r)) for r in fixed_ratio]
        if not fixed_ratio:
            shapes = [(whole / 2, whole / 2)]
            shapes += [(size / 2 * math.sqrt(r), size / 2 / math.sqrt(r)) for r in ratios if abs(r - 1) >= 1e-6]
        for half_width, half_height in shapes:
            for shift_y in places:
                for shift_x in places:
                    self._add(shift_x, shift_y, half_width, half_height, 0, True)

    def _add(self, x: float, y: float, half_width: float, half_height: float, power: float, cut: bool) -> None:
        self.shifts.append((x, y))
        self.halves.append((half_width, half_height))
        self.powers.append(power)
        self.cut.append(cut)
        _checked_count(len(self.cut))


def _checked_count(count: int) -> int:
    if not 0 <= count <= 1 << 16:
        raise Malformed(f"it describes {count} boxes per cell; expected 0 to 65,536")
    return count


def _ratios(aspect_ratio: tuple[float, ...], flip: bool) -> list[float]:
    ratios = [1.0]
    for ratio in aspect_ratio:
        if not ratio > 0:
            raise Malformed(f"an aspect ratio of {ratio} is not positive")
        if all(abs(ratio - known) >= 1e-6 for known in ratios):
            ratios += [ratio, 1 / ratio] if flip else [ratio]
    return ratios


def _grid(op: Builder, output_size: Value, image_size: Value, priors: PriorBoxes, max_first: bool) -> Value:
    folded = output_size.constant is not None and image_size.constant is not None
    boxes, step = _Boxes(priors, max_first, folded), priors.step
    cells, grid, image = _sizes(op, output_size, image_size)
    image_height = _element(op, image, 0)
    if boxes.scaled:
        # A step of -1 divides the image's height evenly. Other steps are fractions of it.
        even = op.Div(image_height, _element(op, grid, 0))
        steps = [even if step == -1 else op.Mul(image_height, _F(step))] * 2
        if step == 0:
            steps = [_step(op, grid, image, axis, 0.0) for axis in (0, 1)]
    else:
        steps = [_step(op, grid, image, axis, step) for axis in (0, 1)]
    centers = [_centers(op, cells, axis, 0.5 if step == 0 else priors.offset, steps[axis]) for axis in (0, 1)]
    shifts, halves = np.array(boxes.shifts, _F).reshape(-1, 2), np.array(boxes.halves, _F).reshape(-1, 2)
    corners = []
    for sign in (-1, 1):
        for axis, column in ((1, 0), (0, 1)):
            half: Value | np.ndarray = halves[:, column] * _F(sign)
            if boxes.scaled:
                half = op.Mul(op.Pow(image_height, np.array(boxes.powers, _F)), half)
            position = op.Add(op.Add(centers[axis], shifts[:, column]), half)
            corner = op.Mul(position, op.Reciprocal(_element(op, image, axis)))
            if any(boxes.cut):
                edged = op.Max(corner, 0.0) if sign < 0 else op.Min(corner, 1.0)
                corner = op.Where(np.array(boxes.cut), edged, corner)
            corners.append(corner)
    return _boxes(op, cells, corners, len(boxes.cut), priors.places(), priors.clip, priors.variance)


def _boxes(
    op: Builder, cells: Value, corners: list[Value], count: int, places: int, clip: bool, variance: tuple[float, ...]
) -> Value:
    """Return ``[2, H * W * places * 4]``: the corners of ``count`` boxes per cell, and then the variances."""
    if len(variance) not in (0, 1, 4):
        raise Malformed(f"it has {len(variance)} variances; expected 0, 1 or 4")
    size = op.Concat(cells, [count], axis=0)
    values = op.Concat(*[op.Unsqueeze(op.Expand(corner, size), [3]) for corner in corners], axis=3)
    if clip:
        values = op.Clip(values, 0.0, 1.0)
    flat = op.Reshape(values, [-1])
    if count != places:
        room = op.ReduceProd(op.Concat(cells, [places * 4], axis=0))
        if count < places:  # the rest is undefined
            flat = op.Concat(flat, op.ConstantOfShape(room, value=np.zeros(1, np.float32)), axis=0)
        flat = op.Slice(flat, [0], room)
    variances = op.Expand(np.broadcast_to(np.array(variance or (0.1,), _F), 4), op.Concat(cells, [places, 4], axis=0))
    return op.Concat(op.Unsqueeze(flat, [0]), op.Reshape(variances, [1, -1]), axis=0)


def _sizes(op: Builder, output_size: Value, image_size: Value) -> tuple[Value, Value, Value]:
    """Return height and width: of the grid as int64 and float32, and of the image as float32."""
    match_shapes(output_size=(output_size, "2"), image_size=(image_size, "2"))
    cells = int64(op, output_size)
    return cells, op.Cast(cells, to=ir.DataType.FLOAT), op.Cast(int64(op, image_size), to=ir.DataType.FLOAT)


def _element(op: Builder, values: Value, index: int) -> Value:
    return op.Gather(values, index)


def _step(op: Builder, grid: Value, image: Value, axis: int, step: float) -> Value:
    if step:
        return op.const(_F(step))
    return op.Div(_element(op, image, axis), _element(op, grid, axis))


def _centers(op: Builder, cells: Value, axis: int, offset: float, step: Value) -> Value:
    """Return the centers along an axis, shaped to broadcast over ``[H, W, boxes]``."""
    count = op.Gather(cells, axis)
    places = op.Cast(op.Range(np.int64(0), count, np.int64(1)), to=ir.DataType.FLOAT)
    centers = op.Mul(op.Add(places, _F(offset)), step)
    return op.Unsqueeze(centers, [1, 2] if axis == 0 else [0, 2])
