"""The detection operators: errors, cases that OpenVINO leaves undefined, and their bodies in ONNX's reference evaluator.

Their values are compared with OpenVINO's in tests/conformance/operations.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as state

from converters.openvino import convert
from onnx_specops.domain import find
from onnx_specops.runtime.reference import reference_evaluator
from tests.conformance.operations.cases import detection, detectron, proposals, roi, sequences, suppression
from tests.onnx_specops.ops.one_node import run

F = np.float32
MAPS = np.zeros((2, 8, 4, 5), F)
BOXES, SCORES = np.zeros((1, 3, 4), F), np.zeros((1, 2, 3), F)
LIMITS = {"max_output_boxes_per_class": np.int64([3]), "iou_threshold": F([0.5]), "score_threshold": F([0])}
NMS = {"boxes": BOXES, "scores": SCORES, **LIMITS, "soft_nms_sigma": F([0])}
ALIGN = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 1, "spatial_scale": 1.0}
PSROI = {"output_dim": 2, "group_size": 2, "spatial_scale": 1.0}
DETECTION = {"keep_top_k": 5, "nms_threshold": 0.5, "normalized": 1}
UNSCORED = {**DETECTION, "keep_top_k": -1}
PREDICTIONS = {"box_logits": np.zeros((1, 8), F), "class_preds": np.zeros((1, 6), F), "proposals": np.zeros((1, 2, 8), F)}
PROPOSAL = {"feat_stride": 8, "min_size": 1, "pre_nms_topn": 5, "post_nms_topn": 5, "nms_thresh": 0.5}
GENERATE = {"min_size": 0.0, "nms_threshold": 0.5, "pre_nms_count": 5, "post_nms_count": 5}
LOSS = {
    "logits": np.zeros((1, 3, 4), F),
    "logit_length": np.int64([3]),
    "labels": np.zeros((1, 3), np.int64),
    "label_length": np.int64([2]),
}

# operator, inputs, attributes, the message, whether the body also fails
ERRORS = [
    ("NonMaxSuppression", {**NMS, "boxes": np.zeros((1, 4, 4), F)}, {}, "scores has the shape [1, 2, 3], boxes", False),
    ("NonMaxSuppression", {**NMS, "iou_threshold": F([1, 2])}, {}, "iou_threshold has the shape [2]; expected", True),
    ("NonMaxSuppression", {**NMS, "iou_threshold": F([[1]])}, {}, "the shape [1, 1]; expected a scalar or [1]", False),
    ("MulticlassNms", {"boxes": BOXES, "scores": SCORES[0], "roisnum": np.int64([4])}, {}, "boxes [1, 3, 4]", False),
    ("MulticlassNms", {"boxes": BOXES[:0], "scores": SCORES[0, :0], "roisnum": np.int64([2**63 - 1, 9])}, {},
     "roisnum sums to", False),
    ("MulticlassNms", {"boxes": BOXES, "scores": SCORES}, {"sort_result_type": "box"}, "not one of none, classid", False),
    ("MatrixNms", {"boxes": BOXES, "scores": SCORES}, {"decay_function": "cubic"}, "not one of linear, gaussian", False),
    ("NMSRotated", {"boxes": BOXES, "scores": SCORES, **LIMITS}, {}, "instead of [batches, boxes, 5]", False),
    ("DetectionOutput", {**PREDICTIONS, "box_logits": np.zeros((1, 7), F)}, DETECTION, "instead of [1, 8]", True),
    ("DetectionOutput", {**PREDICTIONS, "class_preds": np.zeros((1, 7), F)}, DETECTION, "for 2 priors", True),
    (
        "Proposal",
        {"class_probs": np.zeros((1, 4, 2, 2), F), "bbox_deltas": np.zeros((1, 8, 2, 2), F), "image_shape": F([0, 5, 1]),
         "anchors": np.zeros((2, 4), F)},
        PROPOSAL, "it must be positive", False,
    ),
    (
        "GenerateProposals",
        {"im_info": F([[9, 9, 1]]), "anchors": np.zeros((7, 4), F), "boxesdeltas": np.zeros((1, 8, 2, 2), F),
         "scores": np.zeros((1, 2, 2, 2), F)},
        GENERATE, "anchors has the shape [7, 4]", True,
    ),
    ("ROIPooling", {"feat": MAPS, "rois": F([[0, 0, 0, 1, 1], [2, 0, 0, 1, 1]])}, {"pooled_h": 2, "pooled_w": 2},
     "rois[1] = 2 is out of range [0, 1]", True),
    ("ROIAlign", {"feat": MAPS, "rois": F([[0, 0, 1, 1]]), "batch_indices": np.int64([-2])}, {**ALIGN, "mode": "max"},
     "batch_indices[0] = -2 is out of range [0, 1]", True),
    ("ROIAlignRotated", {"feat": MAPS, "rois": F([[0, 0, 1, 1, 0]]), "batch_indices": np.int64([-1])},
     {**ALIGN, "clockwise_mode": 1}, "batch_indices[0] = -1 is out of range [0, 1]", True),
    ("PSROIPooling", {"feat": MAPS, "rois": F([[5, 0, 0, 1, 1]])}, PSROI, "rois[0] = 5 is out of range [0, 1]", True),
    ("PSROIPooling", {"feat": MAPS[:, :7], "rois": F([[0, 0, 0, 1, 1]])}, PSROI, "7 channels, fewer than 2 * 4", True),
    ("DeformablePSROIPooling", {"feat": MAPS, "rois": F([[0, 0, 0, 1, 1]]), "offsets": np.zeros((2, 2, 1, 1), F)}, PSROI,
     "offsets has the shape [2, 2, 1, 1]", True),
    ("CTCLoss", {**LOSS, "labels": np.int64([[1, 4, 9]])}, {}, "labels[0, 1] = 4 is out of range [0, 3]", True),
    ("CTCLoss", {**LOSS, "label_length": np.int64([4])}, {}, "label_length[0] = 4 is out of range [0, 3]", True),
]  # fmt: skip


@pytest.mark.parametrize("form", ["numpy", "python"])
@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message", "_body"), ERRORS, ids=[f"{e[0]}-{i}" for i, e in enumerate(ERRORS)]
)
def test_error_messages(op, inputs, attributes, message, _body, form):
    with pytest.raises((IndexError, ValueError), match=f"{op}: .*{re.escape(message)}"):
        run(form, op, inputs, attributes)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [e[:3] for e in ERRORS if e[4]],
    ids=[f"{e[0]}-{i}" for i, e in enumerate(ERRORS) if e[4]],
)
def test_bodies_fail_for_invalid_inputs(op, inputs, attributes):
    with pytest.raises((state.InvalidArgument, state.Fail), match=f"while running .*'_inlfunc_{op}_"):
        run("body", op, inputs, attributes)


def _zeros(*shapes):
    return [np.zeros(shape, F) for shape in shapes]


# operator, inputs (zeros), attributes, the outputs' shapes
EMPTY = [
    ("MulticlassNms", _zeros((2, 0, 4), (2, 3, 0)), {}, [(0, 6), (0, 1), (2,)]),  # OpenVINO's CPU plugin counts no images
    ("MulticlassNms", _zeros((2, 4, 4), (2, 3, 4)), {"nms_top_k": 0}, [(0, 6), (0, 1), (2,)]),  # OpenVINO crashes
    ("MatrixNms", _zeros((2, 4, 4), (2, 0, 4)), {}, [(0, 6), (0, 1), (2,)]),
    # an error in OpenVINO if no score exceeds the threshold
    ("MatrixNms", _zeros((2, 4, 4), (2, 3, 4)), {}, [(0, 6), (0, 1), (2,)]),
    ("NMSRotated", [*_zeros((2, 0, 5), (2, 3, 0)), *LIMITS.values()], {}, [(0, 3), (0, 3)]),
    ("NMSRotated", [*_zeros((2, 4, 5), (2, 0, 4)), *LIMITS.values()], {}, [(0, 3), (0, 3)]),
    ("NonMaxSuppression", [*_zeros((0, 4, 4), (0, 3, 4)), *LIMITS.values(), F([0.5])], {}, [(0, 3), (0, 3)]),
    ("DetectionOutput", _zeros((0, 8), (0, 6), (1, 2, 8)), DETECTION, [(1, 1, 0, 7)]),
    ("DetectionOutput", _zeros((1, 8), (1, 0), (1, 2, 8)), UNSCORED, [(1, 1, 0, 7)]),
    ("DetectionOutput", _zeros((1, 8), (1, 0), (1, 2, 8)), {**UNSCORED, "decrease_label_id": 1}, [(1, 1, 0, 7)]),
    ("Proposal", _zeros((0, 2, 2, 2), (0, 4, 2, 2), (3,), (1, 4)), PROPOSAL, [(0, 5), (0,)]),
    ("GenerateProposals", _zeros((0, 3), (4, 4), (0, 4, 2, 2), (0, 1, 2, 2)), GENERATE, [(0, 4), (0,), (0,)]),
    ("ROIPooling", _zeros((1, 3, 4, 4), (0, 5)), {"pooled_h": 2, "pooled_w": 3}, [(0, 3, 2, 3)]),
    ("PSROIPooling", _zeros((1, 8, 4, 4), (0, 5)), PSROI, [(0, 2, 2, 2)]),
    ("DeformablePSROIPooling", _zeros((1, 8, 4, 4), (0, 5), (0, 2, 1, 1)), PSROI, [(0, 2, 2, 2)]),
]


@pytest.mark.parametrize("form", ["numpy", "python", "body"])
@pytest.mark.parametrize(("op", "arrays", "attributes", "shapes"), EMPTY, ids=[f"{e[0]}-{i}" for i, e in enumerate(EMPTY)])
def test_empty_inputs_give_empty_outputs(op, arrays, attributes, shapes, form):
    if op == "Proposal":
        arrays = [*arrays[:2], F([9, 9, 1]), arrays[3]]
    outputs = run(form, op, dict(zip(find(op).inputs, arrays, strict=False)), attributes)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    assert [np.shape(output) for output in outputs] == shapes
    assert not any(np.any(output) for output in outputs)


@pytest.mark.parametrize("form", ["numpy", "python", "body"])
def test_equal_points_do_not_overlap_in_soft_nms(form):
    inputs = {**NMS, "boxes": np.ones((1, 3, 4), F), "scores": F([[[0.5, 0.75, 0.25]]]), "soft_nms_sigma": F([0.5])}
    indices, scores = run(form, "NonMaxSuppression", inputs)
    np.testing.assert_array_equal(indices[:, 2], [1, 0, 2])
    np.testing.assert_array_equal(scores[:, 2], F([0.75, 0.5, 0.25]))


@pytest.mark.parametrize("form", ["numpy", "python", "body"])
def test_empty_labels(form):
    """The only sequence consists of blanks. OpenVINO's CPU plugin reads out of bounds."""
    logits = F([[[1, 2, 3], [3, 2, 1]]])
    inputs = {"logits": logits, "logit_length": np.int64([2]), "labels": np.int64([[-5, 99]]), "label_length": np.int64([0])}
    loss = run(form, "CTCLoss", inputs)
    np.testing.assert_allclose(loss, [2 * np.log(np.exp([1, 2, 3]).sum()) - 3 - 1], rtol=1e-6)


_HUGE = [[-1e6, -1e6, 1e6, 1e6], [0, 0, 1e9, 1e9], [3, 3, 4000, 4], [-3000, 1, 5, 2000], [1, 1, 3, 3], [-9e8, 0, 1e30, 5]]
_TURNED = [[2, 3, 1e6, 1e6, 0.3], [0, 0, 1e9, 7, 1], [-900, 4, 3000, 3, 0], [3, 3, 5, 4, -2], [1e30, 2, 5, 1e30, 1]]


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize(("op", "regions"), [("ROIAlign", _HUGE), ("ROIAlignRotated", _TURNED)])
def test_regions_far_larger_than_their_map(op, regions, mode):
    """One sample per position; only those near the map are computed, equally in all forms."""
    attributes = {
        **ALIGN,
        "sampling_ratio": 0,
        "pooled_h": 3,
        **({"mode": mode} if op == "ROIAlign" else {"clockwise_mode": 0}),
    }
    maps = np.random.default_rng(3).random((1, 2, 6, 7)).astype(F)
    inputs = {"feat": maps, "rois": F(regions), "batch_indices": np.zeros(len(regions), np.int64)}
    with np.errstate(all="ignore"):
        expected = run("numpy", op, inputs, attributes)
    assert expected[:, :, :, 0].any() and np.isfinite(expected).all()
    for form in ("native", "body"):
        np.testing.assert_allclose(run(form, op, inputs, attributes), expected, rtol=1e-4, atol=1e-7)


# Its GatherElements supports at most 64 elements along the axis.
REFERENCE = [
    "NonMaxSuppression-9-soft", "NMSRotated-13-ties", "MulticlassNms-9-own-boxes-eta", "MatrixNms-8-gaussian",
    "DetectionOutput-8-corner-clipped", "DetectionOutput-8-clip-after", "GenerateProposals-9-pixels",
    "ROIPooling-2-max", "ROIPooling-2-bilinear", "ROIAlign-9-max-adaptive", "ROIAlignRotated-15-adaptive",
    "PSROIPooling-1-average", "PSROIPooling-1-bilinear", "DeformablePSROIPooling-1-classes", "CTCLoss-4-unique",
    "ExperimentalDetectronDetectionOutput-6-best", "ExperimentalDetectronGenerateProposalsSingleImage-6-few",
]  # fmt: skip
CASES = {case.id: case for module in (detection, detectron, proposals, roi, sequences, suppression) for case in module.CASES}


@pytest.mark.parametrize("name", REFERENCE)
def test_bodies_run_in_the_reference_evaluator(name, tmp_path: Path):
    case = CASES[name]
    convert(case.save(tmp_path), tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    session = ort.InferenceSession(tmp_path / "model.onnx")
    feeds = {i.name: array for i, array in zip(session.get_inputs(), case.inputs[0], strict=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        got = reference_evaluator(model).run(None, feeds)
    for a, b in zip(got, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
