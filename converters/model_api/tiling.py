"""Tiling: the network runs on parts of an image and on the whole image, and the results are merged.

Source: Model API, ``tilers/``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.model_api.boxes import Boxes, kept, names_of, results, suppress
from converters.model_api.configuration import Configuration
from converters.model_api.instances import is_rotated, painted, pasted, rotated
from converters.model_api.sizes import corners, pads_around, size_along
from converters.model_api.tiled_saliency import InstanceMaps, SaliencyMaps
from converters.model_api.wrapper import Results
from onnx_specops.building import Builder, Value

_FLOAT, _INT32 = ir.DataType.FLOAT, ir.DataType.INT32

Merge = Literal["boxes", "instances", "maps"]
"""The kind of the results of tiles."""


class OnTile(Protocol):
    """Emits the network with its wrapper."""

    def __call__(self, op: Builder, image: Value, config: Configuration, /) -> Results: ...


def is_tiled(config: Configuration) -> bool:
    """Return whether a model has tiles."""
    return bool(config.text("tile_size"))


def tiled(op: Builder, image: Value, config: Configuration, merge: Merge, outputs: dict[str, Value], run: OnTile) -> Results:
    """Emit the merged results of all tiles of an image.

    Args:
        op: the graph builder.
        image: ``[height, width, channels]``.
        config: the model's parameters.
        merge: the kind of the results.
        outputs: the network's outputs.
        run: emits the network with its wrapper, once.
    """
    size = [size_along(op, image, axis) for axis in (0, 1)]
    tiles = _tiles(op, size[0], size[1], config)
    count = op.Squeeze(op.Shape(tiles, end=1), [0])

    def cut(op: Builder, number: Value) -> tuple[Value, Value]:
        tile = op.Gather(tiles, number, axis=0)
        x1, y1, x2, y2 = corners(op, tile)
        return op.Slice(image, op.Concat(y1, x1, axis=0), op.Concat(y2, x2, axis=0), [0, 1]), tile

    if merge == "maps":
        return _maps(op, size, config, count, cut, run)
    return _objects(op, size, config, merge, outputs, count, cut, run)


Cut = Callable[[Builder, Value], tuple[Value, Value]]


def _tiles(op: Builder, height: Value, width: Value, config: Configuration) -> Value:
    """Return x1, y1, x2, y2 of each tile, int64 ``[n, 4]``, by columns. If the whole image is a tile, it is the first."""
    length, overlap = config.whole("tile_size", 400), config.number("tiles_overlap", 0.5)
    stride = int(length * (1 - overlap)) if 0 <= overlap <= 1 else 0
    if length < 1 or stride < 1:
        raise Malformed(f"its tile_size {length} and tiles_overlap {overlap} give no positive distance between tiles")
    xs, ys = (op.Range(np.int64(0), side, np.int64(stride)) for side in (width, height))
    pairs = op.Concat(op.Shape(xs), op.Shape(ys), axis=0)
    first = op.Reshape(op.Expand(op.Unsqueeze(xs, [1]), pairs), [-1])
    second = op.Reshape(op.Expand(op.Unsqueeze(ys, [0]), pairs), [-1])
    ends = [op.Min(op.Add(begin, length), side) for begin, side in ((first, width), (second, height))]
    tiles = op.Concat(*(op.Unsqueeze(value, [1]) for value in (first, second, *ends)), axis=1)
    if config.flag("tile_with_full_img", True):
        whole = op.Concat([0, 0], op.Unsqueeze(width, [0]), op.Unsqueeze(height, [0]), axis=0)
        tiles = op.Concat(op.Unsqueeze(whole, [0]), tiles, axis=0)
    return tiles


def _objects(
    op: Builder,
    size: list[Value],
    config: Configuration,
    merge: Merge,
    outputs: dict[str, Value],
    count: Value,
    cut: Cut,
    run: OnTile,
) -> Results:
    """Return the detections of all tiles after suppression by class."""
    start: list[np.ndarray | Value] = [np.zeros((0, 4), np.int32), np.zeros(0, np.int64), np.zeros(0, np.float32)]
    dims: list[list[int | None]] = [[None, 4], [None], [None]]
    if merge == "instances":
        sides = _mask_sides(outputs)
        start.append(np.zeros((0, *sides), np.float32))
        dims.append([None, *sides])
    explained = _explained(op, size, config, merge, outputs)
    if explained is not None:
        start.append(explained.start)
        dims.append(explained.dims)
    alone = config.stating(postprocess_semantic_masks="False", task_type="")

    def step(op: Builder, number: Value, condition: Value, *carried: Value) -> tuple[Value, ...]:
        tile, place = cut(op, number)
        found = run(op, tile, alone)
        offset = op.Cast(op.Concat(*[op.Slice(place, [0], [2])] * 2, axis=0), to=_INT32)
        boxes = op.Add(op.Cast(_need(found, "boxes"), to=_INT32), offset)
        new = [boxes, _need(found, "labels"), _need(found, "scores")]
        if merge == "instances":
            new.append(op.Cast(_need(found, "masks"), to=_FLOAT))
        joined = [op.Concat(old, more, axis=0) for old, more in zip(carried[: len(new)], new, strict=True)]
        if explained is not None:
            joined.append(explained.add(op, carried[-1], _need(found, "saliency_map"), place, number))
        vector = found.get("feature_vector")
        return (op.Identity(condition), *joined, *([] if vector is None else [op.Identity(vector)]))

    first = [value if isinstance(value, Value) else op.const(value) for value in start]
    merged = op.loop(count, np.array(True), step, *first, carried_dims=dims)
    boxes = Boxes(merged[0], merged[2], merged[1])
    most = config.whole("max_pred_number", 100)
    own = config.with_defaults(iou_threshold=0.45)
    own = own.stating(nms_execute="True", agnostic_nms="False", nms_max_predictions=str(most))
    positions = suppress(op, boxes, own)
    boxes = kept(op, boxes, positions)
    found = results(op, boxes, names_of(op, boxes.labels, config, None))
    if merge == "instances":
        masks = op.Gather(merged[3], positions, axis=0)
        masks = painted(op, masks, boxes.corners, lambda op, mask, box: pasted(op, mask, box, size[0], size[1]))
        found |= {"masks": masks, "rotated_rects": rotated(op, masks) if is_rotated(config) else None}
    if explained is not None:
        found["saliency_map"] = explained.finish(op, merged[len(start) - 1])
    if len(merged) > len(start):
        found["feature_vector"] = op.ReduceMean(merged[-1], [0], keepdims=0)
    return found


def _explained(
    op: Builder, size: list[Value], config: Configuration, merge: Merge, outputs: dict[str, Value]
) -> InstanceMaps | SaliencyMaps | None:
    """Return how the saliency maps of tiles are merged; ``None`` for a model without them."""
    if merge == "instances":
        return InstanceMaps.of(op, size, config) if "feature_vector" in outputs else None
    return SaliencyMaps.of(op, size, config, outputs["saliency_map"]) if "saliency_map" in outputs else None


def _need(found: Results, name: str) -> Value:
    value = found[name]
    assert value is not None
    return value


def _mask_sides(outputs: dict[str, Value]) -> tuple[int, int]:
    """Return the height and width of the network's masks, which are those of its output with the highest rank."""
    masks = max(outputs.values(), key=lambda value: value.rank or 0)
    sides = tuple(masks.dims or ())[-2:]
    if len(sides) < 2 or not all(isinstance(side, int) for side in sides):
        raise Unsupported("the height and width of its masks are unknown: set the size of its image with --input-shape")
    return int(sides[0] or 0), int(sides[1] or 0)


def _maps(op: Builder, size: list[Value], config: Configuration, count: Value, cut: Cut, run: OnTile) -> Results:
    """Return the mean of the soft predictions of all tiles that cover a pixel, and the best class."""
    classes = len(config.labels)
    if not classes:
        raise Malformed("it has a tile_size, but no labels; expected one for each class")
    shape = op.Concat(*(op.Unsqueeze(side, [0]) for side in size), [1], axis=0)
    sums = op.Expand(np.zeros((1, 1, classes), np.float32), op.Concat(op.Slice(shape, [0], [2]), [classes], axis=0))
    votes = op.Expand(np.zeros((1, 1, 1), np.float32), shape)

    def step(op: Builder, number: Value, condition: Value, sums: Value, votes: Value) -> tuple[Value, ...]:
        tile, place = cut(op, number)
        found = run(op, tile, config.stating(return_soft_prediction="True")).get("soft_prediction")
        if found is None:
            raise Unsupported("its output contains class indices, which cannot be averaged over tiles")
        x1, y1, x2, y2 = corners(op, place)
        ones = op.Expand(np.ones((1, 1, 1), np.float32), op.Concat(op.Sub(y2, y1), op.Sub(x2, x1), [1], axis=0))
        pads = pads_around(op, place, size, 0)
        return op.Identity(condition), op.Add(sums, op.Pad(found, pads)), op.Add(votes, op.Pad(ones, pads))

    dims = [[None, None, classes], [None, None, 1]]
    sums, votes = op.loop(count, np.array(True), step, sums, votes, carried_dims=dims)
    best = op.ArgMax(sums, axis=2, keepdims=0)
    kind = ir.DataType.UINT8 if classes <= 256 else _INT32
    return {"mask": op.Cast(best, to=kind), "soft_prediction": op.Div(sums, votes)}
