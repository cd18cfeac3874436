"""Language models for onnxruntime-genai on CUDA. The CPU provider computes the same graphs, with the same types."""

from __future__ import annotations

import json
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from converters.folders.genai import write_genai
from converters.openvino import convert
from converters.options import Precision

genai = pytest.importorskip("onnxruntime_genai")

ARCHIVES = Path(__file__).parent / "models"
SURE = 12
"""The tokens of random weights, whose most likely tokens are close, that float16 does not change."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda")


def converted(name: str, folders: Path, **options: Any) -> tuple[Path, Any]:
    source, target = folders / name, folders / f"{name}-{len(list(folders.iterdir()))}"
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        file.extractall(source)
    written = write_genai(source, target, partial(convert, target="cuda", **options), provider="cuda")
    return target, written


def generated(folder: Path, prompt: list[int], count: int) -> list[int]:
    config = genai.Config(str(folder))
    config.clear_providers()  # the CPU's
    model = genai.Model(config)
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=len(prompt) + count, min_length=len(prompt) + count)
    generator = genai.Generator(model, parameters)
    generator.append_tokens(np.int32([prompt]))
    while not generator.is_done():
        generator.generate_next_token()
    return list(generator.get_sequence(0).tolist()[len(prompt) :])


@pytest.mark.parametrize("precision", ["model", "float16"])
@pytest.mark.parametrize("name", ["llama3", "gptoss", "phi3"])
def test_tokens(name: str, precision: str, folders: Path) -> None:
    target, written = converted(name, folders, precision=precision)
    decoder = written.report.decoder
    assert decoder.cache == "float16" and decoder.grouped == decoder.layers and decoder.in_place
    settings = json.loads((target / "genai_config.json").read_text())["model"]["decoder"]["session_options"]
    assert settings["provider_options"] == [{"cuda": {}}] and "custom_ops_library" not in settings
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        wanted = json.loads(file.read("expected.json"))
    for prompt, tokens in zip(wanted["prompts"], wanted["greedy"], strict=True):
        until = min(tokens.index(0) if 0 in tokens else len(tokens), SURE)
        assert generated(target, prompt, SURE)[:until] == tokens[:until]


def test_operators_have_cuda_kernels(folders: Path) -> None:
    """GroupQueryAttention has caches of float16."""
    target, _ = converted("llama3", folders, precision="float16")
    model = onnx.load(target / "model.onnx")
    assert {node.domain for node in model.graph.node} == {"", "com.microsoft"}
    types = {value.name: value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)}
    assert {kind for name, kind in types.items() if "." in name} == {onnx.TensorProto.FLOAT16}


@pytest.mark.parametrize("precision", ["model", "float16"])
def test_weights_stay_compressed(precision: Precision, tmp_path: Path) -> None:
    """The product that gives the logits is MatMulNBits with weights of 8 bits."""
    with zipfile.ZipFile(ARCHIVES.parent / "hybrids" / "qwen3_5_int8.zip") as file:
        file.extractall(tmp_path)
    model, report = convert(tmp_path / "openvino_model.xml", target="cuda", precision=precision)
    (node,) = [node for node in model.graph.node if node.op_type == "MatMulNBits"]
    stored = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    assert stored[node.input[1]] == onnx.TensorProto.UINT8 and "onnx_specops.MatMulCompressed" not in report.nodes
    assert {attribute.name: attribute.i for attribute in node.attribute}["bits"] == 8


def test_padding_before_the_tokens_is_rejected(folders: Path) -> None:
    """CUDA's kernel does not check the lengths, so the graph does."""
    target, _ = converted("llama3", folders)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(target / "model.onnx", options, providers=["CPUExecutionProvider"])
    feeds = {"input_ids": np.array([[5, 6, 7]])}
    for value in session.get_inputs():
        if value.name.startswith("past"):
            feeds[value.name] = np.zeros([1, value.shape[1], 0, value.shape[3]], np.float16)
    session.run(None, {**feeds, "attention_mask": np.array([[1, 1, 0]])})
    with pytest.raises(Exception, match="padding_before_tokens"):
        session.run(None, {**feeds, "attention_mask": np.array([[0, 1, 1]])})


def test_unsupported_attention_stays_in_standard_onnx(folders: Path) -> None:
    _, written = converted("bloom", folders)
    decoder = written.report.decoder
    assert decoder.cache == "float32" and decoder.grouped == 0
    assert any("the cache stays float32" in reason for reason in decoder.kept)
