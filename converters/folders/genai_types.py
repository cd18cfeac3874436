"""The types of decoders in onnxruntime-genai, and the structures of the other types of transformers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import onnx

from converters.folders.language_model import LanguageModel
from converters.folders.layouts import CONFIG
from converters.folders.path_errors import path_error
from converters.folders.stated import shown
from converters.passes.attention import PAST, PAST_STATE, Decoder

# The types that onnxruntime-genai treats like any other decoder.
_TYPES = {
    "chatglm", "ernie4_5", "gemma", "gemma2", "gemma3_text", "gptoss", "granite", "internlm2", "llama", "mistral",
    "nemotron", "olmo", "phi", "phimoe", "phi3", "phi3small", "qwen2", "qwen3", "smollm3",
}  # fmt: skip
_ANY_DECODER = "decoder"
"""The type for the other ones."""

WITH_CONVOLUTIONS = "lfm2"
_OTHER_NAMES = {"lfm2_moe": WITH_CONVOLUTIONS}
"""Types that onnxruntime-genai runs under the name of another type with the same inputs and outputs."""

_KIND_OF_STATES = {
    WITH_CONVOLUTIONS: {2}, "lfm2_moe": {2}, "granitemoehybrid": {2, 3}, "qwen3_5": {2, 3}, "qwen3_5_moe": {2, 3},
    "qwen3_5_moe_text": {2, 3}, "qwen3_5_text": {2, 3},
}  # fmt: skip
"""Types with states besides the caches: the ranks of those of convolutions and recurrences, without the batch."""

# Decoders whose only states are key-value caches, in transformers and in the models that optimum-intel exports with their
# own code.
_DECODERS = {
    "afmoe", "apertus", "aquila", "arcee", "arctic", "aria_text", "baichuan", "biogpt", "bitnet", "bloom", "blt",
    "code_llama", "codegen", "cohere", "cohere2", "cwm", "dbrx", "deci", "deepseek", "deepseek_v2", "deepseek_v3",
    "diffllama", "doge", "dots1", "ernie4_5_moe", "exaone", "exaone4", "exaone_moe", "falcon", "flex_olmo",
    "gemma3n_text", "gemma4_text", "glm", "glm4", "glm4_moe", "glm4_moe_lite", "gpt-sw3", "gpt2", "gpt_bigcode",
    "gpt_neo", "gpt_neox", "gpt_neox_japanese", "gpt_oss", "gptj", "granitemoe", "granitemoeshared", "helium",
    "hunyuan_v1_dense", "hunyuan_v1_moe", "internlm", "jais", "jais2", "jetmoe", "llama4_text", "longcat_flash",
    "minicpm", "minicpm3", "minimax_m2", "ministral", "ministral3", "mixtral", "modernbert-decoder", "mpt", "nanochat",
    "olmo2", "olmo3", "olmoe", "openai-gpt", "opt", "orion", "ouro", "persimmon", "qwen", "qwen2_moe", "qwen3_moe",
    "qwen3_omni_moe_text", "qwen3_vl_text", "seed_oss", "solar_open", "stablelm", "starcoder2", "vaultgemma", "xglm",
    "xverse", "youtu",
}  # fmt: skip
_RECURRENT = {
    "bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "kimi_linear", "lfm2", "lfm2_moe", "mamba",
    "mamba2", "minimax", "nemotron_h", "plamo2", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text",
    "qwen3_next", "recurrent_gemma", "rwkv", "xlstm", "zamba", "zamba2",
}  # fmt: skip
_WITH_ENCODERS = {
    "bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "encoder-decoder", "fsmt", "led", "longt5", "m2m_100",
    "marian", "marian-ssru", "mbart", "mt5", "mvp", "nllb-moe", "pegasus", "pegasus_x", "plbart", "prophetnet",
    "switch_transformers", "t5", "t5gemma", "umt5",
}  # fmt: skip
_OF_SPEECH = {
    "audioflamingo3", "dia", "glmasr", "granite_speech", "kyutai_speech_to_text", "moonshine", "moonshine_streaming",
    "nemotron_speech", "parakeet_tdt", "qwen2_audio", "seamless_m4t", "seamless_m4t_v2", "speech-encoder-decoder",
    "speech_to_text", "speecht5", "voxtral", "voxtral_realtime", "whisper",
}  # fmt: skip
_OF_IMAGES = {
    "aria", "aya_vision", "blip", "blip-2", "chameleon", "cohere2_vision", "deepseek_vl", "deepseek_vl_hybrid", "emu3",
    "ernie4_5_vl_moe", "evolla", "fara", "fast_vlm", "florence2", "fuyu", "gemma3", "gemma3n", "gemma4", "git",
    "glm46v", "glm4v", "glm4v_moe", "glm_ocr", "got_ocr2", "idefics", "idefics2", "idefics3", "instructblip",
    "instructblipvideo", "internvl", "internvl_chat", "janus", "kosmos-2", "kosmos-2.5", "lfm2_vl", "lighton_ocr",
    "llama4", "llava", "llava-qwen2", "llava_next", "llava_next_video", "llava_onevision", "maira2", "minicpmo",
    "minicpmv", "mistral3", "mllama", "ovis2", "paddleocr_vl", "paligemma", "perception_lm", "phi3_v", "phi3v",
    "phi4_multimodal", "phi4mm", "pix2struct", "pixtral", "qwen2_5_omni", "qwen2_5_vl", "qwen2_vl", "qwen3_omni_moe",
    "qwen3_vl", "qwen3_vl_moe", "shieldgemma2", "smolvlm", "t5gemma2", "udop", "video_llama_3", "video_llava",
    "videochat_flash_qwen", "vipllava", "vision-encoder-decoder",
}  # fmt: skip
_WITH_ENCODERS_OF_IMAGES = {"blip", "florence2", "git", "pix2struct", "udop", "vision-encoder-decoder"}
"""Types of `_OF_IMAGES` that optimum-intel exports as an encoder and a decoder."""

TEXT, PAIR, SPEECH, IMAGES = "a decoder of text", "an encoder-decoder", "a speech model", "a vision-language model"
_OTHERS = {PAIR: _WITH_ENCODERS, SPEECH: _OF_SPEECH, IMAGES: _OF_IMAGES}
_OTHER_PARTS = ("audio_config", "vision_config", "visual")
"""Keys of models that have other parts than the decoder of text, whose type some of them share."""

_CACHES = tuple(pattern.split("{")[0] for pattern in (PAST, PAST_STATE))
_POSITIONS, _LOGITS = "position_ids", "logits"
_ATTENTION = {"attention", "full_attention", "sliding_attention", "chunked_attention"}


def type_of(stated: object, decoder: Decoder) -> str:
    """Return a decoder's type in onnxruntime-genai, from the model's type in config.json."""
    kind = _OTHER_NAMES.get(str(stated), str(stated))
    return kind if kind in _TYPES or decoder.states else _ANY_DECODER


def structure_of(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a configuration that shows the structure of its model, and the structure; empty if none does."""
    kind = config.get("model_type")
    if isinstance(kind, str):
        if kind in _WITH_ENCODERS and config.get("is_encoder_decoder") is False:
            return "model_type", TEXT
        for structure, kinds in _OTHERS.items():
            if kind in kinds:
                return "model_type", structure
    if config.get("is_encoder_decoder") is True:
        return "is_encoder_decoder", PAIR
    return ("model_type", TEXT) if is_decoder(kind) and not any(config.get(part) for part in _OTHER_PARTS) else ("", "")


def is_decoder(kind: object) -> bool:
    """Return whether a ``model_type`` is known as that of a decoder of text, which can be a part of another model."""
    return isinstance(kind, str) and kind in _TYPES | _DECODERS | _RECURRENT


def has_encoder_of_images(kind: object) -> bool:
    """Return whether models of a ``model_type`` consist of an encoder of images and a decoder of text."""
    return isinstance(kind, str) and kind in _WITH_ENCODERS_OF_IMAGES


def has_only_caches(kind: object) -> bool:
    """Return whether a ``model_type`` is known as that of decoders whose only states are key-value caches."""
    return isinstance(kind, str) and kind in _TYPES | _DECODERS


def assumed_type(source: LanguageModel, decoder: Decoder) -> list[str]:
    """Return a note for a model of an unknown type, whose structure only the graph shows."""
    stated = source.config.get("model_type")
    if decoder.states or stated in _TYPES | _DECODERS | _RECURRENT:
        return []
    what = f"{CONFIG} states no model_type" if stated is None else f"decoders of the model_type {shown(stated)} are unknown"
    return [
        f"{what}: from the graph, its type in onnxruntime-genai is assumed to be {_ANY_DECODER!r}, a decoder of text"
        " whose only states are key-value caches; compare the generated tokens with those of the original model"
    ]


def other_structure(config: Mapping[str, Any], decoder: Decoder) -> tuple[str, str]:
    """Return the key of a configuration that contradicts a decoder of text, and what it describes; else empty texts."""
    kind = config.get("model_type")
    if kind is not None and not isinstance(kind, str):
        return "model_type", "no type"
    name, structure = structure_of(config)
    if structure not in ("", TEXT):
        return name, structure
    if kind in _RECURRENT and not decoder.states and not _has_only_attention(config):
        return "model_type", "a model with states other than key-value caches"
    return "", ""


def _has_only_attention(config: Mapping[str, Any]) -> bool:
    """Return whether all layers of a hybrid are attention, according to its configuration."""
    kinds = config.get("layer_types") or config.get("layers_block_type")
    return isinstance(kinds, list) and all(isinstance(kind, str) and kind in _ATTENTION for kind in kinds)


def check_states(path: Path, kind: object, decoder: Decoder) -> None:
    """Raise `ConversionError` if a decoder has states besides its caches that its type in onnxruntime-genai does not have.

    Args:
        path: the IR of the decoder.
        kind: the model's type in config.json.
        decoder: the form of its attention.
    """
    if decoder.states and _KIND_OF_STATES.get(str(kind)) != {len(shape) for shape in decoder.states}:
        message = f"onnxruntime-genai has no type for the states of a model of the type {kind!r}"
        raise path_error(path, message, "convert it without --genai")


def check_ports(path: Path, model: onnx.ModelProto, inputs: Iterable[str], positions: int = 2) -> None:
    """Raise `ConversionError` if a decoder's inputs or outputs are not those of decoders in onnxruntime-genai.

    Args:
        path: the IR of the decoder.
        model: the converted decoder.
        inputs: the names of the inputs for the tokens that onnxruntime-genai sets. The first is required.
        positions: the number of dimensions of the positions.
    """
    first, *_ = inputs = list(inputs)
    remedy = "convert it without --genai"
    found = {value.name: len(value.type.tensor_type.shape.dim) for value in model.graph.input}
    own = [name for name in found if not name.startswith(_CACHES)]
    if unknown := sorted({*own} - {*inputs, "attention_mask", _POSITIONS}):
        raise path_error(path, f"onnxruntime-genai does not set its input {', '.join(unknown)}", remedy)
    if first not in own:
        raise path_error(path, f"it has no input {first}, which onnxruntime-genai requires", remedy)
    results = {value.name: len(value.type.tensor_type.shape.dim) for value in model.graph.output}
    if _LOGITS not in results:
        raise path_error(path, f"it has no output {_LOGITS}, which onnxruntime-genai requires", remedy)
    for name, dims, expected in (
        (_POSITIONS, found.get(_POSITIONS, positions), positions),
        (_LOGITS, results[_LOGITS], 3),
    ):
        if dims != expected:
            message = f"its {name} have {dims} dimensions; onnxruntime-genai requires {expected} for this type"
            raise path_error(path, message, remedy)
