"""Single operations of openvino_tokenizers agree with OpenVINO, with native and Python kernels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import onnx_specops
from converters.openvino import convert
from tests.language.recording import recorded_by
from tests.language.test_tokenizers import KERNELS


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return recorded_by("operations", tmp_path_factory.mktemp("operations"))


@pytest.mark.parametrize("kernels", KERNELS)
def test_operations(recorded: list[Path], kernels: str) -> None:
    assert len(recorded) > 60
    wrong = []
    for path in recorded:
        case = json.loads(path.read_text())
        options = ort.SessionOptions()
        options.log_severity_level = 3
        model = convert(path.with_suffix(".xml")).model
        session = onnx_specops.InferenceSession(model.SerializeToString(), options, kernels=kernels)
        arrays = [np.array(data, kind) for kind, data in case["inputs"]]
        feeds = dict(zip((value.name for value in session.get_inputs()), arrays, strict=True))
        got = [array.tolist() for array in session.run(None, feeds)]
        if got != case["outputs"]:
            wrong.append((path.stem, got, case["outputs"]))
    assert not wrong
