"""Damaged layers of the detection families raise a ConversionError that names the layer."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset9 as ops

from converters.errors import UnsupportedError
from converters.openvino import ConversionError, convert
from tests.conformance.operations.cases import detection, detectron, proposals, roi, sequences, suppression
from tests.converters.openvino.rules.malformed import PASSED_OVER, assert_fault, assert_reported, rows

F32 = np.float32
CASES = {case.id: case for module in (detection, detectron, proposals, roi, sequences, suppression) for case in module.CASES}


def _attribute(name, value):
    """Change the value of an attribute."""
    return lambda text: re.sub(rf' {name}="[^"]*"', f' {name}="{value}"', text, count=1)


def _without(name):
    return lambda text: re.sub(rf' {name}="[^"]*"', "", text, count=1)


def _added(type_):
    """Add an attribute that the operation does not have."""
    return lambda text: re.sub(rf'(type="{type_}"[^>]*>\s*<data)', r'\1 surprise="1"', text, count=1)


def _shape(index, *dims):
    """Change the shape of a Parameter, its port and the connected input port."""
    ports = "".join(f"<dim>{d}</dim>" for d in dims)

    def change(text):
        parts = re.split(r"(?=<layer )", text)
        own = [i for i, part in enumerate(parts) if 'type="Parameter"' in part][index]
        parts[own] = re.sub(r'shape="[^"]*"', f'shape="{",".join(map(str, dims))}"', parts[own], count=1)
        parts[own] = re.sub(r'(<port id="0"[^>]*>)(\s*<dim>[^<]*</dim>)*', rf"\1{ports}", parts[own], count=1)
        fed = next(i for i, part in enumerate(parts) if "<input>" in part)
        parts[fed] = re.sub(rf'(<port id="{index}"[^>]*>)(\s*<dim>[^<]*</dim>)*', rf"\1{ports}", parts[fed], count=1)
        return "".join(parts)

    return change


DAMAGE = [
    ("NonMaxSuppression-9-unsorted", _attribute("box_encoding", "edges"), "not one of 'corner', 'center'"),
    ("NonMaxSuppression-9-unsorted", _added("NonMaxSuppression"), "the attribute surprise of NonMaxSuppression"),
    ("NonMaxSuppression-1-unsorted", _attribute("sort_result_descending", "perhaps"), "neither true nor false"),
    ("NonMaxSuppression-9-limits-at-run-time", _shape(0, 2, 20), "[2, 20] instead of [N, M, 4]"),
    ("NonMaxSuppression-9-unsorted", _shape(0, 2, 19, 4), "20 is not 19"),
    ("MatrixNms-8-linear", _shape(1, 2, 3), "instead of [N, C, M]"),
    ("DetectionOutput-8-ssd", _shape(1, 3, 160), "3 is not 2"),
    ("ROIPooling-2-max", _shape(1, 12, 4), "4 is not 5"),
    ("Proposal-4-pixels", _shape(0, 2, 11, 6, 8), "11 is not 12"),
    ("ExperimentalDetectronTopKROIs-6-some", _shape(1, 9), "9 is not 10"),
    ("NMSRotated-13-clockwise", _attribute("clockwise", "2"), "neither true nor false"),
    ("NMSRotated-13-clockwise", _attribute("output_type", "f17"), "not an element type"),
    ("MulticlassNms-9-plain", _attribute("sort_result_type", "box"), "not one of"),
    ("MulticlassNms-8-plain", _attribute("nms_eta", "much"), "not a number"),
    ("MatrixNms-8-linear", _attribute("decay_function", "cubic"), "not one of 'linear', 'gaussian'"),
    ("DetectionOutput-8-ssd", _without("keep_top_k"), "'keep_top_k' is missing"),
    ("DetectionOutput-8-ssd", _attribute("keep_top_k", ""), "keep_top_k is empty"),
    ("DetectionOutput-8-ssd", _attribute("code_type", "caffe.PriorBoxParameter.OTHER"), "not one of"),
    ("DetectionOutput-1-ssd", _attribute("num_classes", "0"), "its num_classes is 0"),
    ("DetectionOutput-1-ssd", _attribute("num_classes", "3"), "160 class_preds do not match 3 classes"),
    ("DetectionOutput-1-own-boxes", _attribute("num_classes", "9"), "do not match 9 classes"),
    ("DetectionOutput-8-mxnet", _attribute("background_label_id", "3"), "must be 0"),
    ("RegionYolo-1-softmax", _attribute("classes", "7"), "does not contain 5 regions of 12 entries"),
    ("RegionYolo-1-softmax", _attribute("coords", "-1"), "-1 coordinates"),
    ("RegionYolo-1-softmax", _attribute("end_axis", "4"), "out of range"),
    ("RegionYolo-1-softmax", _attribute("num", "0"), "0 regions"),
    ("Proposal-4-pixels", _without("feat_stride"), "'feat_stride' is missing"),
    ("Proposal-1-pixels", _attribute("post_nms_topn", "99999999999"), "is more than 1048576"),
    ("Proposal-4-pixels", _attribute("framework", "caffe"), "not one of"),
    ("GenerateProposals-9-plain", _attribute("nms_eta", "0.5"), "OpenVINO supports only 1"),
    ("GenerateProposals-9-plain", _attribute("pre_nms_count", "-3"), "pre_nms_count = -3 is less than 0"),
    ("ROIPooling-2-max", _attribute("pooled_h", "0"), "contradict"),
    ("ROIPooling-2-max", _attribute("method", "mean"), "not one of"),
    ("ROIAlign-9-avg", _attribute("sampling_ratio", "-1"), "sampling_ratio = -1 is less than 0"),
    ("ROIAlign-9-max", _attribute("sampling_ratio", "-1"), "give roi_align a sampling_ratio of 0"),
    ("ROIAlign-9-avg", _shape(0, 2, 3, 0, 9), "its feature maps [2, 3, 0, 9] have no elements"),
    ("ROIAlign-9-max", _attribute("pooled_w", "0"), "pooled_w = 0 is less than 1"),
    ("ROIAlign-3-avg", _without("mode"), "'mode' is missing"),
    ("ROIAlignRotated-15-clockwise", _attribute("sampling_ratio", "100000"), "is more than 128"),
    ("PSROIPooling-1-average", _attribute("group_size", "1000000"), "channels are fewer than"),
    ("PSROIPooling-1-average", _attribute("output_dim", "5"), "fewer than"),
    ("DeformablePSROIPooling-1-offsets", _attribute("part_size", "0"), "instead of [R, _, 0, 0]"),
    ("DeformablePSROIPooling-1-offsets", _attribute("spatial_bins_x", "0"), "spatial_bins_x = 0 is less than 1"),
    ("CTCGreedyDecoder-1-merge", _shape(0, 20, 3), "[20, 3] instead of [T, N, C]"),
    ("CTCGreedyDecoderSeqLen-6-merge", _attribute("classes_index_type", "half"), "not an element type"),
    ("CTCLoss-4-plain", _attribute("unique", "maybe"), "neither true nor false"),
    ("ExperimentalDetectronDetectionOutput-6-all", _attribute("deltas_weights", "1, 2"), "instead of four"),
    ("ExperimentalDetectronDetectionOutput-6-all", _attribute("num_classes", "9"), "16 is not 36"),
    ("ExperimentalDetectronGenerateProposalsSingleImage-6-plain", _without("min_size"), "missing"),
    ("ExperimentalDetectronPriorGridGenerator-6-flat", _attribute("h", "-1"), "negative"),
    ("ExperimentalDetectronROIFeatureExtractor-6-plain", _attribute("pyramid_scales", "4"), "3 feature maps and 1"),
    ("ExperimentalDetectronTopKROIs-6-some", _attribute("max_rois", "-5"), "out of range"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGE, ids=[f"{name}-{i}" for i, (name, _, _) in enumerate(DAMAGE)])
def test_a_damaged_layer_is_reported(name, damage, message, tmp_path: Path):
    path = CASES[name].save(tmp_path)
    text = path.read_text()
    changed = damage(text)
    assert changed != text
    path.write_text(changed)
    if re.search(PASSED_OVER, message) or message.startswith("the attribute surprise"):
        assert any(message in remark.message for remark in convert(path).report.passed_over)
        return
    with pytest.raises(ConversionError, match=re.escape(message)) as caught:
        convert(path)
    assert {problem.layer_type for problem in caught.value.problems} == {name.split("-")[0]}
    assert_fault(caught.value)


@pytest.mark.parametrize("dims", [[-1, -1, -1, -1], [1, 2, -1, 3]], ids=["unknown", "unknown rows"])
def test_empty_feature_maps_fail_at_run_time(dims: list[int], tmp_path: Path):
    """ONNX Runtime reads out of bounds for them."""
    maps, regions, images = ops.parameter(dims, F32), ops.parameter([-1, 4], F32), ops.parameter([-1], np.int32)
    aligned = ops.roi_align(maps, regions, images, 2, 2, 2, 1.0, "avg", "asymmetric")
    ov.save_model(ov.Model([aligned], [maps, regions, images]), tmp_path / "model.xml")
    convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    session = ort.InferenceSession(tmp_path / "model.onnx")
    names = [port.name for port in session.get_inputs()]
    rest = [np.array([[0, 0, 2, 2]], F32), np.zeros(1, np.int32)]
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, dict(zip(names, [np.zeros((1, 2, 0, 3), F32), *rest], strict=True)))
    (found,) = session.run(None, dict(zip(names, [np.ones((1, 2, 5, 3), F32), *rest], strict=True)))
    assert (found == 1).all()


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("ROIAlign-9-avg", _attribute("sampling_ratio", "5000"), "sampling_ratio = 5000 is more than 128"),
        ("ROIAlign-9-max", _attribute("pooled_h", "5000"), "pooled_h = 5000 is more than 1024"),
        ("Proposal-1-pixels", _attribute("post_nms_topn", "99999999999"), "is more than 1048576"),
    ],
)
def test_exceeded_limits_are_unsupported(name, damage, message, tmp_path: Path):
    path = CASES[name].save(tmp_path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(UnsupportedError, match=f"it exceeds a limit: .*{re.escape(message)}"):
        convert(path)


@pytest.mark.parametrize("name", ["NMSRotated-13-clockwise", "Proposal-4-pixels", "ROIAlign-9-max", "CTCLoss-4-plain"])
def test_a_layer_without_an_input_is_reported(name, tmp_path: Path):
    path = CASES[name].save(tmp_path)
    type_ = name.split("-")[0]
    text = path.read_text()
    identifier = re.search(rf'<layer id="(\d+)"[^>]*type="{type_}"', text)[1]
    last = re.findall(rf'<edge [^>]*to-layer="{identifier}" to-port="(\d+)"[^>]*/>', text)[-1]
    text = re.sub(rf'<edge [^>]*to-layer="{identifier}" to-port="{last}"[^>]*/>\s*', "", text)
    path.write_text(text)
    with pytest.raises(ConversionError, match=f"it has {last} inputs, but {type_} of opset") as caught:
        convert(path)
    assert [problem.layer_type for problem in caught.value.problems] == [type_]
    assert_fault(caught.value)


_GRID, _IMAGE = np.array([2, 3]), np.array([20, 30])
_ONE = 'min_size="4" offset="0.5"'
_FIXED = 'offset="0.5" fixed_size='
_CLUSTER = 'offset="0.5" width="1" height="1"'
PRIORS = [
    ("PriorBox", "opset1", f'{_ONE} variance="0.1,0.2"', [_GRID, _IMAGE], "2 variances"),
    ("PriorBox", "opset1", f'{_ONE} aspect_ratio="-2"', [_GRID, _IMAGE], "not positive"),
    ("PriorBox", "opset1", f'{_ONE} aspect_ratio="nan"', [_GRID, _IMAGE], "not positive"),
    ("PriorBox", "opset1", f'{_ONE} density="400"', [_GRID, _IMAGE], "160000 boxes per cell"),
    ("PriorBox", "opset1", f'{_ONE} density="inf"', [_GRID, _IMAGE], "are inconsistent|not all finite"),
    ("PriorBox", "opset1", f'{_ONE} min_max_aspect_ratios_order="1"', [_GRID, _IMAGE], "not known"),
    ("PriorBox", "opset8", f'{_FIXED}"5"', [_GRID, _IMAGE], "1 fixed sizes and 0 densities"),
    ("PriorBox", "opset8", f'{_FIXED}"5" density="0"', [_GRID, _IMAGE], "a density of 0|boxes per cell"),
    ("PriorBox", "opset8", f'{_FIXED}"nan" density="1"', [_GRID, _IMAGE], "are inconsistent"),
    ("PriorBox", "opset8", _ONE, [_GRID, np.array([20, 30, 3])], "3 is not 2"),
    ("PriorBox", "opset8", _ONE, [np.array([2]), _IMAGE], "1 is not 2"),
    ("PriorBox", "opset8", _ONE, [np.array([-2, 3]), _IMAGE], "are inconsistent"),
    ("PriorBox", "opset8", _ONE, [_GRID, (2,)], "instead of an integer type"),
    ("PriorBox", "opset8", _ONE, [np.array([2, 4]), _IMAGE], "in the file"),
    ("PriorBoxClustered", "opset1", 'offset="0.5" width="1,2" height="1"', [_GRID, _IMAGE], "2 widths and 1 heights"),
    ("PriorBoxClustered", "opset1", f'{_CLUSTER} variance="1,2,3"', [_GRID, _IMAGE], "3 variances"),
    ("PriorBoxClustered", "opset1", _CLUSTER, [(2,), _IMAGE], "instead of an integer type"),
    ("PriorBoxClustered", "opset1", _CLUSTER, [_GRID, np.array([20])], "1 is not 2"),
]  # fmt: skip


@pytest.mark.parametrize("row", rows([(*row[:4], (2, 24), row[4]) for row in PRIORS]))
def test_malformed_prior_boxes_are_reported(tmp_path: Path, row):
    assert_reported(tmp_path, *row)
