"""The parameters of recurrences and short convolutions in IRs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.errors import ConversionError
from converters.folders import weights
from converters.folders.recurrences import logarithm
from converters.folders.weights import write_weights
from tests.converters.folders.test_weights import Stub, needs_transformers, read

WIDTH, TAPS, STATE = 6, 4, 3
LAYER = "__module.layers.0.mixer"


class Mamba(Stub):
    """A layer of Mamba."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.shapes = {
            "layers.0.mixer.conv1d.weight": (WIDTH, 1, TAPS), "layers.0.mixer.conv1d.bias": (WIDTH,),
            "layers.0.mixer.A_log": (WIDTH, STATE), "layers.0.mixer.D": (WIDTH,),
            "layers.0.mixer.out_proj.weight": (WIDTH, WIDTH),
        }  # fmt: skip

    def convolution_in(self, module: str) -> str | None:
        return "layers.0.mixer.conv1d.weight" if module.startswith("layers.0.mixer.") else None

    def is_product(self, module: str) -> bool:
        return module.endswith("out_proj")

    def neutral(self, name: str) -> float | None:
        return None


class Mamba2(Mamba):
    """A layer of Mamba 2, which has a step for each head."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.shapes = {f"layers.0.mixer.{name}": (WIDTH,) for name in ("A_log", "dt_bias", "D")}


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).uniform(0.5, 2, shape).astype(np.float32)


GIVEN = {
    "layers.0.mixer.conv1d.weight": numbers(WIDTH, 1, TAPS), "layers.0.mixer.conv1d.bias": numbers(WIDTH),
    "layers.0.mixer.A_log": numbers(WIDTH, STATE), "layers.0.mixer.D": numbers(WIDTH) + 1,
    "layers.0.mixer.out_proj.weight": numbers(WIDTH, WIDTH),
}  # fmt: skip


def named(node: ov.Node, name: str) -> ov.Node:
    node.set_friendly_name(name)
    return node


def save(folder: Path, y: ov.Node, *inputs: ov.Node) -> Path:
    folder.mkdir()
    ov.save_model(ov.Model([y], list(inputs)), folder / "openvino_model.xml", compress_to_fp16=False)
    (folder / "config.json").write_text(json.dumps({"model_type": "stub"}))
    return folder


def mamba(folder: Path, bias: bool = True, skip: bool = True, sign: float = -1) -> Path:
    """Save a layer as optimum-intel exports it: the shared module of the scan has the name of another layer."""
    x = ops.parameter([1, WIDTH, -1], np.float32, name="x")
    step = ops.parameter([1, -1, WIDTH, 1], np.float32, name="step")
    weight = ops.constant(GIVEN["layers.0.mixer.conv1d.weight"][:, None])
    y = ops.group_convolution(x, weight, [1], [0], [0], [1])
    y.set_friendly_name(f"{LAYER}.sequence.conv1d/aten::_convolution/GroupConvolution")
    if bias:
        added = ops.constant(GIVEN["layers.0.mixer.conv1d.bias"].reshape(1, -1, 1))
        y = named(ops.add(y, added), f"{LAYER}.sequence.conv1d/aten::_convolution/Add")
    rate = named(ops.constant(sign * np.exp(GIVEN["layers.0.mixer.A_log"])), f"{LAYER}/aten::neg/Multiply")
    scan = ops.multiply(step, rate, name="__module.layers.1.mixer.scan/aten::mul/Multiply")
    states = ops.transpose(ops.swish(y), np.array([0, 2, 1]))
    scaled = ops.multiply(states, ops.constant(GIVEN["layers.0.mixer.D"].reshape(1, 1, -1))) if skip else states
    whole = ops.add(ops.reduce_sum(scan, np.array([3])), scaled)
    gated = ops.multiply(whole, ops.swish(states))
    out = ops.constant(GIVEN["layers.0.mixer.out_proj.weight"], name="self.layers.0.mixer.out_proj.weight")
    return save(folder, named(ops.matmul(gated, out, False, True), f"{LAYER}.out_proj/aten::linear/MatMul"), x, step)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("skip", [True, False])
def test_a_layer_of_mamba(bias: bool, skip: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An IR omits biases of 0, and scales of 1."""
    monkeypatch.setattr(weights, "Architecture", Mamba)
    written = write_weights(mamba(tmp_path / "ir", bias, skip), tmp_path / "out")
    found = read(tmp_path / "out/model.safetensors")
    expected = dict(GIVEN)
    if not bias:
        expected["layers.0.mixer.conv1d.bias"] = np.zeros(WIDTH, np.float32)
    if not skip:
        expected["layers.0.mixer.D"] = np.ones(WIDTH, np.float32)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=3e-7, err_msg=name)
    omitted = [*(["layers.0.mixer.conv1d.bias"] if not bias else []), *(["layers.0.mixer.D"] if not skip else [])]
    assert written.supplied == omitted


def test_a_decay_that_is_not_negative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "Architecture", Mamba)
    with pytest.raises(ConversionError, match=r"it contains no layers\.0\.mixer\.A_log"):
        write_weights(mamba(tmp_path / "ir", sign=1), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("activation", [ops.softplus, ops.sigmoid])
def test_a_layer_of_mamba_2(activation: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "Architecture", Mamba2)
    x = ops.parameter([1, -1, WIDTH], np.float32, name="x")
    step, scale, rate = numbers(1, 1, WIDTH), numbers(1, 1, WIDTH) + 3, numbers(WIDTH)
    y = activation(named(ops.add(x, ops.constant(step)), f"{LAYER}/aten::add/Add_1"))
    exponential = named(ops.constant(np.exp(rate)), f"{LAYER}/aten::exp/Exp")
    negated = named(ops.multiply(exponential, ops.constant(np.float32([-1]))), f"{LAYER}/aten::neg/Multiply")
    y = ops.exp(named(ops.multiply(negated, y), f"{LAYER}/aten::mul/Multiply_5"))
    folder = save(tmp_path / "ir", named(ops.multiply(ops.constant(scale), y), f"{LAYER}/aten::mul/Multiply_14"), x)
    if activation is ops.sigmoid:
        with pytest.raises(ConversionError, match=r"it contains no layers\.0\.mixer\.dt_bias"):
            write_weights(folder, tmp_path / "out")
        return
    write_weights(folder, tmp_path / "out")
    found = read(tmp_path / "out/model.safetensors")
    for name, value in (("A_log", rate), ("dt_bias", step[0, 0]), ("D", scale[0, 0])):
        np.testing.assert_allclose(found[f"layers.0.mixer.{name}"], value, rtol=3e-7, err_msg=name)


def test_the_logarithm_of_another_constant() -> None:
    assert logarithm(np.float32([-1, 1])) is None and logarithm(np.float32([0])) is None
    assert logarithm(np.float16([-1])) == [0]


@pytest.mark.real
@needs_transformers
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("backbone.layers.0.mixer.conv1d", "backbone.layers.0.mixer.conv1d.weight"),
        ("backbone.layers.0.mixer.conv_sequence_transform.conv1d", "backbone.layers.0.mixer.conv1d.weight"),
        ("backbone.layers.0.mixer.a.b.c", None),
    ],
)
def test_a_convolution_in_a_module_of_the_exporter(module: str, name: str | None) -> None:
    from converters.folders.architectures import Architecture

    config = {"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 1, "vocab_size": 32, "state_size": 4}
    assert Architecture(Path("config.json"), config).convolution_in(module) == name


@pytest.mark.real
@needs_transformers
def test_a_module_that_layers_share_has_several_names() -> None:
    import transformers

    if "zamba2" not in transformers.CONFIG_MAPPING:
        pytest.skip("this release of transformers has no Zamba 2")
    from converters.folders.architectures import Architecture

    config = {
        "model_type": "zamba2", "vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 4,
        "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "num_attention_heads": 2, "num_key_value_heads": 2,
        "num_mem_blocks": 1, "adapter_rank": 4, "n_mamba_heads": 4, "mamba_d_state": 4, "mamba_ngroups": 1,
    }  # fmt: skip
    zamba = Architecture(Path("config.json"), config)
    first = "model.layers.1.shared_transformer.input_layernorm.weight"
    assert zamba.known(first) == zamba.known("model.layers.3.shared_transformer.input_layernorm.weight") == first
