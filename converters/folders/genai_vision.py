"""The folder of a vision-language model in the form that onnxruntime-genai loads.

The vision encoder computes the features of an image. The embedding model replaces the embeddings of image tokens with these
features. The inputs of the decoder are the embeddings and its cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.convert import Conversion
from converters.folders.contradictions import check_configuration
from converters.folders.genai import (
    CONFIG,
    SINGLE,
    GenaiFolder,
    beams_not_applied,
    genai_config,
    needed_library,
    remarks_of,
    session_options,
    write_configurations,
)
from converters.folders.genai_types import check_ports, check_states
from converters.folders.image_processing import CONFIG as IMAGES
from converters.folders.image_processing import ImageProcessing
from converters.folders.language_model import LANGUAGE, TEXT_EMBEDDINGS, read_configurations
from converters.folders.layouts import read_object
from converters.folders.mistral_vision import MistralVision
from converters.folders.path_errors import AS_WRITTEN, path_error
from converters.folders.phi_vision import SIZES, PhiVision
from converters.folders.qwen_vision import GRID, PATCHES, QwenVision
from converters.folders.stated import Stated, is_integer, shown
from converters.folders.whole import all_or_none
from converters.options import KvCache, LogitsOf
from converters.source import Emitted
from onnx_specops.building import Builder, new_value
from onnx_specops.replacing import replace_value

VISION_EMBEDDINGS = "openvino_vision_embeddings_model.xml"
MERGER, POSITIONS = "openvino_vision_embeddings_merger_model.xml", "openvino_vision_embeddings_pos_model.xml"
PROJECTOR, PROJECTION = "openvino_multi_modal_projector_model.xml", "openvino_vision_projection_model.xml"
DECODER, EMBEDDING, VISION = "text.onnx", "embedding.onnx", "vision.onnx"

_IDS, _EMBEDDINGS, _FEATURES, _TYPES = "input_ids", "inputs_embeds", "image_features", "token_type_ids"
_POSITIONS, _MASK = "position_ids", "attention_mask"
_LAYERS, _PLACES = "deepstack_visual_embeds", "visual_pos_masks"
_GEMMA_TOKENS = 256  # the tokens of an image; onnxruntime-genai's processor supports no other number


@dataclass(frozen=True)
class _Vision:
    """The form of a model's vision encoder.

    Attributes:
        kind: the model's type in onnxruntime-genai.
        model: its IR.
        adapt: changes the emitted model to onnxruntime-genai's inputs and outputs.
        images: the content of the processor's configuration.
        settings: the content of genai_config.json's section ``vision``.
        tokens: the token ids in genai_config.json's section ``model``.
        layers: the number of layers of the decoder, after the embeddings, that add features of images.
    """

    kind: str
    model: str
    adapt: Callable[[Emitted], None]
    images: dict[str, Any]
    settings: dict[str, Any]
    tokens: dict[str, Any]
    layers: int = 0


def write_vision(
    folder: Path,
    target: Path,
    convert: Callable[..., Conversion],
    kv_cache: KvCache | None = None,
    logits: LogitsOf | None = None,
    provider: str | None = None,
) -> GenaiFolder:
    """Convert a vision-language model, and write the files that onnxruntime-genai needs.

    Args:
        folder: the folder that optimum-intel wrote.
        target: the output folder.
        convert: `converters.convert.convert_with`, with the user's options and those that are passed.
        kv_cache, logits, provider: see `converters.folders.genai.write_genai`.

    Raises:
        ConversionError: onnxruntime-genai does not have this type, files are missing or contradict each other, or a model
            does not support this form.
        OSError: a file cannot be written.
    """
    stated = read_object(folder / "config.json") if (folder / "config.json").is_file() else {}
    source = read_configurations(folder)
    kind = stated.get("model_type")
    if not isinstance(kind, str) or kind not in _KINDS:
        *others, last = _KINDS
        message = f"onnxruntime-genai has no vision-language model of the type {shown(kind)}"
        message += f"; --genai supports {', '.join(others)} and {last}"
        raise path_error(folder / "config.json", message, "convert it without --genai")
    for name in (LANGUAGE, TEXT_EMBEDDINGS, VISION_EMBEDDINGS):
        _part(folder, name)
    processing = ImageProcessing(folder)
    vision = _KINDS[kind](folder, stated, processing)
    negative = kind in _NEGATIVE
    image_token = -1 if negative else _token(folder, stated, "image_token_id", "image_token_index")
    plain: dict[str, Any] = {"form": "openvino", "kv_cache": None, "logits": None}
    with all_or_none(target, (DECODER, EMBEDDING, VISION)):
        model, report = convert(
            folder / LANGUAGE,
            target / DECODER,
            adapt=partial(_take_embeddings, image_token=image_token, layers=vision.layers),
            form="genai",
            positions=source.positions,
            kv_cache=kv_cache,
            logits=logits,
        )
        decoder = report.decoder
        assert decoder is not None
        inputs = {value.name: value for value in model.graph.input}
        if _EMBEDDINGS not in inputs:
            raise path_error(folder / LANGUAGE, f"it has no input {_EMBEDDINGS}", AS_WRITTEN)
        width = inputs[_EMBEDDINGS].type.tensor_type.shape.dim[-1].dim_value
        check_states(folder / LANGUAGE, kind, decoder)
        vocabulary = check_configuration(source, decoder, model)
        source.check_vocabulary(vocabulary)
        if not negative:
            _check_tokens(folder, kind, {"image_token_id": image_token, **vision.tokens}, vocabulary)
        embed = partial(_take_features, image_token=image_token, width=width, path=folder / TEXT_EMBEDDINGS)
        convert(folder / TEXT_EMBEDDINGS, target / EMBEDDING, adapt=embed, **plain)
        convert(folder / vision.model, target / VISION, adapt=vision.adapt, **plain)
        check_ports(folder / LANGUAGE, model, [_EMBEDDINGS, _IDS], 3 if vision.kind.startswith("qwen") else 2)
        library = needed_library(decoder)
        config = genai_config(source, decoder, list(inputs), vocabulary, library, DECODER, provider)
        config["search"] |= SINGLE
        config["model"] |= {"type": vision.kind, **({} if negative else {"image_token_id": image_token}), **vision.tokens}
        if "video_token_id" in vision.tokens and source.token("pad_token_id") is None:
            # tokens of the prompt that equal it are masked, and the default, the end token, can be among them
            config["model"]["pad_token_id"] = vision.tokens["video_token_id"]
        config["model"]["decoder"]["hidden_size"] = width  # of embeddings and features
        config["model"]["embedding"] = {
            "filename": EMBEDDING,
            "inputs": {_IDS: _IDS, _FEATURES: _FEATURES},
            "outputs": {_EMBEDDINGS: _EMBEDDINGS},
            "session_options": session_options(provider=provider),
        }
        config["model"]["vision"] = {
            "filename": VISION,
            "config_filename": IMAGES,
            **vision.settings,
            "outputs": {_FEATURES: _FEATURES},
            "session_options": session_options(provider=provider),
        }
        write_configurations(folder, {target / CONFIG: config, target / IMAGES: vision.images}, target, library)
    remarks = remarks_of(source, decoder, target, library)
    remarks += [note for note in beams_not_applied(source) if note not in remarks]
    if processing.not_applied:
        remarks.append(f"onnxruntime-genai does not apply {', '.join(processing.not_applied)} of {processing.path.name}")
    return GenaiFolder(report, remarks, [DECODER, EMBEDDING, VISION])


def _gemma(folder: Path, config: Mapping[str, Any], processing: ImageProcessing) -> _Vision:
    """Return the vision encoder of Gemma 3: images of one size, with 256 tokens each."""
    size = _vision_config(folder, config).size("image_size", 224)

    def adapt(emitted: Emitted) -> None:
        graph = emitted.model.graph
        features = graph.outputs[0].shape
        if len(graph.inputs) != 1 or len(graph.outputs) != 1 or features is None or len(features) != 3:
            message = "it does not compute the features [images, tokens, width] of images only"
            raise path_error(folder / VISION_EMBEDDINGS, message, "convert it without --genai")
        if features[1] != _GEMMA_TOKENS:
            message = f"an image has {features[1]} tokens; onnxruntime-genai requires {_GEMMA_TOKENS}"
            raise path_error(folder / VISION_EMBEDDINGS, message, "convert it without --genai")
        graph.inputs[0].name, graph.outputs[0].name = PATCHES, _FEATURES

    settings = {"inputs": {PATCHES: PATCHES}}
    return _Vision("gemma3", VISION_EMBEDDINGS, adapt, processing.fixed_size(size), settings, {})


def _qwen(folder: Path, config: Mapping[str, Any], processing: ImageProcessing) -> _Vision:
    """Return the vision encoder of Qwen2-VL and Qwen2.5-VL: images of any size, in patches."""
    return _in_patches("qwen2_5_vl", folder, config, processing, 14)


def _qwen3(folder: Path, config: Mapping[str, Any], processing: ImageProcessing) -> _Vision:
    """Return the vision encoder of Qwen3-VL: with a table of positions, and features for several layers of the decoder."""
    stated = _vision_config(folder, config)
    layers = stated.values.get("deepstack_visual_indexes", [8, 16, 24])
    if not isinstance(layers, list):
        raise stated.invalid("deepstack_visual_indexes", "a list of layers")
    return _with_table("qwen3_vl", folder, config, processing, len(layers))


def _qwen3_5(folder: Path, config: Mapping[str, Any], processing: ImageProcessing) -> _Vision:
    """Return the vision encoder of Qwen3.5, with or without experts: with a table of positions."""
    return _with_table(str(config["model_type"]), folder, config, processing, 0)


def _with_table(kind: str, folder: Path, config: Mapping[str, Any], processing: ImageProcessing, layers: int) -> _Vision:
    """Return the vision encoder of a Qwen with a table of positions; see `_in_patches`."""
    table = _part(folder, POSITIONS)
    side = math.isqrt(_vision_config(folder, config).size("num_position_embeddings", 2304))
    return _in_patches(kind, folder, config, processing, 16, table=table, side=side, layers=layers)


def _in_patches(
    kind: str, folder: Path, config: Mapping[str, Any], processing: ImageProcessing, size: int, **more: Any
) -> _Vision:
    """Return the vision encoder of a Qwen.

    Args:
        kind: its type in onnxruntime-genai.
        folder, config, processing: its folder, and the configurations in it.
        size: the default size of a patch.
        more: additional attributes of `QwenVision`.
    """
    merger = _part(folder, MERGER)
    settings = _vision_config(folder, config)
    merge, patch = settings.size("spatial_merge_size", 2), settings.size("patch_size", size)
    window = settings.size("window_size", 8 * patch)
    encoder = QwenVision(folder / VISION_EMBEDDINGS, merge, max(window // merge // patch, 1), **more)

    def adapt(emitted: Emitted) -> None:
        encoder.complete(emitted, merger)
        emitted.model.graph.outputs[0].name = _FEATURES

    names = ("vision_start_token_id", "video_token_id")
    tokens = {name: _token(folder, config, name) for name in names}
    stated = {
        "spatial_merge_size": merge,
        "patch_size": patch,
        "window_size": window,
        "tokens_per_second": settings.number("tokens_per_second", 1.0),
        "inputs": {PATCHES: PATCHES, GRID: GRID},
    }
    return _Vision(kind, MERGER, adapt, processing.patches(settings, size), stated, tokens, encoder.layers)


def _mistral(folder: Path, config: Mapping[str, Any], processing: ImageProcessing) -> _Vision:
    """Return the vision encoder of Mistral 3: images of any size."""
    projector = _part(folder, PROJECTOR)
    patch = _vision_config(folder, config).size("patch_size", 16)
    merge = Stated(folder / "config.json", config).size("spatial_merge_size", 2)
    encoder = MistralVision(projector, patch, merge)

    def adapt(emitted: Emitted) -> None:
        encoder.complete(emitted, folder / VISION_EMBEDDINGS)
        emitted.model.graph.inputs[0].name, emitted.model.graph.outputs[0].name = PATCHES, _FEATURES

    stated = {"spatial_merge_size": merge, "patch_size": patch, "inputs": {PATCHES: PATCHES}}
    return _Vision("mistral3", VISION_EMBEDDINGS, adapt, processing.whole(patch, merge), stated, {})


def _phi(folder: Path, config: Mapping[str, Any], processing: ImageProcessing) -> _Vision:
    """Return the vision encoder of Phi-3 vision: images in crops."""
    encoder = PhiVision(_part(folder, PROJECTION), config, folder / "config.json")

    def adapt(emitted: Emitted) -> None:
        encoder.complete(emitted, folder / VISION_EMBEDDINGS)
        emitted.model.graph.outputs[0].name = _FEATURES

    settings = {"inputs": {PATCHES: PATCHES, SIZES: SIZES}}
    return _Vision("phi3v", VISION_EMBEDDINGS, adapt, processing.crops(), settings, {})


_NEGATIVE = {"phi3_v"}
"""The types in which negative numbers represent the tokens of images."""

_KINDS: dict[str, Callable[[Path, Mapping[str, Any], ImageProcessing], _Vision]] = {
    "gemma3": _gemma,
    "mistral3": _mistral,
    "phi3_v": _phi,
    "qwen2_vl": _qwen,
    "qwen2_5_vl": _qwen,
    "qwen3_5": _qwen3_5,
    "qwen3_5_moe": _qwen3_5,
    "qwen3_vl": _qwen3,
}


_PLACEHOLDERS = {
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
    "vision_start_token_id": "<|vision_start|>",
}
_IMAGES = {"gemma3": "<image_soft_token>", "mistral3": "[IMG]"}
"""The texts of tokens that onnxruntime-genai's processors add to a prompt, of Qwen and of other types."""


def _vision_config(folder: Path, config: Mapping[str, Any]) -> Stated:
    return Stated(folder / "config.json", config).section("vision_config")


def _part(folder: Path, name: str) -> Path:
    """Return the path of an IR of the folder."""
    if not (folder / name).is_file():
        raise path_error(folder, f"it contains no {name}", AS_WRITTEN)
    return folder / name


def _token(folder: Path, config: Mapping[str, Any], *names: str) -> int:
    stated = Stated(folder / "config.json", config)
    name = next((name for name in names if config.get(name) is not None), None)
    if name is None:
        raise path_error(stated.path, f"it has no {names[0]}", "use the config.json of the model")
    if not is_integer(config[name]) or config[name] < 0:
        raise stated.invalid(name, "a token")
    return int(config[name])


def _check_tokens(folder: Path, kind: str, tokens: Mapping[str, int], vocabulary: int) -> None:
    """Raise `ConversionError` if a token is outside the vocabulary, or differs from that of the tokenizer."""
    path = folder / "tokenizer.json"
    added = read_object(path).get("added_tokens") if path.is_file() else None
    ids = {one.get("content"): one.get("id") for one in added or () if isinstance(one, dict)}
    texts = {**_PLACEHOLDERS, "image_token_id": _IMAGES.get(kind, _PLACEHOLDERS["image_token_id"])}
    for name, token in tokens.items():
        message = f"its {name} is {token}, but "
        if vocabulary and token >= vocabulary:
            message += f"the model has tokens from 0 to {vocabulary - 1}"
        elif (found := ids.get(texts.get(name))) not in (None, token):
            message += f"{texts[name]} is the token {found} of tokenizer.json"
        else:
            continue
        raise path_error(folder / "config.json", message, "use the config.json of the model")


def _take_embeddings(emitted: Emitted, image_token: int, layers: int = 0) -> None:
    """Replace the inputs that onnxruntime-genai does not pass to a decoder.

    ``token_type_ids`` is computed from ``input_ids``. The features that further layers add follow the embeddings in
    ``inputs_embeds``. They are zero for text. The positions of text before frame, row and column are computed from
    ``attention_mask``.

    Args:
        emitted: the emitted decoder; changed in place.
        image_token: the token of images.
        layers: the number of layers that add features.
    """
    graph = emitted.model.graph
    inputs = {value.name: value for value in graph.inputs}
    op = Builder(graph, root=Builder.of_existing(graph), before=next(iter(graph)))
    op.scope = "inputs"
    if (types := inputs.get(_TYPES)) is not None:
        graph.inputs.remove(types)
        if types.uses():
            ids = new_value(ir.DataType.INT64, None, _IDS)
            ids.shape = types.shape
            graph.inputs.append(ids)
            assert types.dtype is not None
            replace_value(types, op.Cast(op.Equal(ids, image_token), to=types.dtype))
    positions, mask = inputs.get(_POSITIONS), inputs.get(_MASK)
    if mask is not None and positions is not None and positions.shape is not None and positions.shape[0] == 4:
        three = new_value(positions.dtype, None, _POSITIONS)
        three.shape = ir.Shape([3, *positions.shape[1:]])
        graph.inputs[graph.inputs.index(positions)] = three
        positions.name = op.unique("positions")
        counted = op.Sub(op.CumSum(mask, np.int64(1)), np.int64(1))
        own = op.Slice(counted, op.Neg(op.Shape(three, start=2)), [np.iinfo(np.int64).max], [1])
        replace_value(positions, op.Concat(op.Unsqueeze(own, [0]), three, axis=0))
    if layers and inputs.keys() >= {_EMBEDDINGS, _LAYERS, _PLACES}:
        embeddings = inputs[_EMBEDDINGS]
        assert embeddings.shape is not None and embeddings.dtype is not None
        *rows, width = embeddings.shape
        assert isinstance(width, int)
        whole = new_value(embeddings.dtype, None, _EMBEDDINGS)
        whole.shape = ir.Shape([*rows, width * (1 + layers)])
        own, added = op.Split(whole, [width, width * layers], axis=2, outputs=2)
        ordered = op.Transpose(op.Reshape(added, [-1, layers, width]), perm=[1, 0, 2])
        everywhere = op.Expand(np.array(True), op.Shape(whole, end=2))
        graph.inputs.append(whole)
        embeddings.name = op.unique("embeddings")
        for old, new in ((embeddings, own), (inputs[_LAYERS], ordered), (inputs[_PLACES], everywhere)):
            graph.inputs.remove(old)
            replace_value(old, new)


def _take_features(emitted: Emitted, image_token: int, width: int, path: Path) -> None:
    """Replace the embeddings of an image's tokens with its features.

    The features of all images are ``[tokens, width]`` or ``[images, tokens, width]`` for the prompt, and empty afterwards.
    If there are fewer of them than tokens of images, Gather raises an error. Zeros follow shorter embeddings of text. A
    negative image token represents all negative tokens.
    """
    graph = emitted.model.graph
    shapes = [value.shape for value in (*graph.inputs, *graph.outputs)]
    if len(graph.inputs) != 1 or len(graph.outputs) != 1 or [shape and len(shape) for shape in shapes] != [2, 3]:
        message = "it does not compute the embeddings [batch, tokens, width] of tokens [batch, tokens] only"
        raise path_error(path, message, "convert it without --genai")
    embeddings = graph.outputs[0]
    (ids,) = graph.inputs
    negative = image_token < 0
    if negative:
        before = Builder(graph, root=Builder.of_existing(graph), before=next(iter(graph)))
        before.scope = "text"
        given, ids = ids, new_value(ids.dtype, None, _IDS)
        ids.shape = given.shape
        graph.inputs[0] = ids
        given.name = before.unique("tokens")
        replace_value(given, before.Max(ids, np.int64(0)))
    features = new_value(embeddings.dtype, None, _FEATURES)
    graph.inputs.append(features)
    ids.name = _IDS
    op = Builder.of_existing(graph)
    op.scope = "image"
    own = None if embeddings.shape is None else embeddings.shape[-1]
    text = embeddings
    if isinstance(own, int) and own < width:
        text = op.Pad(embeddings, [0, 0, 0, 0, 0, width - own])
    is_image = op.Less(ids, np.int64(0)) if negative else op.Equal(ids, image_token)
    counted = op.Cast(is_image, to=ir.DataType.INT64)
    table = op.Reshape(features, [-1, width])
    count = op.Shape(table, end=1)
    places = op.Reshape(op.CumSum(op.Reshape(counted, [-1]), np.int64(0)), op.Shape(ids))
    used = op.And(is_image, op.Greater(count, np.int64(0)))
    places = op.Where(used, places, np.int64(0))  # 0: the embedding of the token
    whole = op.Concat(np.zeros((1, width), np.float32), table, axis=0)
    result = op.Where(op.Unsqueeze(used, [2]), op.Gather(whole, places), text)
    embeddings.name, result.name = op.unique("embeddings"), _EMBEDDINGS
    graph.outputs[0] = result
