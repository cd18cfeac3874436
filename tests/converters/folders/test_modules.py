"""The modules in the names of layers show other types than the stated one."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from converters.folders.modules import modules_of_another_type

ARCHIVES = Path(__file__).parents[2] / "language"
TYPES = {
    "hybrids/falcon_mamba": "falcon_mamba",
    "hybrids/granite_hybrid": "granitemoehybrid",
    "hybrids/lfm2": "lfm2",
    "hybrids/lfm2_moe": "lfm2_moe",
    "hybrids/mamba": "mamba",
    "hybrids/qwen3_5": "qwen3_5_text",
    "hybrids/qwen3_5_moe": "qwen3_5_moe_text",
    "hybrids/qwen3_next": "qwen3_next",
    "hybrids/zamba2": "zamba2",
    "models/bloom": "bloom",
    "models/gpt2": "gpt2",
    "models/gptneox": "gpt_neox",
    "models/llama": "llama",
    "models/phi3": "phi3",
    "models/qwen3": "qwen3",
}
SAME = ({"falcon_mamba", "mamba"}, {"lfm2", "lfm2_moe"}, {"qwen3_5_text", "qwen3_5_moe_text"})
"""Types with the same modules."""

ONLY_ATTENTION = {"lfm2", "lfm2_moe", "granitemoehybrid", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"}
"""Hybrids whose configuration may select attention for all layers."""


@pytest.mark.parametrize("name", TYPES)
def test_the_layers_of_exported_models(name: str) -> None:
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        names = re.findall(r'<layer id="[0-9]+" name="([^"]*)"', file.read("openvino_model.xml").decode())
    agreeing = {kind for kind in TYPES.values() if not modules_of_another_type(kind, names)}
    own = TYPES[name]
    expected = next((kinds for kinds in SAME if own in kinds), {own})
    if own == "llama":
        expected = expected | ONLY_ATTENTION
    elif own == "qwen3":
        expected = expected | (ONLY_ATTENTION - {"lfm2", "lfm2_moe", "granitemoehybrid"})
    assert agreeing == expected


@pytest.mark.parametrize(
    ("kind", "modules", "found"),
    [
        ("llama", ["self_attn.q_proj"], ""),
        (
            "llama",
            ["self_attn.q_proj", "self_attn.q_norm"],
            "self_attn.q_proj and self_attn.q_norm, as in the types gemma",
        ),
        ("llama", ["mlp.gate_proj"], ""),  # no attention has a name
        ("unheard_of", ["mixer.in_proj"], ""),
        (None, ["mixer.in_proj"], ""),
        (["llama"], ["mixer.in_proj"], ""),
        ("lfm2", ["conv.in_proj"], ""),  # without attention
        ("lfm2", ["mixer.in_proj"], "mixer.in_proj, as in the types falcon_mamba, mamba"),
        ("mamba", ["conv.in_proj", "self_attn.q_proj"], "self_attn.q_proj and conv.in_proj, as in the types lfm2, lfm2_moe"),
        ("llama", ["mixer.in_proj", "self_attn.qkv_proj"], "self_attn.qkv_proj and mixer.in_proj"),  # as in no known type
    ],
)
def test_modules(kind: object, modules: list[str], found: str) -> None:
    names = [f"__module.model.layers.3.{module}/aten::linear/MatMul" for module in modules]
    result = modules_of_another_type(kind, [*names, "Constant_7"])
    assert result.startswith(found) and bool(result) == bool(found)


def test_only_modules_of_layers_count() -> None:
    names = ["__module.model.mixer.in_proj/aten::linear/MatMul", "mixer.in_proj"]
    assert not modules_of_another_type("llama", names)


PAIRS = {
    "seq2seq/t5": "t5",
    "seq2seq/whisper": "whisper",
    "speech/whisper_speech": "whisper",
    "text2text/bart_text": "bart",
    "text2text/t5_text": "t5",
}
SAME_PAIRS = ({"t5", "mt5", "umt5"}, {"bart", "blenderbot-small"}, {"whisper", "pegasus", "blenderbot", "m2m_100"})


@pytest.mark.parametrize("name", PAIRS)
def test_the_layers_of_encoders_and_decoders(name: str) -> None:
    kinds = ("bart", "blenderbot", "m2m_100", "marian", "mbart", "mt5", "pegasus", "t5", "umt5", "whisper")
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        for graph in file.namelist():
            if not re.fullmatch(r"openvino_(en|de)coder_model\.xml", graph):
                continue
            names = re.findall(r'<layer id="\d+" name="([^"]*)"', file.read(graph).decode())
            agreeing = {kind for kind in kinds if not modules_of_another_type(kind, names)}
            assert agreeing == next(same for same in SAME_PAIRS if PAIRS[name] in same) - {"blenderbot-small"}


def test_another_type_of_encoder_decoder() -> None:
    names = ["__module.decoder.block.0.layer.0.SelfAttention.q/aten::linear/MatMul", "__module.block.1.layer.0.layer_norm/x"]
    assert modules_of_another_type("bart", names) == "layer_norm and SelfAttention, as in the types mt5, t5, umt5"
    assert not modules_of_another_type("longt5", names)  # unknown
    assert not modules_of_another_type("bart", ["MatMul_3"])  # names of another exporter
