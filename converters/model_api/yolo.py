"""YOLO: detectors with grids and anchors, YOLOX, and those of Ultralytics.

Source: Model API, ``models/yolo.py``; Redmon and others, "YOLOv3" (2018); Ge and others, "YOLOX" (2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.model_api.boxes import Boxes, corners_of, kept, names_of, results, suppress, to_image, where
from converters.model_api.configuration import Configuration
from converters.model_api.wrapper import Results, Wrapped
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import origin

_FLOAT, _INT64 = ir.DataType.FLOAT, ir.DataType.INT64

_THREE = [10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119, 116, 90, 156, 198, 373, 326]
_TINY = [10, 14, 23, 27, 37, 58, 81, 82, 135, 169, 344, 319]
_FOUR = [12, 16, 19, 36, 40, 28, 36, 75, 76, 55, 72, 146, 142, 110, 192, 243, 459, 401]
_SINGLE = [16, 16, 32, 32, 64, 64, 128, 128, 256, 256, 512, 512]


def ultralytics(model: Wrapped) -> Results:
    """Emit YOLOv5 (as Ultralytics now exports it), YOLOv8 and YOLO11: ``[1, 4 + classes, boxes]``.

    Outputs: ``boxes`` int32 ``[n, 4]`` in pixels of the image, ``labels`` int64, ``scores`` float32, ``label_names``.
    """
    op, config = model.op, model.config
    prediction = model.only()
    if prediction.rank != 3:
        raise Unsupported("its output is not [1, 4 + classes, boxes]")
    boxes, _ = best_classes(op, op.Squeeze(op.Cast(prediction, to=_FLOAT), [0]), model)
    boxes = kept(op, boxes, suppress(op, boxes, config))
    boxes = to_image(op, boxes, model.image, normalized=False)
    return results(op, boxes, names_of(op, boxes.labels, config, _classes(prediction, 1, 4)))


def is_of_ultralytics(outputs: Sequence[ir.Value], config: Configuration) -> bool:
    """Return whether a network with the ``model_type`` YOLO is a detector of Ultralytics, which states this type for all its
    networks: its only output has four numbers and a score for each label.
    """
    shapes = [value.shape for value in outputs]
    return len(shapes) == 1 and shapes[0] is not None and len(shapes[0]) == 3 and shapes[0][1] == 4 + len(config.labels)


def best_classes(op: Builder, prediction: Value, model: Wrapped, classes: int | None = None) -> tuple[Boxes, Value]:
    """Return candidates above the threshold with their best class, and the numbers after their class scores.

    Args:
        op: the graph builder.
        prediction: ``[4 + classes + others, boxes]``.
        model: the model.
        classes: the number of classes, if other numbers follow.
    """
    rows = op.Transpose(prediction, perm=[1, 0])
    end = 2**31 - 1 if classes is None else 4 + classes
    scores = op.Slice(rows, [4], [end], [1])
    best = op.ReduceMax(scores, [1], keepdims=0)
    threshold = np.float32(model.config.number("confidence_threshold", 0.25))
    chosen = where(op, op.Greater(best, threshold))
    labels = op.ArgMax(op.Gather(scores, chosen, axis=0), axis=1, keepdims=0)
    rows = op.Gather(rows, chosen, axis=0)
    boxes = Boxes(corners_of(op, op.Slice(rows, [0], [4], [1])), op.Gather(best, chosen, axis=0), labels)
    return boxes, op.Slice(rows, [end], [2**31 - 1], [1])


def _classes(prediction: Value, axis: int, others: int) -> int | None:
    """Return the number of classes along an axis with other numbers; ``None`` if unknown."""
    size = prediction.dims[axis] if prediction.dims else None
    return None if size is None else size - others


def yolox(model: Wrapped) -> Results:
    """Emit YOLOX: ``[1, boxes, 5 + classes]`` over grids of strides 8, 16 and 32.

    Outputs: ``boxes`` float32 ``[n, 4]`` in pixels of the image, ``labels`` int64 and ``scores`` float32.
    """
    op, config, image = model.op, model.config, model.image
    height, width = image.size()
    prediction = op.Squeeze(op.Cast(model.only(), to=_FLOAT), [0])
    grids, strides = [], []
    for stride in (8, 16, 32):
        x, y = np.meshgrid(np.arange(width // stride), np.arange(height // stride))
        grids.append(np.stack([x, y], 2).reshape(-1, 2))
        strides.append(np.full((x.size, 1), stride))
    grid, stride_of = (np.concatenate(parts).astype(np.float32) for parts in (grids, strides))
    center = op.Mul(op.Add(op.Slice(prediction, [0], [2], [1]), grid), stride_of)
    size = op.Mul(op.Exp(op.Slice(prediction, [2], [4], [1])), stride_of)
    threshold = np.float32(config.number("confidence_threshold", 0.5))
    objectness = op.Slice(prediction, [4], [5], [1])
    scores = op.Mul(op.Slice(prediction, [5], [2**31 - 1], [1]), objectness)
    above = op.And(op.Greater(scores, threshold), op.Greater(objectness, threshold))
    places = op.NonZero(above)
    box, label = (op.Squeeze(op.Slice(places, [row], [row + 1], [0]), [0]) for row in (0, 1))
    corners = corners_of(op, op.Concat(center, size, axis=1))
    sides = [op.Cast(side, to=ir.DataType.DOUBLE) for side in (image.width, image.height)]
    scale = op.Min(*(op.Div(float(whole), own) for whole, own in zip((width, height), sides, strict=True)))
    corners = op.Div(corners, op.Cast(scale, to=_FLOAT))
    boxes = Boxes(op.Gather(corners, box, axis=0), op.GatherND(scores, op.Transpose(places, perm=[1, 0])), label)
    boxes = kept(op, boxes, suppress(op, boxes, config, inclusive=True))
    bounds = [op.Unsqueeze(op.Cast(side, to=_FLOAT), [0]) for side in (image.width, image.height)] * 2
    clipped = op.Max(op.Min(boxes.corners, op.Concat(*bounds, axis=0)), np.float32(0))
    return results(op, replace(boxes, corners=clipped), names_of(op, boxes.labels, config, _classes(model.only(), -1, 5)))


@dataclass(frozen=True)
class _Grid:
    """An output with boxes at the cells of a grid.

    Attributes:
        value: ``[1, anchors * numbers, height, width]``.
        height, width: the size of the grid.
        anchors: width and height of each anchor.
        numbers: the number of values of a box.
        has_objectness: whether the fifth is the probability of an object.
        in_cells: whether anchors are in cells of the grid, not in pixels.
    """

    value: Value
    height: int
    width: int
    anchors: Sequence[tuple[float, float]]
    numbers: int
    has_objectness: bool = True
    in_cells: bool = False


def yolo_v4(model: Wrapped) -> Results:
    """Emit YOLOv4 and its tiny form: raw outputs, to which sigmoids are applied."""
    outputs = sorted(model.outputs.values(), key=lambda v: -_side(v, 2))
    tiny = len(outputs) == 2
    anchors = model.config.numbers("anchors") or (_TINY if tiny else _FOUR)
    masks = [int(m) for m in model.config.numbers("masks")] or ([1, 2, 3, 3, 4, 5] if tiny else list(range(9)))
    grids = []
    for place, value in enumerate(outputs):
        if _side(value, 2) != _side(value, 3):  # [1, height, width, numbers]
            value = model.op.Transpose(value, perm=[0, 3, 1, 2])
        own = masks[place * 3 : place * 3 + 3]
        if len(own) < 3 or max(own) * 2 + 1 >= len(anchors):
            raise Malformed(f"its {len(anchors)} anchors and {len(masks)} masks are too few for {len(outputs)} outputs")
        pairs = [(anchors[2 * m], anchors[2 * m + 1]) for m in own]
        grids.append(_Grid(value, _side(value, 2), _side(value, 3), pairs, _side(value, 1) // 3))
    return _gridded(model, grids, sigmoid=True)


def yolo_regions(model: Wrapped) -> Results:
    """Emit YOLO up to version 3: outputs of RegionYolo layers, which contain the anchors and classes."""
    op = model.op
    grids = []
    for name, value in model.outputs.items():
        stated = _region(value)
        try:
            mask = [int(m) for m in stated.get("mask", "").split(",") if m.strip()]
            anchors = [float(a) for a in stated.get("anchors", "").split(",") if a.strip()] or [float(a) for a in _THREE]
            classes, count = int(stated.get("classes", 80)), len(mask) or int(stated.get("num", 3))
            own = mask or list(range(count))
            pairs = [(anchors[2 * m], anchors[2 * m + 1]) for m in own]
        except (IndexError, ValueError) as error:
            raise Malformed(f"the anchors and masks of its layer {name} do not fit together") from error
        numbers = 5 + classes
        if value.rank == 2:  # flat, of cells of 32 x 32 pixels
            height, width = model.image.size()
            if value.dims and value.dims[1] not in (None, count * numbers * (height // 32) * (width // 32)):
                raise Unsupported(f"its output {name} is not {count * numbers} numbers for each cell of 32 x 32 pixels")
            value = op.Reshape(value, [1, count * numbers, height // 32, width // 32])
        if _side(value, 1) != count * numbers:
            raise Unsupported(f"its output {name} has {_side(value, 1)} numbers for each cell; expected {count} x {numbers}")
        grids.append(_Grid(value, _side(value, 2), _side(value, 3), pairs, numbers, in_cells=not mask))
    return _gridded(model, grids, sigmoid=False)


def _region(value: Value) -> Mapping[str, str]:
    """Return the attributes of the RegionYolo layer that computes a value; empty without such a layer."""
    producer = value.producer()
    layer: Any = None if producer is None else origin(producer)
    return layer.attributes if getattr(layer, "type", "") == "RegionYolo" else {}


def yolof(model: Wrapped) -> Results:
    """Emit YOLOF: one output with six anchors, without the probability of an object."""
    pairs = list(zip(_SINGLE[::2], _SINGLE[1::2], strict=True))
    grids = [_Grid(v, _side(v, 2), _side(v, 3), pairs, _side(v, 1) // 6, False) for v in model.outputs.values()]
    return _gridded(model, grids, sigmoid=True, by_anchor=True)


def _side(value: Value, axis: int) -> int:
    size = value.dims[axis] if value.dims is not None and len(value.dims) == 4 else None
    if size is None:
        dims = "an unknown number of" if value.rank is None else value.rank
        raise Unsupported(
            f"an output of its detector has {dims} dimensions; expected [1, numbers, height, width], all known"
        )
    return size


def _gridded(model: Wrapped, grids: Sequence[_Grid], *, sigmoid: bool, by_anchor: bool = False) -> Results:
    op, config = model.op, model.config
    height, width = model.image.size()
    threshold = np.float32(config.number("confidence_threshold", 0.5))
    corners, scores, labels = [], [], []
    for grid in grids:
        count = len(grid.anchors)
        by_cell = op.Transpose(
            op.Reshape(op.Cast(grid.value, to=_FLOAT), [count, grid.numbers, grid.height, grid.width]), perm=[2, 3, 0, 1]
        )
        rows = op.Reshape(by_cell, [-1, grid.numbers])
        first = 5 if grid.has_objectness else 4
        likely = op.Slice(rows, [first], [2**31 - 1], [1])
        likely = op.Sigmoid(likely) if sigmoid else likely
        if grid.has_objectness:
            objectness = op.Slice(rows, [4], [5], [1])
            likely = op.Mul(likely, op.Sigmoid(objectness) if sigmoid else objectness)
        places = op.NonZero(op.Greater(likely, threshold))
        box, label = (op.Squeeze(op.Slice(places, [row], [row + 1], [0]), [0]) for row in (0, 1))
        cells = np.stack(np.meshgrid(np.arange(grid.width), np.arange(grid.height)), 2).reshape(-1, 1, 2)
        cell = np.broadcast_to(cells, (len(cells), count, 2)).reshape(-1, 2).astype(np.float32)
        whole = [grid.width, grid.height] if grid.in_cells else [width, height]
        anchor = np.tile(np.array(grid.anchors, np.float32), (len(cells), 1)) / np.array(whole, np.float32)
        offset = op.Slice(rows, [0], [2], [1])
        sides = np.array([grid.width, grid.height], np.float32)
        if by_anchor:
            center = op.Add(op.Mul(op.Sigmoid(offset) if sigmoid and not by_anchor else offset, anchor), cell / sides)
        else:
            center = op.Div(op.Add(op.Sigmoid(offset) if sigmoid else offset, cell), sides)
        size = op.Mul(op.Exp(op.Slice(rows, [2], [4], [1])), anchor)
        corners.append(op.Gather(corners_of(op, op.Concat(center, size, axis=1)), box, axis=0))
        scores.append(op.GatherND(likely, op.Transpose(places, perm=[1, 0])))
        labels.append(label)
    joined = [parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0) for parts in (corners, scores, labels)]
    boxes = Boxes(*joined)
    boxes = kept(op, boxes, suppress(op, boxes, config))
    # These wrappers suppress boxes of each class regardless of nms_execute.
    apart = suppress(op, boxes, config.stating(nms_execute="True", agnostic_nms="False", nms_max_predictions="0"))
    boxes = to_image(op, kept(op, boxes, apart), model.image, normalized=True)
    return results(op, boxes, names_of(op, boxes.labels, config))
