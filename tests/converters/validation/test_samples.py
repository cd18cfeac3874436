"""Several samples through several runtimes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.openvino import convert
from converters.openvino.baseline import OpenVINOBaseline
from converters.source import BaselineError
from converters.validation import samples as module
from converters.validation.compare import DEFAULT
from converters.validation.onnx_model import OnnxModel
from converters.validation.samples import compare_samples
from tests.converters.cli.specops import save_dense


class Crashing(OpenVINOBaseline):
    """An OpenVINO baseline without results."""

    def __init__(self) -> None:
        pass

    def run_all(self, *arguments: object, **keywords: object) -> list[list[np.ndarray]]:
        raise BaselineError("it crashed")


def test_without_openvino_nothing_is_excused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = module.runner
    monkeypatch.setattr(
        module,
        "runner",
        lambda runtime, *rest: (
            lambda feeds: {name: value + (runtime == "reference") for name, value in runner(runtime, *rest)(feeds).items()}
        ),
    )
    xml, path = save_dense(tmp_path / "model.xml"), tmp_path / "model.onnx"
    convert(xml, path)
    model = OnnxModel.load(path)
    inputs = {name: {"x": np.full((2, 32), number, np.float32)} for number, name in enumerate("ab")}
    sampled = compare_samples(Crashing(), path, model, inputs, ["openvino", "none", "reference"], DEFAULT)
    assert sampled.apart() == {"a": ["reference"], "b": ["reference"]}
