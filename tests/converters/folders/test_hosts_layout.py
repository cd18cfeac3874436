"""Folders of encoders and pipelines get the file names of their hosts. Inconsistent folders are rejected."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.cli import batch
from converters.folders.layouts import places
from tests.converters.cli.specops import as_json, specops

SIZE, WIDTH, LABELS = 40, 32, 3


def save(path: Path, inputs: dict[str, list[int]], outputs: dict[str, int], variable: bool = False) -> Path:
    """Save an IR of floats: each output is a product of the first input, with the given number of channels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    given = {name: ops.parameter(dims, np.float32, name=name) for name, dims in inputs.items()}
    for name, node in given.items():
        node.output(0).set_names({name})
    first = next(iter(given.values()))
    channels = first.get_partial_shape()[1].get_length() if first.get_partial_shape().rank.get_length() == 4 else None
    draw, results = np.random.default_rng(1), []
    for name, size in outputs.items():
        if channels is None:
            weights = draw.standard_normal((first.get_partial_shape()[-1].get_length(), size)).astype(np.float32)
            result = ops.matmul(first, ops.constant(weights), False, False)
        else:
            weights = draw.standard_normal((size, channels, 1, 1)).astype(np.float32)
            result = ops.convolution(first, ops.constant(weights), [1, 1], [0, 0], [0, 0], [1, 1])
        result.output(0).set_names({name})
        results.append(ops.result(result))
    sinks = []
    if variable:
        read = ops.read_value(ops.constant(np.zeros((1, 1), np.float32)), "kept")
        sinks.append(ops.assign(read, "kept"))
    ov.save_model(ov.Model(results, sinks, list(given.values()), "part"), path, compress_to_fp16=False)
    return path


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """Create a classifier."""
    folder = tmp_path / "encoder"
    save(folder / "openvino_model.xml", {"x": [-1, WIDTH]}, {"logits": LABELS})
    labels = {str(number): f"label {number}" for number in range(LABELS)}
    write(folder / "config.json", {"architectures": ["BertForSequenceClassification"], "id2label": labels})
    (folder / "tokenizer.json").write_text("{}")
    return folder


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """Create a latent diffusion pipeline of matrix products."""
    folder = tmp_path / "pipeline"
    part = "openvino_model.xml"
    sample = {"sample": [-1, 4, -1, -1], "encoder_hidden_states": [-1, -1, WIDTH]}
    save(folder / "unet" / part, sample, {"out_sample": 4})
    write(folder / "unet/config.json", {"in_channels": 4, "cross_attention_dim": WIDTH})
    save(folder / "vae_decoder" / part, {"latent_sample": [-1, 4, -1, -1]}, {"sample": 3})
    write(folder / "vae_decoder/config.json", {"latent_channels": 4})
    save(folder / "text_encoder" / part, {"input_ids": [-1, 8]}, {"last_hidden_state": WIDTH})
    write(folder / "text_encoder/config.json", {"hidden_size": WIDTH})
    write(folder / "scheduler/scheduler_config.json", {})
    write(folder / "tokenizer/tokenizer_config.json", {})
    write(
        folder / "model_index.json",
        {
            "_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"],
            "vae": ["diffusers", "AutoencoderKL"], "text_encoder": ["transformers", "CLIPTextModel"],
            "scheduler": ["diffusers", "DDIMScheduler"], "tokenizer": ["transformers", "CLIPTokenizer"],
            "safety_checker": [None, None],
        },
    )  # fmt: skip
    return folder


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_an_encoder_gets_the_file_names_of_hosts(encoder: Path, tmp_path: Path) -> None:
    told = as_json(specops("convert", encoder, "-o", tmp_path / "out", "--json"))
    assert told["failed"] == 0
    assert files(tmp_path / "out") == {"onnx/model.onnx", "config.json", "tokenizer.json"}


def test_the_ir_may_be_in_a_separate_folder(encoder: Path, tmp_path: Path) -> None:
    (encoder / "openvino").mkdir()
    for suffix in (".xml", ".bin"):
        (encoder / f"openvino_model{suffix}").rename(encoder / f"openvino/openvino_model{suffix}")
        content = (encoder / f"openvino/openvino_model{suffix}").read_bytes()
        (encoder / f"openvino/openvino_model_qint8_quantized{suffix}").write_bytes(content)
    assert specops("convert", encoder, "-o", tmp_path / "out").exit_code == 0
    found = {name for name in files(tmp_path / "out") if name.endswith(".onnx")}
    assert found == {"onnx/model.onnx", "onnx/model_qint8_quantized.onnx"}


def test_weights_of_modules_after_the_model_are_copied(encoder: Path, tmp_path: Path) -> None:
    """sentence-transformers runs these modules itself. The weights of the model in other forms are left out."""
    for name in ("model.safetensors", "2_Dense/model.safetensors", "2_Dense/notes.onnx", "3_Other/pytorch_model.bin"):
        write(encoder / name, {})
    write(encoder / "modules.json", [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "../2_Dense"}, 7])
    assert as_json(specops("convert", encoder, "-o", tmp_path / "out", "--json"))["failed"] == 0
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert "2_Dense/model.safetensors" in written and "modules.json" in written
    assert not written & {"model.safetensors", "2_Dense/notes.onnx", "3_Other/pytorch_model.bin"}


def test_a_router_has_models_of_queries_and_documents(encoder: Path, tmp_path: Path) -> None:
    """sentence-transformers saves each module of a router in a folder, and nothing of the model next to modules.json."""
    folder = tmp_path / "router"
    for part in ("query_0_Transformer", "document_0_Transformer"):
        (folder / part / "openvino").mkdir(parents=True)
        for suffix in (".xml", ".bin"):
            path = encoder / f"openvino_model{suffix}"
            (folder / part / f"openvino/{path.name}").write_bytes(path.read_bytes())
        (folder / part / "config.json").write_bytes((encoder / "config.json").read_bytes())
    write(folder / "modules.json", [{"path": ""}])
    modules = ["query_0_Transformer", "document_0_Transformer", "document_1_Dense"]
    write(folder / "router_config.json", {"types": dict.fromkeys(modules, "")})
    for name in ("document_1_Dense/model.safetensors", "other/model.safetensors"):
        write(folder / name, {})
    assert as_json(specops("convert", folder, "-o", tmp_path / "out", "--json"))["failed"] == 0
    models = {f"{part}/{name}" for part in modules[:2] for name in ("onnx/model.onnx", "config.json")}
    others = {"modules.json", "router_config.json", "document_1_Dense/model.safetensors"}
    assert files(tmp_path / "out") == models | others
    write(folder / "router_config.json", {"types": [7]})
    assert as_json(specops("convert", folder, "-o", tmp_path / "other", "--json"))["failed"] == 0


def test_weights_of_components_in_pytorch_are_copied(pipeline: Path, tmp_path: Path) -> None:
    """optimum-intel leaves the safety checker of a pipeline in PyTorch. The weights of IRs in other forms are left out."""
    path = pipeline / "model_index.json"
    index = json.loads(path.read_text())
    path.write_text(json.dumps({**index, "safety_checker": ["stable_diffusion", "StableDiffusionSafetyChecker"]}))
    for name in ("safety_checker/model.safetensors", "unet/diffusion_pytorch_model.bin", "other/model.safetensors"):
        write(pipeline / name, {})
    assert as_json(specops("convert", pipeline, "-o", tmp_path / "out", "--json"))["failed"] == 0
    found = files(tmp_path / "out")
    assert "safety_checker/model.safetensors" in found
    assert not found & {"unet/diffusion_pytorch_model.bin", "other/model.safetensors"}


@pytest.mark.parametrize(
    "arguments", [["-o", "OUT", "--layout", "files"], ["-o", "OUT", "--layout=files", "--jobs=2"], []], ids=str
)
def test_files_keep_their_names(encoder: Path, tmp_path: Path, arguments: list[str]) -> None:
    given = [str(tmp_path / "out") if argument == "OUT" else argument for argument in arguments]
    assert specops("convert", encoder, *given).exit_code == 0
    assert "openvino_model.onnx" in files(tmp_path / "out" if given else encoder)


def test_a_stateful_model_keeps_its_name(encoder: Path, tmp_path: Path) -> None:
    save(encoder / "openvino_model.xml", {"x": [-1, WIDTH]}, {"logits": LABELS}, variable=True)
    assert specops("convert", encoder, "-o", tmp_path / "out").exit_code == 0
    assert "openvino_model.onnx" in files(tmp_path / "out")


def test_without_a_configuration_there_is_no_layout(encoder: Path, tmp_path: Path) -> None:
    (encoder / "config.json").unlink()
    (encoder / "tokenizer.json").unlink()
    assert specops("convert", encoder, "-o", tmp_path / "out").exit_code == 0
    assert files(tmp_path / "out") == {"openvino_model.onnx"}


def test_a_pipeline_gets_the_file_names_of_hosts(pipeline: Path, tmp_path: Path) -> None:
    assert specops("convert", pipeline, "-o", tmp_path / "out").exit_code == 0
    found = {name for name in files(tmp_path / "out") if name.endswith(".onnx")}
    assert found == {"unet/model.onnx", "vae_decoder/model.onnx", "text_encoder/model.onnx"}
    assert {"model_index.json", "scheduler/scheduler_config.json"} <= files(tmp_path / "out")


def test_only_components_are_renamed(pipeline: Path) -> None:
    models = [
        pipeline / name
        for name in ("unet/openvino_model.xml", "tokenizer/openvino_tokenizer.xml", "more/deep/openvino_model.xml")
    ]
    found = [str(place) for place in places(pipeline, models, "hosts").values()]
    assert found == ["unet/model.onnx", "tokenizer/openvino_tokenizer.onnx", "more/deep/openvino_model.onnx"]


def test_the_parts_of_segment_anything_get_the_names_of_transformers_js(tmp_path: Path) -> None:
    folder = tmp_path / "sam"
    for part in ("vision_encoder", "prompt_encoder_mask_decoder"):
        save(folder / f"openvino_{part}.xml", {"x": [-1, WIDTH]}, {"y": WIDTH})
    write(folder / "config.json", {"model_type": "sam"})
    document = as_json(specops("convert", folder, "-o", tmp_path / "out", "--variant", "q8", "--json"))
    assert document["failed"] == 0
    assert sorted(path.name for path in (tmp_path / "out/onnx").iterdir()) == [
        "prompt_encoder_mask_decoder.onnx", "prompt_encoder_mask_decoder_quantized.onnx", "vision_encoder.onnx",
        "vision_encoder_quantized.onnx",
    ]  # fmt: skip


def test_one_part_alone_keeps_its_name(tmp_path: Path) -> None:
    model = save(tmp_path / "openvino_vision_encoder.xml", {"x": [-1, WIDTH]}, {"y": WIDTH})
    write(tmp_path / "config.json", {"model_type": "another"})
    assert [str(place) for place in places(tmp_path, [model], "hosts").values()] == ["openvino_vision_encoder.onnx"]


def test_variants_are_quantized_models(encoder: Path, tmp_path: Path) -> None:
    arguments = ["--variant", "fp16", "--variant", "q8", "--variant", "q4"]
    told = as_json(specops("convert", encoder, "-o", tmp_path / "out", "--json", *arguments))
    assert [variant["variant"] for variant in told["variants"]] == ["fp16", "q8", "q4"]
    assert not any(variant["remark"] for variant in told["variants"])
    assert sum(name.endswith(".onnx") for name in files(tmp_path / "out")) == 4
    x = np.random.default_rng(1).standard_normal((4, WIDTH)).astype(np.float32)
    expected = ov.Core().compile_model(encoder / "openvino_model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0]
    operators = {"": "MatMul", "_fp16": "MatMul", "_quantized": "MatMulInteger", "_q4": "MatMulNBits"}
    for (suffix, operator), most in zip(operators.items(), (1e-6, 2e-3, 2e-2, 0.2), strict=True):
        path = tmp_path / f"out/onnx/model{suffix}.onnx"
        assert operator in {node.op_type for node in onnx.load(path).graph.node}
        (found,) = ort.InferenceSession(path).run(None, {"x": x})
        assert np.linalg.norm(found - expected) <= most * np.linalg.norm(expected)


def test_several_matrices_in_a_product_are_not_quantized(tmp_path: Path) -> None:
    """ONNX Runtime's kernel rejects their scales."""
    draw = np.random.default_rng(2)
    x = ops.parameter([-1, 2, 4, WIDTH], np.float32, name="x")
    y = ops.matmul(x, ops.constant(draw.standard_normal((2, WIDTH, WIDTH)).astype(np.float32)), False, False)
    y = ops.matmul(y, ops.constant(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32)), False, False)
    (tmp_path / "ir").mkdir()
    ov.save_model(ov.Model([y], [x]), tmp_path / "ir/openvino_model.xml", compress_to_fp16=False)
    write(tmp_path / "ir/config.json", {})
    as_json(specops("convert", tmp_path / "ir", "-o", tmp_path / "out", "--variant", "q8", "--json"))
    whole, quantized = tmp_path / "out/onnx/model.onnx", tmp_path / "out/onnx/model_quantized.onnx"
    operators = [node.op_type for node in onnx.load(quantized).graph.node]
    assert operators.count("MatMul") == 1 and operators.count("MatMulInteger") == 1
    given = draw.standard_normal((1, 2, 4, WIDTH)).astype(np.float32)
    expected, found = (ort.InferenceSession(path).run(None, {"x": given})[0] for path in (whole, quantized))
    assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()


def test_a_variant_without_weights_is_an_error(tmp_path: Path) -> None:
    x = ops.parameter([-1, 4], np.float32, name="x")
    (tmp_path / "model").mkdir()
    ov.save_model(ov.Model([ops.relu(x)], [x]), tmp_path / "model/openvino_model.xml")
    write(tmp_path / "model/config.json", {})
    told = as_json(specops("convert", tmp_path / "model", "-o", tmp_path / "out", "--json", "--variant", "q4"))
    assert "no weights" in told["variants"][0]["remark"]


@pytest.mark.parametrize("arguments", [["--variant", "q8"], ["--layout", "hosts"]], ids=str)
def test_options_of_folders_are_for_folders(encoder: Path, pipeline: Path, tmp_path: Path, arguments: list[str]) -> None:
    result = specops("convert", encoder / "openvino_model.xml", "-o", tmp_path / "x.onnx", *arguments)
    assert result.exit_code == 2 and "folder" in result.output
    result = specops("convert", encoder, "-o", tmp_path / "out", "--genai", *arguments)
    assert result.exit_code == 2 and "--genai" in result.output
    if "q8" in arguments:
        result = specops("convert", pipeline, "-o", tmp_path / "out", *arguments)
        assert result.exit_code == 2 and "requires a folder" in result.output.replace("\n", " ")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "a", "1": "b"}},
            "id2label is 2, but logits",
        ),
        ({"architectures": ["BertForSequenceClassification"]}, "num_labels is 2, but logits"),
        ({"architectures": ["TimmWrapperForImageClassification"], "num_classes": 7}, "num_classes is 7, but logits"),
        ({"architectures": ["BertForMaskedLM"], "vocab_size": SIZE}, f"vocab_size is {SIZE}, but logits"),
    ],
)
def test_a_configuration_of_another_model_is_rejected(encoder: Path, tmp_path: Path, config: Any, said: str) -> None:
    write(encoder / "config.json", config)
    told = as_json(specops("convert", encoder, "-o", tmp_path / "out", "--json"))
    assert said in told["problems"][0]["message"] and told["problems"][0]["file"].endswith("config.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("more", [{}, {"padded_vocab_size": LABELS}])
def test_the_vocabulary_of_a_stateful_model_is_checked(encoder: Path, tmp_path: Path, more: dict[str, int]) -> None:
    save(encoder / "openvino_model.xml", {"x": [-1, WIDTH]}, {"logits": LABELS}, variable=True)
    write(encoder / "config.json", {"architectures": ["LlamaForCausalLM"], "vocab_size": SIZE} | more)
    result = specops("convert", encoder, "-o", tmp_path / "out", "--json")
    assert bool(result.exit_code) is not bool(more) and (tmp_path / "out").exists() is bool(more)
    if not more:
        assert f"vocab_size is {SIZE}, but logits" in as_json(result)["problems"][0]["message"]


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["BertModel"], "num_labels": 2},  # no classes
        {"architectures": ["BertForSequenceClassification"], "num_labels": LABELS},
        {"architectures": ["TimmWrapperForImageClassification"], "num_classes": LABELS},
        {"architectures": None, "vocab_size": SIZE},
    ],
)
def test_a_configuration_without_the_setting_is_accepted(encoder: Path, tmp_path: Path, config: Any) -> None:
    write(encoder / "config.json", config)
    assert specops("convert", encoder, "-o", tmp_path / "out").exit_code == 0


def test_a_damaged_configuration_is_rejected(encoder: Path, tmp_path: Path) -> None:
    (encoder / "config.json").write_text("{")
    assert specops("convert", encoder, "-o", tmp_path / "out").exit_code == 2
    assert not (tmp_path / "out").exists()


def _without_unet(folder: Path) -> None:
    (folder / "unet/openvino_model.xml").unlink()


def _without_scheduler(folder: Path) -> None:
    (folder / "scheduler/scheduler_config.json").unlink()
    (folder / "scheduler").rmdir()


def _of_another_unet(folder: Path) -> None:
    write(folder / "unet/config.json", {"in_channels": 9, "cross_attention_dim": WIDTH})


def _of_another_encoder(folder: Path) -> None:
    write(folder / "unet/config.json", {"in_channels": 4, "cross_attention_dim": 768})


def _of_another_vae(folder: Path) -> None:
    write(folder / "vae_decoder/config.json", {"latent_channels": 16})


def _of_nothing_known(folder: Path) -> None:
    write(folder / "model_index.json", {"_class_name": "Unknown", "scheduler": ["diffusers", "DDIMScheduler"]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_unet, "it names unet, but unet/openvino_model.xml does not exist"),
        (_without_scheduler, "it names scheduler, but this folder does not exist"),
        (_of_another_unet, "in_channels is 9, but sample"),
        (_of_another_encoder, "cross_attention_dim is 768, but encoder_hidden_states"),
        (_of_another_vae, "latent_channels is 16, but latent_sample"),
        (_of_nothing_known, "it names no known model"),
    ],
)
def test_an_inconsistent_pipeline_is_rejected(pipeline: Path, tmp_path: Path, change: Any, said: str) -> None:
    change(pipeline)
    result = specops("convert", pipeline, "-o", tmp_path / "out", "--json")
    assert result.exit_code == 2
    assert [said in problem["message"] for problem in as_json(result)["problems"]] == [True]
    assert not (tmp_path / "out").exists()


def test_all_problems_are_reported(pipeline: Path, tmp_path: Path) -> None:
    for change in (_without_scheduler, _of_another_unet, _of_another_vae):
        change(pipeline)
    assert len(as_json(specops("convert", pipeline, "-o", tmp_path / "out", "--json"))["problems"]) == 3


def test_a_component_that_does_not_convert_leaves_nothing(pipeline: Path, tmp_path: Path) -> None:
    broken = pipeline / "vae_decoder/openvino_model.xml"
    broken.write_text(broken.read_text().replace('type="Convolution"', 'type="Unheard"'))
    result = specops("convert", pipeline, "-o", tmp_path / "out", "--json")
    told = as_json(result)
    assert result.exit_code and told["failed"] == 3 and told["converted"] == 0
    messages = [problem["message"] for conversion in told["conversions"] for problem in conversion["problems"]]
    assert sum("but removed again because" in message for message in messages) == 2
    assert not (tmp_path / "out").exists()
    assert specops("convert", pipeline, "-o", tmp_path / "out", "--layout", "files").exit_code
    assert "unet/openvino_model.onnx" in files(tmp_path / "out")


@pytest.mark.parametrize("layout", ["hosts", "files"])
def test_a_model_that_does_not_convert_leaves_nothing(layout: str, encoder: Path, tmp_path: Path) -> None:
    path = encoder / "openvino_model.xml"
    text = path.read_text()
    path.write_text(text.replace('type="MatMul"', 'type="Unknown"'))
    told = json.loads(specops("convert", encoder, "-o", tmp_path / "out", "--layout", layout, "--json").stdout)
    assert told["failed"] == 1 and told["copied"] == [] and not (tmp_path / "out").exists()
    path.write_text(text)
    assert specops("convert", encoder, "-o", tmp_path / "out", "--layout", layout).exit_code == 0
    before = files(tmp_path / "out")
    path.write_text(text.replace('type="MatMul"', 'type="Unknown"'))
    write(encoder / "config.json", {"hidden_size": WIDTH, "more": 1})
    assert specops("convert", encoder, "-o", tmp_path / "out", "--layout", layout).exit_code == 1
    assert files(tmp_path / "out") == before and "more" not in (tmp_path / "out/config.json").read_text()


@pytest.mark.parametrize("there", [False, True])
def test_other_files_that_cannot_be_written_leave_nothing(there: bool, pipeline: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = {}
    if there:
        assert not specops("convert", pipeline, "-o", out, "--opset", "17").exit_code
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def without_space(copies: Any) -> None:
        next(iter(copies.values())).parent.mkdir(parents=True, exist_ok=True)
        raise OSError(errno.ENOSPC, "No space left on device", str(out / "model_index.json"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "copy_companions", without_space)
        result = specops("convert", pipeline, "-o", out)
    assert result.exit_code == 2 and "No space left on device" in result.stderr
    assert out.exists() == there
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_existing_files_remain(pipeline: Path, tmp_path: Path) -> None:
    assert not specops("convert", pipeline, "-o", tmp_path / "out", "--opset", "17").exit_code
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    broken = pipeline / "vae_decoder/openvino_model.xml"
    whole = broken.read_text()
    broken.write_text(whole.replace('type="Convolution"', 'type="Unheard"'))
    assert specops("convert", pipeline, "-o", tmp_path / "out").exit_code
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    broken.write_text(whole)
    assert not specops("convert", pipeline, "-o", tmp_path / "out").exit_code
    after = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert after.keys() == before.keys() and after != before


@pytest.mark.parametrize(("damage", "kept"), [("cut", False), ("unheard", True)])
def test_a_tokenizer_may_be_unsupported_but_not_damaged(damage: str, kept: bool, encoder: Path, tmp_path: Path) -> None:
    for end in (".xml", ".bin"):
        (encoder / f"openvino_tokenizer{end}").write_bytes((encoder / f"openvino_model{end}").read_bytes())
    xml, weights = encoder / "openvino_tokenizer.xml", encoder / "openvino_tokenizer.bin"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-4])
    else:
        xml.write_text(xml.read_text().replace('type="MatMul"', 'type="Unheard"'))
    assert specops("convert", encoder, "-o", tmp_path / "out").exit_code
    assert (tmp_path / "out/onnx/model.onnx").is_file() == kept
    assert (tmp_path / "out").exists() == kept


def test_an_output_folder_that_contains_the_model_folder(encoder: Path) -> None:
    """The other files are copied there too."""
    assert specops("convert", encoder, "-o", encoder.parent).exit_code == 0
    assert (encoder.parent / "onnx/model.onnx").is_file() and (encoder.parent / "config.json").is_file()


def test_an_output_folder_inside_the_model_folder(encoder: Path) -> None:
    for _ in range(2):  # the files of the first conversion are not copied
        assert specops("convert", encoder, "-o", encoder / "out").exit_code == 0
        assert {path.name for path in (encoder / "out").iterdir()} == {"config.json", "onnx", "tokenizer.json"}


@pytest.mark.parametrize("place", ["file/out", "link"])
def test_an_output_folder_that_cannot_be_created(encoder: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    told = as_json(specops("convert", encoder, "-o", tmp_path / place, "--json"))
    assert place in told["problems"][0]["file"] and len(told["problems"]) == 1


def test_new_parents_of_the_output_folder_are_removed(encoder: Path, tmp_path: Path) -> None:
    (encoder / "openvino_model.bin").write_bytes(b"")
    assert specops("convert", encoder, "-o", tmp_path / "new/out").exit_code == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"version https://git-lfs.github.com/spec/v1\n"])
def test_a_file_with_the_name_of_an_ir_is_one(encoder: Path, tmp_path: Path, content: bytes) -> None:
    """It is not left out, as it would be if it had another name."""
    save(encoder / "openvino_tokenizer.xml", {"x": [-1, WIDTH]}, {"ids": 2})
    (encoder / "openvino_model.xml").write_bytes(content)
    result = specops("convert", encoder, "-o", tmp_path / "out", "--json")
    assert result.exit_code == 2 and not (tmp_path / "out").exists()
    assert as_json(result)["failed"] == 2


def test_a_link_without_target(encoder: Path, tmp_path: Path) -> None:
    (encoder / "tokenizer_config.json").symlink_to("missing")
    (encoder / ".hidden").symlink_to("missing")
    told = as_json(specops("convert", encoder, "-o", tmp_path / "out", "--json"))
    (problem,) = told["problems"]
    assert "a link to a file that does not exist" in problem["message"] and problem["file"].endswith("tokenizer_config.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_named_pipes_are_left_out(encoder: Path, tmp_path: Path) -> None:
    for name in ("other.xml", "notes.txt", "other.onnx"):
        os.mkfifo(encoder / name)
    assert specops("convert", encoder, "-o", tmp_path / "out").exit_code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"config.json", "onnx", "tokenizer.json"}
    (encoder / "openvino_model.xml").unlink()
    os.mkfifo(encoder / "openvino_model.xml")
    assert specops("convert", encoder, "-o", tmp_path / "new").exit_code == 2 and not (tmp_path / "new").exists()
