"""A sample of the recorded models; ``python -m tests.conformance.frontends`` compares all of them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tests.conformance.frontends.check import check
from tests.conformance.frontends.model import FILES, FORMATS, recorded

_SAMPLE = {
    "saved_model": "strings", "frozen": "detection", "meta": "embeddings", "tflite": "int8", "paddle": "control_flow",
    "pt2": "detection", "onnx": "attention",
}  # fmt: skip


@pytest.mark.parametrize("kind", _SAMPLE)
def test_a_sample_agrees(kind: str, tmp_path: Path) -> None:
    if kind == "pt2" and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch reads its own programs: pip install torch")
    (model,) = [model for model in recorded(kind) if model.name == _SAMPLE[kind]]
    assert check(model, tmp_path) == "agrees"


def test_the_record() -> None:
    results = json.loads(FILES.with_name("results.json").read_text())
    assert list(results) == list(FORMATS)
    for kind in FORMATS:
        assert sorted(results[kind]) == sorted(model.name for model in recorded(kind))
        assert sum(outcome == "agrees" for outcome in results[kind].values()) >= 10
