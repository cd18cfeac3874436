"""Single operations of openvino_tokenizers agree with OpenVINO, with native and Python kernels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_specops
from converters.openvino import convert
from tests.language.recording import recorded_by
from tests.language.test_tokenizers import KERNELS

LONG = "RegexSplit-long-20000"
"""A match that needs more stack than OpenVINO provides."""


@dataclass
class Recorded:
    """An operation with its inputs, OpenVINO's outputs, and the converted model."""

    name: str
    inputs: list[np.ndarray]
    outputs: list[Any]
    model: bytes


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Recorded]:
    found = []
    for path in recorded_by("operations", tmp_path_factory.mktemp("operations")):
        case = json.loads(path.read_text())
        inputs = [np.array(data, kind) for kind, data in case["inputs"]]
        model = convert(path.with_suffix(".xml")).model.SerializeToString()
        found.append(Recorded(path.stem, inputs, case["outputs"], model))
    return found


@pytest.mark.parametrize("kernels", KERNELS)
def test_operations(recorded: list[Recorded], kernels: str) -> None:
    assert len(recorded) > 60
    wrong = []
    for case in recorded:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = onnx_specops.InferenceSession(case.model, options, kernels=kernels)
        feeds = dict(zip((value.name for value in session.get_inputs()), case.inputs, strict=True))
        got = [array.tolist() for array in session.run(None, feeds)]
        expected = [[0], [2], ["1" * 20000, " x"]] if case.name == LONG else case.outputs
        if got != expected:
            wrong.append((case.name, got, expected))
    assert not wrong


def test_openvino_does_not_find_long_matches(recorded: list[Recorded]) -> None:
    """If this fails, the departure of the rules must change."""
    (case,) = [case for case in recorded if case.name == LONG]
    assert case.outputs == [[0], [1], ["1" * 20000 + " x"]]


def test_unpacked_vocabularies_are_constants(recorded: list[Recorded]) -> None:
    (model,) = [onnx.load_from_string(case.model) for case in recorded if case.name == "VocabEncoder-unpacked"]
    assert [node.op_type for node in model.graph.node] == ["LabelEncoder", "GreaterOrEqual", "Max", "Gather", "Where"]


@pytest.mark.parametrize("kernels", KERNELS)
def test_an_empty_row_after_the_last_string(recorded: list[Recorded], kernels: str) -> None:
    """openvino_tokenizers reads beyond its data."""
    session = onnx_specops.InferenceSession(
        next(case.model for case in recorded if case.name == "FuzeRagged0"), kernels=kernels
    )
    arrays = [np.array(numbers, np.int32) for numbers in ([0, 3], [3, 3], [0, 3, 5], [3, 5, 9])]
    begins, ends = session.run(None, dict(zip((value.name for value in session.get_inputs()), arrays, strict=True)))
    assert begins.tolist() == [0, 0] and ends.tolist() == [9, 0]
