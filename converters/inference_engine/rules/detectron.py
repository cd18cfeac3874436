"""Detectron's layers, which are equal to those of the opsets."""

from __future__ import annotations

from converters.inference_engine.rule import layer
from converters.openvino.rules import detectron as opset

for _kind, _rule in {
    "ExperimentalDetectronDetectionOutput": opset.detection_output,
    "ExperimentalDetectronGenerateProposalsSingleImage": opset.generate_proposals_single_image,
    "ExperimentalDetectronPriorGridGenerator": opset.prior_grid_generator,
    "ExperimentalDetectronROIFeatureExtractor": opset.roi_feature_extractor,
    "ExperimentalDetectronTopKROIs": opset.top_k_rois,
}.items():
    layer(_kind)(_rule)
