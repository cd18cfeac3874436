"""The folder of a language model in the form that onnxruntime-genai loads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from converters.convert import Conversion
from converters.errors import UnsupportedError
from converters.folders import encoder_decoder
from converters.folders.companions import check_companions, copy_companions, places
from converters.folders.contradictions import GENERATION, check_configuration, check_type
from converters.folders.genai_types import (
    WITH_CONVOLUTIONS,
    assumed_type,
    check_ports,
    check_states,
    type_of,
)
from converters.folders.language_model import LANGUAGE, TEXT_EMBEDDINGS, LanguageModel, read_language_model
from converters.folders.layouts import CONFIG as CONFIGURATION
from converters.folders.stated import Stated, is_integer
from converters.folders.whole import all_or_none
from converters.options import KvCache, LogitsOf
from converters.passes.attention import PAST, PAST_STATE, PRESENT, PRESENT_STATE, Decoder
from converters.report import Report
from onnx_specops.ops.group_query_attention_compressed import TAIL
from onnx_specops.runtime.library import has_library, library_path

MODEL, CONFIG = "model.onnx", "genai_config.json"

_USUAL_POSITIONS, _USUAL_END = 2048, 2

SEARCH = {
    "diversity_penalty": 0.0, "do_sample": False, "early_stopping": False, "length_penalty": 1.0, "max_length": 0,
    "min_length": 0, "no_repeat_ngram_size": 0, "num_beams": 1, "num_return_sequences": 1,
    "past_present_share_buffer": False, "repetition_penalty": 1.0, "temperature": 1.0, "top_k": 50, "top_p": 1.0,
}  # fmt: skip
"""The search settings in genai_config.json, with their defaults."""

SINGLE = {"num_beams": 1, "num_return_sequences": 1}
"""The search settings of models for which onnxruntime-genai does not support beam search."""

_MOST_BEAMS = 32  # of onnxruntime-genai
_NEVER = "never"

_NEUTRAL: dict[str, Any] = {
    "bad_words_ids": None, "begin_suppress_tokens": None, "constraints": None, "dola_layers": None,
    "encoder_no_repeat_ngram_size": 0, "encoder_repetition_penalty": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
    "exponential_decay_length_penalty": None, "force_words_ids": None, "forced_bos_token_id": None,
    "forced_decoder_ids": None, "forced_eos_token_id": None, "guidance_scale": 1.0, "max_time": None, "min_new_tokens": 0,
    "min_p": 0.0, "num_beam_groups": 1, "penalty_alpha": 0.0, "remove_invalid_values": False, "renormalize_logits": False,
    "sequence_bias": None, "stop_strings": None, "suppress_tokens": None, "token_healing": False, "top_h": 1.0,
    "typical_p": 1.0, "watermarking_config": None,
}  # fmt: skip
"""Settings of generation_config.json that onnxruntime-genai does not support, with their values without effect."""


@dataclass(frozen=True)
class GenaiFolder:
    """The result of the conversion of a folder.

    Attributes:
        report: the report of the decoder's conversion.
        remarks: notes for the user, one line each.
        models: the files of its graphs, the decoder's first.
    """

    report: Report
    remarks: list[str]
    models: list[str]


def write_genai(
    folder: Path,
    target: Path,
    convert: Callable[..., Conversion],
    kv_cache: KvCache | None = None,
    logits: LogitsOf | None = None,
    provider: str | None = None,
) -> GenaiFolder:
    """Convert a language model's decoder, and write the files that onnxruntime-genai needs.

    Args:
        folder: the folder of a language model, a Whisper model or a vision-language model that optimum-intel wrote.
        target: the output folder.
        convert: `converters.convert.convert` with the user's options; for Whisper and vision-language models `convert_with`,
            with ``adapt``.
        kv_cache: the type of the key-value cache; see `converters.convert.convert`.
        logits: the tokens that have logits; see `converters.convert.convert`.
        provider: the name of the execution provider in onnxruntime-genai, such as ``"cuda"``, or ``None`` for the CPU.

    Raises:
        ConversionError: the folder is not that of a language model, or the model does not support this form.
        OSError: a file cannot be written. The previous files are unchanged.
    """
    check_companions(folder)
    if any((folder / name).is_file() for name in (encoder_decoder.ENCODER, encoder_decoder.DECODER)):
        from converters.folders.genai_speech import write_speech

        return write_speech(folder, target, convert, kv_cache, logits, provider)
    if any((folder / name).is_file() for name in (LANGUAGE, TEXT_EMBEDDINGS)):
        from converters.folders.genai_vision import write_vision

        return write_vision(folder, target, convert, kv_cache, logits, provider)
    source = read_language_model(folder)
    how = {"form": "genai", "positions": source.positions, "kv_cache": kv_cache, "logits": logits}
    with all_or_none(target, (MODEL,)):
        try:
            model, report = convert(source.decoder, target / MODEL, **how)
            decoder = report.decoder
            assert decoder is not None
            check_states(source.decoder, source.config.get("model_type"), decoder)
        except UnsupportedError:
            check_type(source)  # the configuration of another model is a cause that precedes the states of the graph
            raise
        vocabulary = check_configuration(source, decoder, model, alone=True)
        check_ports(source.decoder, model, ["input_ids"])
        source.check_vocabulary(vocabulary)
        library = needed_library(decoder)
        config = genai_config(
            source, decoder, [value.name for value in model.graph.input], vocabulary, library, provider=provider
        )
        write_configurations(folder, {target / CONFIG: config}, target, library)
    remarks = [*assumed_type(source, decoder), *remarks_of(source, decoder, target, library)]
    if logits == "last" and decoder.logits != logits:
        remarks.append("its output is not [batch, tokens, vocabulary] and remains unchanged")
    return GenaiFolder(report, remarks, [MODEL])


def needed_library(decoder: Decoder) -> Path | None:
    """Return the library with the domain's kernels if the decoder's cache or recurrences need it and it is installed."""
    needed = not decoder.own or _has_recurrences(decoder)
    return Path(library_path()) if needed and has_library() else None


def _has_recurrences(decoder: Decoder) -> bool:
    return any(len(shape) == 3 for shape in decoder.states)


def write_configurations(
    folder: Path, contents: Mapping[Path, Mapping[str, Any]], target: Path, library: Path | None = None
) -> None:
    """Write configurations as JSON, copy the folder's other files and the library to ``target``: all of them or none."""
    copies = {path: place for path, place in places(folder, target).items() if place not in contents}
    if library is not None:
        copies[library] = target / library.name
    copy_companions(copies, {path: f"{json.dumps(content, indent=4)}\n".encode() for path, content in contents.items()})


def genai_config(
    source: LanguageModel,
    decoder: Decoder,
    inputs: list[str],
    vocabulary: int,
    library: Path | None = None,
    filename: str = MODEL,
    provider: str | None = None,
) -> dict[str, Any]:
    """Return the content of genai_config.json.

    Args:
        source: the model's folder.
        decoder: the form of its attention.
        inputs: the names of the model's inputs.
        vocabulary: the number of tokens in its vocabulary.
        library: the library with the domain's kernels if onnxruntime-genai needs it; a file of that name is in the folder.
        filename: the name of the decoder's file.
        provider: see `write_genai`.
    """
    positions = source.positions or _USUAL_POSITIONS
    begin = source.token("bos_token_id")
    search = {**search_settings(source, vocabulary), "max_length": positions, "past_present_share_buffer": decoder.in_place}
    if _has_recurrences(decoder):
        search |= SINGLE
    kind = type_of(source.config.get("model_type"), decoder)
    convolutions = _convolutions(decoder) if kind == WITH_CONVOLUTIONS else {}
    own = {name: name for name in ("input_ids", "inputs_embeds", "attention_mask", "position_ids") if name in inputs}
    return {
        "model": {
            "bos_token_id": 1 if begin is None else begin,
            "context_length": positions,
            "decoder": {
                "session_options": session_options(library, provider),
                "filename": filename,
                "head_size": decoder.size + (TAIL if decoder.cache == "uint8" else 0),  # the size of the caches' rows
                "hidden_size": source.config.get("hidden_size") or decoder.heads * decoder.size,
                "inputs": {
                    **own,
                    **({"past_conv_names": PAST_STATE.format("%d")} if convolutions else {}),
                    "past_key_names": PAST.format("%d", "key"),
                    "past_value_names": PAST.format("%d", "value"),
                },
                "outputs": {
                    "logits": "logits",
                    **({"present_conv_names": PRESENT_STATE.format("%d")} if convolutions else {}),
                    "present_key_names": PRESENT.format("%d", "key"),
                    "present_value_names": PRESENT.format("%d", "value"),
                },
                "num_attention_heads": decoder.heads,
                "num_hidden_layers": decoder.layers,
                "num_key_value_heads": decoder.groups,
                **convolutions,
            },
            "eos_token_id": end_tokens(source),
            "pad_token_id": fill_token(source),
            "type": kind,
            "vocab_size": vocabulary,
        },
        "search": search,
    }


def end_tokens(source: LanguageModel) -> Any:
    """Return the end token, or the list of them: by default `_USUAL_END`."""
    stated = source.token("eos_token_id")
    return _USUAL_END if stated is None else stated


def fill_token(source: LanguageModel) -> int:
    """Return the token that fills shorter sequences: by default the first end token, or 0 without one."""
    for name in ("pad_token_id", "eos_token_id"):
        found = source.token(name)
        if found is not None:
            return int(found[0] if isinstance(found, list) else found)
    return 0


def search_settings(source: LanguageModel, vocabulary: int = 0) -> dict[str, Any]:
    """Return the settings of generation_config.json for the search, with transformers' default values of others.

    Args:
        source: the model's folder.
        vocabulary: the number of tokens in its vocabulary if it is known; onnxruntime-genai rejects a larger ``top_k``.

    Raises:
        ConversionError: a value has another type, or one that onnxruntime-genai rejects.
    """
    stated = Stated(source.folder / GENERATION, source.generation)
    found: dict[str, Any] = {}
    for name, default in SEARCH.items():
        value = source.generation.get(name)
        if value is None or (name == "early_stopping" and value == _NEVER):
            found[name] = default
        elif isinstance(default, bool):
            if not isinstance(value, bool):
                raise stated.invalid(name, "true or false")
            found[name] = value
        elif isinstance(default, int):
            if not is_integer(value) or not 0 <= value < 1 << 31:
                raise stated.invalid(name, "0 or a positive integer")
            found[name] = value
        else:
            found[name] = stated.number(name, default)
    for name, fits, expected in (
        ("num_beams", 1 <= found["num_beams"] <= _MOST_BEAMS, f"a number from 1 to {_MOST_BEAMS}"),
        ("num_return_sequences", 1 <= found["num_return_sequences"] <= found["num_beams"], "1 to the number of beams"),
        ("top_p", 0 <= found["top_p"] <= 1, "a number from 0 to 1"),
        ("temperature", found["temperature"] >= 0, "0 or a positive number"),
        ("repetition_penalty", found["repetition_penalty"] > 0, "a positive number"),
    ):
        if not fits:
            raise stated.invalid(name, expected)
    if vocabulary:
        found["top_k"] = min(found["top_k"], vocabulary)
    return found


def not_applied(source: LanguageModel) -> list[str]:
    """Return a note about the settings of generation_config.json that onnxruntime-genai does not support, if any."""
    stated = source.generation
    ignored = [name for name, neutral in _NEUTRAL.items() if stated.get(name) and stated[name] != neutral]
    if stated.get("early_stopping") == _NEVER:
        ignored.append("early_stopping")
    return [f"onnxruntime-genai does not apply {', '.join(ignored)} of {GENERATION}"] if ignored else []


def beams_not_applied(source: LanguageModel) -> list[str]:
    """Return a note for a model for which onnxruntime-genai does not support beam search, if the folder asks for it."""
    if source.generation.get("num_beams") in (None, 1):
        return []
    return [f"onnxruntime-genai does not support beam search for this model: num_beams of {GENERATION} is not applied"]


def _convolutions(decoder: Decoder) -> dict[str, Any]:
    """Return the settings for convolutions. The numbers in the names of states follow those of the caches."""
    kinds = ["full_attention"] * decoder.layers + ["conv"] * len(decoder.states)
    return {"num_hidden_layers": len(kinds), "layer_types": kinds, "conv_cache_size": decoder.states[0][-1]}


def session_options(library: Path | None = None, provider: str | None = None) -> dict[str, Any]:
    """Return the session options in genai_config.json, with the library of kernels and the provider if there are any."""
    kernels = {} if library is None else {"custom_ops_library": library.name}
    providers: list[dict[str, Any]] = [] if provider is None else [{provider: {}}]
    return {"log_id": "onnxruntime-genai", "provider_options": providers, **kernels}


def remarks_of(source: LanguageModel, decoder: Decoder, target: Path, library: Path | None) -> list[str]:
    """Return notes for the user about the form of the attention, the cache and missing files."""
    remarks = [*not_applied(source), *(beams_not_applied(source) if _has_recurrences(decoder) else ())]
    for reason, layers in decoder.kept.items():
        which = "all layers" if len(layers) == decoder.layers else f"layers {', '.join(map(str, layers))}"
        remarks.append(f"{which}: {reason}")
    if decoder.grouped < decoder.layers:
        remarks.append("these layers copy the cache for every token")
    if not decoder.own:
        loads = "which is fast only with the plugin's kernels"
        if library is not None:
            loads += f"; onnxruntime-genai loads them from {library.name} next to the model, which is for this platform only"
        remarks.append(f"the cache is {decoder.cache}, {loads}")
    if _has_recurrences(decoder) and library is not None:
        remarks.append(
            f"the recurrences are fast with the plugin's kernels, which onnxruntime-genai loads from {library.name}"
        )
    if source.positions is None:
        remarks.append(f"config.json does not state the number of positions: {_USUAL_POSITIONS} are assumed")
    if source.token("eos_token_id") is None:
        remarks.append(f"neither {CONFIGURATION} nor {GENERATION} states an end token: {_USUAL_END} is assumed")
    if not (target / "tokenizer.json").is_file():
        remarks.append(
            "the folder has no tokenizer.json: onnxruntime_genai.Model can load it, but onnxruntime_genai.Tokenizer cannot"
        )
    return remarks
