"""Visual prompting: SAM's image encoder, and its decoder, which returns a mask for each box and each point.

Sources: Model API, ``models/sam_models.py`` and ``models/visual_prompting.py``; Kirillov and others, "Segment Anything"
(2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.model_api.configuration import Configuration
from converters.model_api.wrapper import Results, Wrapped
from onnx_specops.building import Builder, Value, new_value

_FLOAT, _DOUBLE, _INT64, _UINT8 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.UINT8
_PROMPT = ("image_embeddings", "point_coords", "point_labels", "mask_input", "has_mask_input", "orig_size")
_PREDICTED = ("upscaled_masks", "iou_predictions", "low_res_masks")
_GIVEN = (
    "masks", "best_iou", "upscaled_masks", "hard_predictions", "soft_predictions", "iou_predictions", "low_res_masks",
)  # fmt: skip
_CORNERS = (2, 3)
"""The labels of a box's corners. The label of a point is 1."""


def encoder(model: Wrapped) -> Results:
    """Return ``image_embeddings``, the network's first output."""
    return {"image_embeddings": next(iter(model.outputs.values()))}


Run = Callable[[Builder, Mapping[str, Value]], Results]


def decoder(op: Builder, graph: ir.Graph, outputs: Sequence[str | None], config: Configuration, run: Run) -> Results:
    """Emit a mask for each prompt, first for the boxes, then for the points.

    The graph's inputs are then ``image_embeddings``, ``boxes`` float32 ``[b, 4]`` (x1, y1, x2, y2) and ``points`` float32
    ``[p, 2]`` in pixels of the image, and ``image_size`` int64 ``[2]``, its height and width.

    Args:
        op: the graph builder.
        graph: the network's graph.
        outputs: the names of the network's outputs.
        config: the model's parameters.
        run: emits the network once, with values for its inputs, and returns its outputs.

    Returns:
        ``masks`` uint8 ``[n, height, width]``, the best of each prompt, and ``best_iou`` float32 ``[n]``; for all candidates
        ``upscaled_masks``, ``hard_predictions`` uint8, ``soft_predictions`` ``[n, k, height, width]``, ``iou_predictions``
        ``[n, k]`` and ``low_res_masks``.
    """
    inputs = {value.name or "": value for value in graph.inputs}
    if set(inputs) != set(_PROMPT):
        raise Unsupported(f"its inputs are {', '.join(inputs)}; expected {', '.join(_PROMPT)}")
    if missing := [name for name in _PREDICTED if name not in outputs]:
        raise Unsupported(f"it has no output {missing[0]}")
    embeddings = inputs["image_embeddings"]
    boxes, points = new_value(_FLOAT, ["boxes", 4], "boxes"), new_value(_FLOAT, ["points", 2], "points")
    size = new_value(_INT64, [2], "image_size")
    graph.inputs[:] = [embeddings, boxes, points, size]
    longest = config.whole("image_size", 1024)
    old = op.Cast(size, to=_DOUBLE)
    scale = op.Div(float(longest), op.ReduceMax(old, keepdims=0))
    new = op.Floor(op.Add(op.Mul(old, scale), 0.5))
    ratio = op.Cast(op.Div(new, old), to=_FLOAT)
    ratio = op.Concat(op.Slice(ratio, [1], [2]), op.Slice(ratio, [0], [1]), axis=0)  # x and y
    positions = op.Mul(op.Concat(op.Reshape(boxes, [-1, 2]), points, axis=0), ratio)
    of_boxes, of_points = op.Shape(boxes, end=1), op.Shape(points, end=1)
    kinds = op.Concat(
        op.Reshape(op.Expand(np.array([_CORNERS], np.float32), op.Concat(of_boxes, [1], axis=0)), [-1]),
        op.Expand(np.array([1], np.float32), of_points),
        axis=0,
    )
    no_mask = {"mask_input": (1, 1, 256, 256), "has_mask_input": (1, 1)}
    constants = {}
    for name, usual in no_mask.items():
        dims = inputs[name].shape
        known = usual if dims is None else [d if isinstance(d, int) else u for d, u in zip(dims, usual, strict=False)]
        constants[name] = op.const(np.zeros(known, np.float32), inputs[name].dtype)
    threshold = np.float32(config.number("mask_threshold", 0.0))

    def step(op: Builder, number: Value, condition: Value) -> tuple[Value, ...]:
        index = op.Unsqueeze(number, [0])
        is_box = op.Less(index, of_boxes)
        begin = op.Where(is_box, op.Mul(index, 2), op.Add(index, of_boxes))
        end = op.Add(begin, op.Where(is_box, op.const(np.array([2])), op.const(np.array([1]))))
        given = {
            "image_embeddings": embeddings,
            "point_coords": op.Unsqueeze(op.Slice(positions, begin, end, [0]), [0]),
            "point_labels": op.Unsqueeze(op.Slice(kinds, begin, end, [0]), [0]),
            "orig_size": op.Unsqueeze(size, [0]),
            **constants,
        }
        typed = {name: op.Cast(value, to=inputs[name].dtype) for name, value in given.items() if inputs[name] is not value}
        found = run(op, typed)
        upscaled, scores, logits = (op.Squeeze(op.Cast(_need(found, name), to=_FLOAT), [0]) for name in _PREDICTED)
        hard = op.Greater(upscaled, threshold)
        likely = op.Clip(scores, np.float32(0), np.float32(1))
        soft = op.Mul(op.Cast(hard, to=_FLOAT), op.Reshape(likely, [-1, 1, 1]))
        hard = op.Cast(hard, to=_UINT8)
        mask, best = _best(op, hard, scores)
        return op.Identity(condition), mask, best, upscaled, hard, soft, scores, logits

    count = op.Squeeze(op.Add(of_boxes, of_points), [0])
    return dict(zip(_GIVEN, op.loop(count, np.array(True), step), strict=True))


def _need(found: Results, name: str) -> Value:
    value = found[name]
    if value is None:
        raise Malformed(f"it has no output {name}")
    return value


def _best(op: Builder, masks: Value, scores: Value) -> tuple[Value, Value]:
    """Return the mask with the highest score among the nonempty candidates after the first, and its score; otherwise zeros
    and 0.
    """
    later = op.Concat(op.Slice(masks, [1], [2**31 - 1], [0]), op.Mul(op.Slice(masks, [0], [1], [0]), np.uint8(0)), axis=0)
    lowest = np.array([np.finfo(np.float32).min], np.float32)
    values = op.Concat(op.Slice(scores, [1], [2**31 - 1], [0]), lowest, axis=0)
    some = op.Greater(op.ReduceMax(op.Cast(later, to=_FLOAT), [1, 2], keepdims=0), np.float32(0))
    best = op.ArgMax(op.Where(some, values, lowest), axis=0, keepdims=0)
    score = op.Clip(op.Gather(values, best, axis=0), np.float32(0), np.float32(1))
    found = op.Gather(some, best, axis=0)
    return op.Gather(later, best, axis=0), op.Where(found, score, np.float32(0))
