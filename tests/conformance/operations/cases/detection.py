"""Postprocessing of detectors: boxes decoded from a network's predictions."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import dynamic, layer_case, shaped, static, statics

CENTER_SIZE, CORNER = "caffe.PriorBoxParameter.CENTER_SIZE", "caffe.PriorBoxParameter.CORNER"


def _make(ops, *inputs, rows=None, **attributes):
    """``rows``: the number of defined output rows; the result has these rows, and the shape of the output."""
    from openvino import opset8

    node = ops.detection_output(*inputs[:3], attributes, *inputs[3:])
    if rows is None:
        return node
    begin, end, step, axis = (opset8.constant(np.array([n])) for n in (0, rows, 1, 2))
    return [opset8.slice(node, begin, end, step, axis), opset8.shape_of(node)]


def _predictions(
    images, priors, classes, *, shared=True, prior_images=1, encoded=False, normalized=True, aux=False, seed=0, grid=0
):
    rng = np.random.default_rng(seed)
    start, size = rng.random((prior_images, priors, 2)) * 0.7, rng.random((prior_images, priors, 2)) * 0.4 + 0.05
    prior = np.concatenate([start, start + size], axis=2)
    width = 4
    if not normalized:
        prior = np.concatenate([np.zeros((prior_images, priors, 1)), prior * [300, 200, 300, 200]], axis=2)
        prior[:, priors - 3, 0] = -1
        width = 5
    rows = [prior.reshape(prior_images, 1, priors * width)]
    if not encoded:
        variances = np.zeros((prior_images, 1, priors * width))
        variances[:, :, : priors * 4] = rng.random((prior_images, 1, priors * 4)) * 0.2
        rows.append(variances)
    logits = (images, priors * (1 if shared else classes) * 4)
    scores = rng.random((images, priors * classes))
    arrays = [rng.standard_normal(logits) * (0.1 if encoded else 1), np.round(scores * grid) / grid if grid else scores]
    arrays.append(np.concatenate(rows, axis=1))
    if aux:
        arrays += [rng.random((images, priors * 2)), rng.standard_normal(logits) * 0.2]
    return tuple(a.astype(np.float32) for a in arrays)


def _case(name, *, shapes=None, more=(), dtype=np.float32, rows=None, data, **attributes):
    attributes = {"keep_top_k": [20], "nms_threshold": 0.45, "normalized": True, "rows": rows, **attributes}
    arrays = _predictions(**data, normalized=attributes["normalized"], shared=attributes.get("share_location", True),
                          encoded=attributes.get("variance_encoded_in_target", False))  # fmt: skip
    runs = [[a.astype(dtype) for a in run] for run in (arrays, *more)]
    for version in (1, 8):
        given = attributes | ({"num_classes": data["classes"]} if version == 1 else {})
        inputs = statics(*runs) if shapes is None else shaped(shapes, *runs)
        yield layer_case("DetectionOutput", f"opset{version}", _make, name, inputs, given)


def _detection_outputs():
    small = {"images": 2, "priors": 40, "classes": 4}
    yield from _case("ssd", data=small, top_k=10, code_type=CENTER_SIZE, confidence_threshold=0.3)
    yield from _case("corner-clipped", data=small, clip_before_nms=True, background_label_id=2, keep_top_k=[-1], top_k=5)
    yield from _case(
        "clip-after", data=small, clip_after_nms=True, background_label_id=-1, keep_top_k=[-1], confidence_threshold=0.5
    )
    # top_k determines the number of rows only if keep_top_k is -1. The CPU plugin leaves the last ones undefined.
    yield from _case("keep-below", data=small, rows=40, keep_top_k=[-2], top_k=5, confidence_threshold=0.5)
    yield from _case("own-boxes", data=small, share_location=False, code_type=CENTER_SIZE, keep_top_k=[200])
    yield from _case("encoded", data=small, variance_encoded_in_target=True, code_type=CENTER_SIZE)
    yield from _case("encoded-corner", data={**small, "prior_images": 2}, variance_encoded_in_target=True)
    pixels = {"normalized": False, "input_height": 200, "input_width": 300}
    yield from _case("pixels", data={**small, "prior_images": 2}, code_type=CENTER_SIZE, **pixels)
    yield from _case("ties", data={**small, "grid": 4}, nms_threshold=0.3, confidence_threshold=0.25, keep_top_k=[30])
    yield from _case("mxnet", data=small, decrease_label_id=True, code_type=CENTER_SIZE, top_k=25, confidence_threshold=0.5)
    yield from _case("mxnet-all", data={**small, "grid": 4}, decrease_label_id=True, share_location=False, keep_top_k=[9])
    aux = {**small, "prior_images": 2, "aux": True}
    yield from _case("refined", data=aux, objectness_score=0.4, code_type=CENTER_SIZE)
    yield from _case("refined-mxnet", data=aux, objectness_score=0.4, decrease_label_id=True, share_location=False, **pixels)
    shapes = [[-1, -1], [-1, -1], [-1, 2, -1]]
    more = [_predictions(1, 15, 4, seed=5), _predictions(3, 4, 4, seed=6)]
    yield from _case("dynamic", data=small, shapes=shapes, more=more, keep_top_k=[-1], confidence_threshold=0.2)
    yield from _case("of-no-images", data={**small, "images": 0, "prior_images": 0}, keep_top_k=[-1], top_k=5)
    yield from _case("f16", data=small, dtype=np.float16, code_type=CENTER_SIZE, confidence_threshold=0.3)


def _region_yolos():
    def case(name, arguments, *shapes, dtype=np.float32):
        arrays = [np.random.default_rng(0).standard_normal(shape).astype(dtype) * 3 for shape in shapes]
        x = dynamic(*arrays) if len(arrays) > 1 else static(*arrays)
        return layer_case("RegionYolo", "opset1", lambda ops, x: ops.region_yolo(x, *arguments), name, [x])

    # coordinates, classes, regions, softmax, mask, axis, end axis, anchors
    yield case("softmax", [4, 5, 5, True, [0, 1], 1, 3, [1.5, 2.0]], (2, 50, 3, 4))
    yield case("softmax-some-axes", [4, 5, 5, True, [], 2, -1, []], (2, 50, 3, 4))
    yield case("softmax-one-class", [4, 1, 3, True, [], 0, 1, []], (1, 18, 2, 2))
    yield case("logistic", [4, 5, 9, False, [0, 1, 2], 1, 3, [1.5, 2.0]], (1, 30, 3, 4))
    yield case("logistic-batch", [3, 3, 6, False, [3, 5], 1, 3, []], (3, 14, 3, 2))
    yield case("one-coordinate", [1, 2, 2, True, [], 1, 3, []], (1, 8, 2, 3))
    yield case("logistic-no-coordinates", [0, 5, 2, False, [0, 1], 1, 3, []], (2, 12, 2, 3))
    yield case("dynamic", [4, 5, 5, True, [], 1, 3, []], (1, 50, 3, 4), (2, 50, 2, 2))
    yield case("dynamic-logistic", [4, 5, 5, False, [0, 1, 2], 1, 3, []], (1, 30, 3, 4), (2, 30, 2, 2))
    yield case("f16", [4, 5, 3, True, [], 1, 3, []], (1, 30, 3, 4), dtype=np.float16)


CASES = [*_detection_outputs(), *_region_yolos()]
