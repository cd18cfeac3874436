"""Models connected to a tokenizer, a detokenizer or both by openvino_tokenizers' ``connect_models`` become one file.

Their inputs are strings, their outputs logits or strings.
"""

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
    return recorded_by("connected", tmp_path_factory.mktemp("connected"))


def _session(path: Path, kernels: str) -> onnx_specops.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return onnx_specops.InferenceSession(convert(path).model.SerializeToString(), options, kernels=kernels)


@pytest.mark.parametrize("kernels", KERNELS)
def test_strings_in_and_logits_or_strings_out(recorded: list[Path], kernels: str) -> None:
    assert len(recorded) == 10
    for path in recorded:
        case = json.loads(path.read_text())
        session = _session(path.with_suffix(".xml"), kernels)
        (name,) = (value.name for value in session.get_inputs())
        got = session.run(None, {name: np.array(case["inputs"][0], object)})
        for one, (kind, values) in zip(got, case["outputs"], strict=True):
            if kind == "f":
                np.testing.assert_allclose(one, np.array(values, np.float32), rtol=1e-4, atol=1e-4, err_msg=path.stem)
            else:
                assert one.tolist() == values, path.stem
