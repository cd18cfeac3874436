"""The programs that load converted folders, and OpenVINO's results for the same inputs."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.folders import hybrids, speech, transcripts, vision
from tests.folders.subjects import ENCODERS, PATCHES, TEXTS

HERE = Path(__file__).parent
INSTALL = "pip install '.[hosts]'"
INSTALL_JAVASCRIPT = "npm ci --ignore-scripts --prefix tests/folders"
CPU = {"INFERENCE_PRECISION_HINT": "f32"}
ARRAYS = dict[str, np.ndarray]
RATE = 16000


@dataclass(frozen=True)
class Result:
    """The difference between a host and OpenVINO.

    Attributes:
        compared: the kind of values that were compared.
        error: the largest difference, in the unit that ``compared`` names.
        most: the tolerance.
        loaded: the class that loaded the folder.
    """

    compared: str
    error: float
    most: float
    loaded: str

    @property
    def agrees(self) -> bool:
        return self.error <= self.most


def missing(host: str) -> str:
    """Return why a host is not available and how to install it; ``""`` if it is available."""
    if host == "Transformers.js":
        if shutil.which("node") is None:
            return "Node is not installed"
        there = (HERE / "node_modules/@huggingface/transformers").is_dir()
        return "" if there else f"@huggingface/transformers is not installed: {INSTALL_JAVASCRIPT}"
    needed = {
        "optimum-onnx": ("optimum.onnxruntime", "optimum.intel"),
        "sentence-transformers": ("sentence_transformers", "optimum.onnxruntime", "optimum.intel"),
        "transformers": ("transformers", "torch", "compressed_tensors", "optimum.intel"),
        "diffusers": ("diffusers", "optimum.onnxruntime", "optimum.intel"),
        "onnxruntime-genai": ("onnxruntime_genai", "transformers", "optimum.intel"),
        "onnx_specops": ("openvino_genai", "optimum.intel"),
    }[host]
    lacking = [name for name in needed if not _is_there(name)]
    return f"{' and '.join(lacking)} cannot be imported: {INSTALL}" if lacking else ""


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def inputs(name: str, folder: Path) -> ARRAYS:
    """Return the inputs of an encoder; texts are tokenized by the folder's tokenizer."""
    reads = ENCODERS[name].reads
    draw = np.random.default_rng(1)
    given: ARRAYS = {}
    if reads in ("text", "both"):
        import transformers

        tokens = transformers.AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="np")
        given |= {key: value.astype(np.int64) for key, value in tokens.items()}
    if reads in ("image", "both"):
        given["pixel_values"] = draw.standard_normal((2, 3, 32, 32)).astype(np.float32)
    if reads == "sound":
        given["input_values"] = draw.standard_normal((2, RATE // 4)).astype(np.float32)
    return given


def by_openvino(model: Path, given: Mapping[str, np.ndarray]) -> ARRAYS:
    """Return the outputs of an IR by name."""
    import openvino as ov

    compiled = ov.Core().compile_model(model, "CPU", CPU)
    taken = {port.any_name: given[port.any_name] for port in compiled.inputs}
    found = compiled(taken)
    return {port.any_name: found[port] for port in compiled.outputs}


def distance(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> float:
    """Return the largest relative distance (L2) of any output; infinite for different shapes or no common name."""
    worst = -1.0
    for key in found.keys() & expected.keys():
        if found[key].shape != expected[key].shape:
            return float("inf")
        norm = float(np.linalg.norm(expected[key])) or 1.0
        worst = max(worst, float(np.linalg.norm(found[key].astype(np.float64) - expected[key])) / norm)
    return worst if worst >= 0 else float("inf")


def in_optimum(name: str, source: Path, target: Path) -> Result:
    """Run ``ORTModelFor...`` of the same task."""
    from optimum import onnxruntime as hosts

    kind = getattr(hosts, f"ORTModelFor{ENCODERS[name].task}")
    given = inputs(name, source)
    found = kind.from_pretrained(target)(**given)
    expected = by_openvino(source / "openvino_model.xml", given)
    return Result("outputs", distance({k: np.asarray(v) for k, v in found.items()}, expected), 1e-5, kind.__name__)


def in_optimum_without_states(name: str, source: Path, target: Path, beams: int = 1) -> Result:
    """Generate tokens for two prompts, one of them padded, with the caches of a model in `STATELESS`."""
    import torch
    from optimum import intel, onnxruntime

    pair = name.startswith("t5")
    task = "Seq2SeqLM" if pair else "CausalLM"
    files = {f"{part}_file_name": f"openvino_{part}_model.onnx" for part in ("encoder", "decoder")} if pair else {}
    more = {"decoder_with_past_file_name": "openvino_decoder_with_past_model.onnx", "use_merged": False} if pair else {}
    models = (
        getattr(intel, f"OVModelFor{task}").from_pretrained(source, ov_config=CPU),
        getattr(onnxruntime, f"ORTModelFor{task}").from_pretrained(target, **files, **more),
    )
    ids = torch.tensor([[5, 17, 200, 33, 33, 98], [9, 8, 7, 6, 5, 4]])
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0 if pair else 1
    mask[1, :2] = 1 if pair else 0
    asked = {"min_new_tokens": 12, "max_new_tokens": 12, "do_sample": False, "num_beams": beams, "pad_token_id": 0}
    expected, found = (model.generate(input_ids=ids, attention_mask=mask, **asked) for model in models)
    compared = "tokens, greedy" if beams == 1 else f"tokens, {beams} beams"
    return Result(compared, float((expected != found).sum()), 0.0, type(models[1]).__name__)


def in_optimum_of_patches(source: Path, target: Path, beams: int = 1) -> Result:
    """Generate the tokens of a text about an image, which Pix2Struct reads as patches with their rows and columns."""
    import torch
    from optimum import intel, onnxruntime

    files = {f"{part}_file_name": f"openvino_{part}_model.onnx" for part in ("encoder", "decoder", "decoder_with_past")}
    models = (
        intel.OVModelForPix2Struct.from_pretrained(source, ov_config=CPU),
        onnxruntime.ORTModelForPix2Struct.from_pretrained(target, use_merged=False, use_io_binding=False, **files),
    )
    width = models[0].config.vision_config.patch_embed_hidden_size
    patches = np.random.default_rng(1).standard_normal((1, PATCHES, 2 + width)).astype(np.float32)
    side = int(PATCHES**0.5)
    patches[..., 0], patches[..., 1] = np.repeat(np.arange(side), side) + 1, np.tile(np.arange(side), side) + 1
    asked = {"min_new_tokens": 12, "max_new_tokens": 12, "do_sample": False, "num_beams": beams}
    given = {"flattened_patches": torch.from_numpy(patches), "attention_mask": torch.ones((1, PATCHES), dtype=torch.int64)}
    expected, found = (model.generate(**given, **asked) for model in models)
    compared = "tokens, greedy" if beams == 1 else f"tokens, {beams} beams"
    return Result(compared, float((expected != found).sum()), 0.0, type(models[1]).__name__)


def in_sentence_transformers(name: str, source: Path, target: Path) -> Result:
    """Compare embeddings of texts, or scores of pairs, with ``backend="onnx"`` and ``backend="openvino"``."""
    import sentence_transformers as host

    more: dict[str, Any] = {"device": "cpu", "local_files_only": True}
    cpu = {"ov_config": CPU}
    if name == "xlm-roberta-reranker":
        pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[1])]
        expected = host.CrossEncoder(str(source), backend="openvino", model_kwargs=cpu, **more).predict(pairs)
        found = host.CrossEncoder(str(target), backend="onnx", **more).predict(pairs)
        return Result("scores", distance({"": found}, {"": expected}), 1e-5, "CrossEncoder")
    models = (
        host.SentenceTransformer(str(source), backend="openvino", model_kwargs=cpu, **more),
        host.SentenceTransformer(str(target), backend="onnx", **more),
    )
    ways = ("encode_query", "encode_document") if name.endswith("-router") else ("encode",)
    expected, found = ({way: getattr(model, way)(TEXTS) for way in ways} for model in models)
    compared = "embeddings of queries and documents" if len(ways) == 2 else "embeddings"
    return Result(compared, distance(found, expected), 1e-5, "SentenceTransformer")


DTYPES = {"fp32": 1e-5, "fp16": 1e-2, "q8": 0.2, "q4": 2.0}
"""Transformers.js' types with tolerances; 4-bit random weights differ a lot from OpenVINO."""


def in_transformers_js(name: str, source: Path, target: Path, dtype: str = "fp32") -> Result:
    """Run the class that config.json names in Transformers.js under Node, and compare its token ids and outputs."""
    told = ENCODERS[name]
    architecture = json.loads((target / "config.json").read_text())["architectures"][0]
    given = inputs(name, source)
    expected = by_openvino(source / "openvino_model.xml", given)
    document: dict[str, Any] = {"texts": TEXTS} if told.reads in ("text", "both") else {}
    found = _in_node(target, architecture, dtype, {**document, "tensors": given})
    mask = given.get("attention_mask")
    if (tokens := found.pop("tokens", None)) is not None and not np.array_equal(tokens, given["input_ids"]):
        raise RuntimeError(f"{tokens} are the tokens, not {given['input_ids']}")
    if dtype != "fp32" and mask is not None:  # padding positions are meaningless, and 16 bits round them differently
        for outputs in (found, expected):
            padded = [key for key, value in outputs.items() if value.shape[:2] == mask.shape]
            outputs |= {key: outputs[key][mask.astype(bool)] for key in padded}
    most = DTYPES[dtype]
    compared = "tokens, outputs" if "texts" in document else "outputs"
    return Result(f"{compared} ({dtype})", distance(found, expected), most, architecture)


def masks_in_transformers_js(source: Path, target: Path) -> Result:
    """Run both parts of Segment Anything in Transformers.js, for an image and two points, and compare the outputs."""
    pixels = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
    points = {"input_points": np.array([[[[20, 30], [5, 50]]]], np.float32), "input_labels": np.array([[[1, 0]]])}
    given = {"pixel_values": pixels, **points}
    features = by_openvino(source / "openvino_vision_encoder.xml", given)
    expected = by_openvino(source / "openvino_prompt_encoder_mask_decoder.xml", {**features, **points})
    found = _in_node(target, "SamModel", "fp32", {"tensors": given})
    return Result("masks (fp32)", distance(found, expected), DTYPES["fp32"], "SamModel")


def _in_node(target: Path, architecture: str, dtype: str, document: Mapping[str, Any]) -> ARRAYS:
    """Run a folder in Transformers.js, with texts and the tensors of floats, or with all tensors if there are no texts."""
    tensors = {
        key: {"type": str(value.dtype), "dims": value.shape, "data": value.ravel().tolist()}
        for key, value in document["tensors"].items()
        if value.dtype == np.float32 or "texts" not in document
    }
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "inputs.json"
        path.write_text(json.dumps({**document, "tensors": tensors}))
        command = ["node", HERE / "in_node.mjs", target, architecture, dtype, path]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, encoding="utf-8", timeout=300)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    printed = json.loads(done.stdout.splitlines()[-1])
    return {key: np.array(value["data"], np.float64).reshape(value["dims"]) for key, value in printed.items()}


_OF_PIPELINES: dict[str, dict[str, Any]] = {
    "sana": {"complex_human_instruction": None, "use_resolution_binning": False, "max_sequence_length": 16},
}
"""Further arguments of pipelines: those without which images would be large."""


def in_diffusers(name: str, source: Path, target: Path, task: str = "text2image") -> Result:
    """Compare images from the same seed, by optimum-intel's pipeline and optimum-onnx's."""
    import torch
    from optimum import intel, onnxruntime

    kinds = {"text2image": "Text2Image", "image2image": "Image2Image", "inpainting": "Inpainting"}
    theirs = getattr(intel, f"OVPipelineFor{kinds[task]}")
    ours = getattr(onnxruntime, f"ORTPipelineFor{kinds[task]}")
    asked: dict[str, Any] = {"prompt": "a sailing ship", "num_inference_steps": 4, "output_type": "np"}
    asked |= {"height": 32, "width": 32} if task != "image2image" else {}
    asked |= _OF_PIPELINES.get(name, {})
    picture = np.random.default_rng(1).random((1, 32, 32, 3), np.float32)
    if task != "text2image":
        asked |= {"image": picture, "strength": 0.75}
    if task == "inpainting":
        asked["mask_image"] = (picture[..., :1] > 0.5).astype(np.float32)
    found = []
    for pipeline in (theirs.from_pretrained(source, ov_config=CPU), ours.from_pretrained(target)):
        pipeline.set_progress_bar_config(disable=True)
        found.append(pipeline(**asked, generator=torch.Generator().manual_seed(3)).images)
        kind = type(pipeline).__name__
    return Result(f"images, of 255 ({task})", float(np.abs(found[0] - found[1]).max()) * 255, 2.0, kind)


def in_transformers(source: Path, target: Path) -> Result:
    """Compare the logits of ``AutoModelForCausalLM`` with the weights of ``specops weights``."""
    from converters.folders.weights import check_weights

    architecture = json.loads((target / "config.json").read_text())["architectures"][0]
    return Result("logits", check_weights(source, target), 1e-4, architecture)


def in_genai(source: Path, target: Path, search: str = "greedy") -> Result:
    """Compare the tokens of a Whisper model for the same features; the error is the number of different tokens."""
    expected, found = speech.in_openvino(source)[search], speech.in_genai(target)[search]
    differing = sum(a != b for one, other in zip(expected, found, strict=True) for a, b in zip(one, other, strict=True))
    compared = "tokens, greedy" if search == "greedy" else f"tokens, {speech.BEAMS} beams"
    return Result(compared, float(differing), 0.0, "Model")


def in_genai_with_states(source: Path, target: Path, search: str = "greedy") -> Result:
    """Compare the tokens of a model with other states than caches; the error is the number of different tokens."""
    compared = "tokens, greedy" if search == "greedy" else f"tokens, {hybrids.BEAMS} beams"
    return Result(compared, float(hybrids.differing(source, target, search)), 0.0, "Model")


def in_speech_model(source: Path, target: Path) -> Result:
    """Compare the transcripts of recordings with those of OpenVINO GenAI; the error is the number of different ones."""
    differing = transcripts.differing(transcripts.in_openvino(source), transcripts.in_onnx(target))
    return Result("texts of recordings", float(len(differing)), 0.0, "SpeechModel")


def in_genai_with_images(name: str, source: Path, target: Path) -> Result:
    """Compare the tokens of a vision-language model, for the images that transformers prepares."""
    expected, found = vision.in_openvino(source, name), vision.in_genai(target, name)
    differing = sum(
        abs(len(one) - len(other)) + sum(a != b for a, b in zip(one, other, strict=False))
        for one, other in zip(expected, found, strict=True)
    )
    return Result("tokens, greedy", float(differing), 0.0, "Model")


def as_pipeline(name: str, source: Path, target: Path) -> Result:
    """Compare the texts for images with those of OpenVINO GenAI; the error is the number of different ones."""
    texts, loaded = {
        "llava": (vision.texts_in_parts, "InferenceSession"),
        "phi3-v": (vision.texts_in_model, "VisionLanguageModel"),
    }.get(name, (vision.texts_in_genai, "MultiModalProcessor"))
    expected, found = vision.texts_in_pipeline(source, name), texts(target, name)
    differing = sum(one != other for one, other in zip(expected, found, strict=True))
    return Result("texts of VLMPipeline", float(differing), 0.0, loaded)


def in_genai_processor(name: str, source: Path, target: Path) -> Result:
    """Compare the tokens and images that onnxruntime-genai's processor prepares with those of transformers.

    Both round to 256 levels after each pass of a resize, and need not take the passes in the same order.
    """
    import onnxruntime_genai as genai

    model = genai.Model(str(target))
    deviation = json.loads((source / "preprocessor_config.json").read_text())["image_std"]
    worst = 0.0
    for request in vision.requests(name, smooth=True):
        named = vision.processed_by_genai(model, request)
        found = {key: named[key].as_numpy() for key in named.keys()}  # noqa: SIM118
        for key, expected in vision.prepared(source, request).items():
            if key == "token_type_ids":  # computed from the tokens by the decoder
                continue
            array = _without_padding(found) if key == "pixel_values" else found[key]
            if array.shape != expected.shape or (key != "pixel_values" and not np.array_equal(array, expected)):
                worst = float("inf")
            elif key == "pixel_values":
                worst = max(worst, float(np.abs(array - expected).max()) * 255 * max(deviation))
    return Result("prompts, images of 255", worst, 3.0, "MultiModalProcessor")


def _without_padding(found: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return images without the padding of smaller images, in patches, to the number of patches of the largest."""
    pixels, grids = found["pixel_values"], found.get("image_grid_thw")
    if grids is None:
        return pixels
    images = pixels.reshape(len(grids), -1, pixels.shape[-1])
    return np.concatenate([image[: grid.prod()] for image, grid in zip(images, grids, strict=True)])
