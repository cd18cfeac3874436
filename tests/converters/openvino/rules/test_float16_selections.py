"""Selections of boxes by scores that differ in float32 and are equal in float16: OpenVINO's CPU plugin keeps float32."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_specops
from converters.openvino import convert

ov = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset13")
node_factory = pytest.importorskip("openvino.utils.node_factory")

_F = np.float16
_COUNT = 12
_LOGITS = (8 + 0.05 * np.random.default_rng(1).permutation(_COUNT)).astype(_F)
"""Their sigmoids differ by less than float16's step below 1."""

_PLACES = np.stack([np.arange(_COUNT), np.zeros(_COUNT)], 1) * 20
_BOXES = np.concatenate([_PLACES, _PLACES + [10, 12]], 1)
_INFO = _F([[300, 400, 1]])


def _model(emit):
    x = ops.parameter([_COUNT], _F)
    scores = ops.sigmoid(x)
    node = emit(lambda *shape: ops.reshape(scores, np.array(shape), False))
    return ov.Model([ops.convert(output, "f32") for output in node.outputs() if output.element_type.is_real()], [x])


def _node(version, name, inputs, attributes):
    return node_factory.NodeFactory(version).create(name, [node.output(0) for node in inputs], attributes)


def _detection_output(scores):
    attributes = {
        "background_label_id": -1, "top_k": 5, "keep_top_k": [5], "code_type": "caffe.PriorBoxParameter.CORNER",
        "nms_threshold": 0.5, "share_location": True, "normalized": True, "variance_encoded_in_target": True,
    }  # fmt: skip
    locations = ops.constant(np.zeros((1, 4 * _COUNT), _F))
    priors = ops.constant(_F(_BOXES / 512).reshape(1, 1, -1))
    return ops.detection_output(locations, scores(1, _COUNT), priors, attributes)


def _proposal(scores):
    attributes = {
        "base_size": 16, "pre_nms_topn": 100, "post_nms_topn": 5, "nms_thresh": 0.7, "feat_stride": 16, "min_size": 1,
        "ratio": [1.0], "scale": [1.0], "framework": "",
    }  # fmt: skip
    both = ops.concat([scores(1, 1, 1, _COUNT), scores(1, 1, 1, _COUNT)], 1)
    deltas = ops.constant(np.zeros((1, 4, 1, _COUNT), _F))
    return _node("opset4", "Proposal", [both, deltas, ops.constant(_F([300, 400, 1]))], attributes)


def _detectron_output(scores):
    attributes = {
        "score_threshold": 0.1, "nms_threshold": 0.5, "num_classes": 2, "post_nms_count": 5, "max_detections_per_image": 5,
        "class_agnostic_box_regression": False, "max_delta_log_wh": 4.0, "deltas_weights": [1.0, 1.0, 1.0, 1.0],
    }  # fmt: skip
    both = ops.concat([scores(_COUNT, 1), scores(_COUNT, 1)], 1)
    inputs = [ops.constant(_F(_BOXES)), ops.constant(np.zeros((_COUNT, 8), _F)), both, ops.constant(_INFO)]
    return _node("opset6", "ExperimentalDetectronDetectionOutput", inputs, attributes)


_PROPOSALS = {"min_size": 0.0, "nms_threshold": 0.7, "pre_nms_count": 100, "post_nms_count": 5}


def _detectron_proposals(scores):
    inputs = [ops.constant(_INFO[0]), ops.constant(_F(_BOXES)), ops.constant(np.zeros((4, 1, _COUNT), _F))]
    name = "ExperimentalDetectronGenerateProposalsSingleImage"
    return _node("opset6", name, [*inputs, scores(1, 1, _COUNT)], _PROPOSALS)


def _generate_proposals(scores):
    anchors, deltas = ops.constant(_F(_BOXES.reshape(1, _COUNT, 1, 4))), ops.constant(np.zeros((1, 4, 1, _COUNT), _F))
    return ops.generate_proposals(ops.constant(_INFO), anchors, deltas, scores(1, 1, 1, _COUNT), **_PROPOSALS)


def _rotated(scores):
    boxes = ops.constant(_F(np.concatenate([_BOXES, np.zeros((_COUNT, 1))], 1)[None]))
    limits = ops.constant(np.int64(5)), ops.constant(np.float32(0.5)), ops.constant(np.float32(0))
    return ops.nms_rotated(boxes, scores(1, 1, _COUNT), *limits)


@pytest.mark.parametrize(
    "emit",
    [
        _detection_output,
        _proposal,
        _detectron_output,
        _detectron_proposals,
        _generate_proposals,
        _rotated,
        lambda scores: ops.multiclass_nms(_F(_BOXES[None]), scores(1, 1, _COUNT), keep_top_k=5, nms_top_k=5),
        lambda scores: ops.matrix_nms(_F(_BOXES[None]), scores(1, 1, _COUNT), keep_top_k=5, nms_top_k=5),
    ],
)
@pytest.mark.parametrize("kernels", ["native", "none"])
def test_selections_are_those_of_float32(emit, kernels):
    compiled = ov.Core().compile_model(_model(emit), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    expected = compiled([_LOGITS])
    session = onnx_specops.InferenceSession(convert(_model(emit)).model.SerializeToString(), kernels=kernels)
    got = session.run(None, {session.get_inputs()[0].name: _LOGITS})
    for output, have in zip(compiled.outputs, got, strict=True):
        want = expected[output][: len(have)]  # OpenVINO pads some results
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
