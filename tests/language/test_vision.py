"""Vision-language models: their parts, combined as documented, agree with OpenVINO."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest

import onnx_specops
from onnx_specops.generation import GenerationError, open_model
from tests.converters.cli.specops import specops

ARCHIVES = Path(__file__).parent / "vision"
GUIDE = (Path(__file__).parents[2] / "docs" / "language-models.md").read_text(encoding="utf-8")
PARTS = ("vision_embeddings", "text_embeddings", "language")
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the original model and, in OUT, its conversion."""
    place = tmp_path_factory.mktemp("vision")
    with zipfile.ZipFile(ARCHIVES / "llava.zip") as file:
        file.extractall(place / "llava")
    result = specops("convert", place / "llava", "-o", place / "OUT")
    assert result.exit_code == 0, result.output
    return place


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("kernels", ["native", "python", "none"])
def test_the_code_of_the_guide_agrees_with_openvino(
    kernels: Any, number: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = GUIDE.split("## Vision-language models")[1]
    lines = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert lines is not None
    given = json.loads((place / "llava" / "expected.json").read_text())[number]
    pixels = np.load(place / "llava" / "image.npy")
    code = lines[1] if given["image"] else re.sub(r"(?m)^embeddings\[ids == .*\n", "", lines[1])
    session = onnx_specops.InferenceSession
    monkeypatch.setattr(onnx_specops, "InferenceSession", lambda path: session(path, kernels=kernels))
    monkeypatch.chdir(place)
    names: dict[str, Any] = {"ids": np.array([given["ids"]]), "pixel_values": pixels}
    exec(code, names)
    assert names["answer"] == given["answer"]


def test_the_cache_stays_in_place(place: Path) -> None:
    path = place / "OUT" / "openvino_language_model.onnx"
    assert [node.op_type for node in onnx.load(path).graph.node].count("ScaledDotProductAttentionWithKVCache") == 2
    assert len(onnx_specops.InferenceSession(path, kernels="native")._state.in_place) == 4


@pytest.mark.parametrize("part", PARTS[:2])
def test_embeddings(part: str, place: Path) -> None:
    name = f"openvino_{part}_model"
    given = np.load(place / "llava" / "image.npy") if part == "vision_embeddings" else np.arange(320)[None]
    session = onnx_specops.InferenceSession(place / "OUT" / f"{name}.onnx")
    wanted = ov.compile_model(place / "llava" / f"{name}.xml", "CPU", EXACT)([given])
    got = session.run(None, {session.get_inputs()[0].name: given})
    for one, other in zip(got, wanted.values(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(other).max())


def test_generate_suggests_the_remedy(place: Path) -> None:
    for folder in ("llava", "OUT"):
        with pytest.raises(GenerationError, match=r"a multimodal model.*Vision-language models"):
            open_model(place / folder)
    result = specops("generate", place / "OUT", "text")
    assert result.exit_code == 2 and "a multimodal model" in result.stderr
    for command in (("generate", place / "llava", "text"), ("convert", place / "llava", "-o", place / "genai", "--genai")):
        result = specops(*command)
        assert result.exit_code == 1 and "no vision-language model of the type" in result.stderr
