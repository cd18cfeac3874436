"""A sample of the matrix: files for targets, read by the consumers that are Python packages of the extra ``test``.

For the whole matrix, with each consumer in a separate environment: ``python -m tests.conformance.targets FOLDER``.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from converters.errors import UnsupportedError
from converters.openvino import convert
from tests.conformance.targets.__main__ import judge
from tests.conformance.targets.consumers.table import CONSUMERS
from tests.conformance.targets.networks import make
from tests.processor import SATURATES

BY_NAME = {consumer.name: consumer for consumer in CONSUMERS}
NEEDS = {"standard": "onnxruntime", "openvino": "openvino", "opencv5": "cv2"}
"""Consumer -> the module without which it is skipped."""

SAMPLE = [
    ("standard", "CLIPModel"),
    ("standard", "ConvLSTM"),
    ("openvino", "LlamaForCausalLM"),
    ("openvino", "quantized/mobile"),
    ("opencv5", "DLRM"),
    ("opencv5", "Greedy, scripted"),
    ("opencv5", "SwinModel"),
    ("opencv5", "TwoStages"),
    ("opencv5", "quantized/residual"),
]


@pytest.mark.parametrize(("consumer", "network"), SAMPLE, ids=lambda name: name.replace("/", "-"))
def test_a_consumer_gives_openvinos_results(consumer: str, network: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(NEEDS[consumer]) is None:
        pytest.skip(f"{NEEDS[consumer]} is not installed: pip install -e '.[test]'")
    if SATURATES and consumer == "openvino" and network.startswith("quantized/"):
        pytest.skip("without VNNI, OpenVINO's sums of 8-bit integers saturate")
    folder = make(network, tmp_path)
    assert judge(BY_NAME[consumer].here(), folder, BY_NAME[consumer].target, tmp_path) == ""


def test_unsupported_operators_are_rejected_before_writing(tmp_path: Path) -> None:
    folder = make("TwoStages", tmp_path)
    with pytest.raises(UnsupportedError, match="OpenCV 4's dnn module does not support the operator NonMaxSuppression"):
        convert(folder / "model.xml", folder / "opencv4.onnx", target="opencv4")
    assert not (folder / "opencv4.onnx").exists()
