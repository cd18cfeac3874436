"""An IR in memory, for programs that decrypt or download it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from converters.errors import ConversionError
from converters.openvino import convert
from tests.converters.cli.specops import save_dense


def test_bytes_give_the_same_model_as_files(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    weights = xml.with_suffix(".bin")
    from_files = convert(xml).model
    for kind in (bytes, bytearray, memoryview):
        from_memory = convert(kind(xml.read_bytes()), bin=kind(weights.read_bytes())).model
        x = np.random.default_rng(0).standard_normal((2, 32)).astype(np.float32)
        ours, theirs = (
            ort.InferenceSession(model.SerializeToString()).run(None, {model.graph.input[0].name: x})
            for model in (from_memory, from_files)
        )
        np.testing.assert_array_equal(ours[0], theirs[0])


def test_bytes_with_the_weights_in_a_file(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    target = tmp_path / "out.onnx"
    convert(xml.read_bytes(), target, bin=xml.with_suffix(".bin"))
    assert target.stat().st_size > 0


def test_weights_in_memory_require_an_ir_in_memory(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    with pytest.raises(ValueError, match="bin must be a path"):
        convert(xml, bin=b"")


@pytest.mark.parametrize("content", [b"", b"not an IR", b"<net"])
def test_bytes_that_are_not_ir(content: bytes) -> None:
    with pytest.raises(ConversionError, match="model"):
        convert(content)


def test_missing_weights(tmp_path: Path) -> None:
    xml = save_dense(tmp_path / "model.xml")
    with pytest.raises(ConversionError, match="model"):
        convert(xml.read_bytes())
