"""The folder of a Whisper model in the form that onnxruntime-genai loads.

The encoder computes its output and the keys and values of cross-attention, once per recording. These keys and values, and
the cache, are inputs of the decoder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from converters.convert import Conversion
from converters.folders import encoder_decoder
from converters.folders.contradictions import ENCODER_DECODERS, check_configuration
from converters.folders.genai import (
    CONFIG,
    GenaiFolder,
    end_tokens,
    fill_token,
    not_applied,
    search_settings,
    session_options,
    write_configurations,
)
from converters.folders.language_model import LanguageModel, check_vocabulary, read_configurations
from converters.folders.path_errors import AS_WRITTEN, path_error
from converters.folders.processors import FLAT, processor
from converters.folders.stated import Stated
from converters.folders.whole import all_or_none
from converters.options import KvCache, LogitsOf
from converters.passes.attention import Decoder
from converters.passes.attention.cross import (
    CROSS_PAST,
    CROSS_PRESENT,
    SELF_PAST,
    SELF_PRESENT,
    Projections,
    expose_encoder_decoder,
)
from converters.source import Emitted

ENCODER, DECODER, SOUNDS = "encoder.onnx", "decoder.onnx", "audio_processor_config.json"

_RATE = 16000
_FRAMES = 1500  # the frames of 30 seconds; onnxruntime-genai supports no other number


def write_speech(
    folder: Path,
    target: Path,
    convert: Callable[..., Conversion],
    kv_cache: KvCache | None = None,
    logits: LogitsOf | None = None,
    provider: str | None = None,
) -> GenaiFolder:
    """Convert the encoder and decoder of a Whisper model, and write the files that onnxruntime-genai needs.

    Args:
        folder: the folder that optimum-intel wrote.
        target: the output folder.
        convert: `converters.convert.convert_with`, with the user's options and those that are passed.
        kv_cache, logits, provider: see `converters.folders.genai.write_genai`. The cache is float32, and all tokens have
            logits.

    Raises:
        ConversionError: the folder is not that of a Whisper model, or the model does not support this form.
        OSError: a file cannot be written.
    """
    source = _read(folder)
    if kv_cache not in (None, "float32"):
        raise path_error(folder, f"the cache of a Whisper model is float32, not {kv_cache}", "omit --kv-cache")
    sounds = _sounds(folder, source)
    found: list[Projections] = []

    def decode(emitted: Emitted) -> Decoder:
        decoder, projections = expose_encoder_decoder(emitted.model, emitted.variables)
        emitted.variables = []
        found[:] = [projections]
        return decoder

    def encode(emitted: Emitted) -> None:
        found[0].append_to(emitted.model)
        graph = emitted.model.graph
        mels, dims = source.stated.size("num_mel_bins", 80), graph.inputs[0].shape
        if dims is not None and len(dims) == 3 and isinstance(dims[1], int) and dims[1] != mels:
            message = f"its num_mel_bins is {mels}, but the encoder takes {dims[1]} features per frame"
            raise path_error(folder / "config.json", message, "use the config.json of the model")
        graph.inputs[0].name, graph.outputs[0].name = "audio_features", "hidden_states"

    with all_or_none(target, (ENCODER, DECODER)):
        model, report = convert(folder / encoder_decoder.DECODER, target / DECODER, adapt=decode, form="openvino")
        decoder = report.decoder
        assert decoder is not None
        vocabulary = check_configuration(source, decoder, model, ENCODER_DECODERS)
        check_vocabulary(folder, vocabulary)
        convert(folder / encoder_decoder.ENCODER, target / ENCODER, adapt=encode, form="openvino")
        config = _genai_config(source, decoder, vocabulary, provider)
        write_configurations(folder, {target / CONFIG: config, target / SOUNDS: sounds}, target)
    remarks = not_applied(source)
    if not (target / "tokenizer.json").is_file():
        remarks.append(
            "the folder has no tokenizer.json: onnxruntime_genai.Model can load it, but onnxruntime_genai.Tokenizer cannot"
        )
    if logits == "last":
        remarks.append("all tokens have logits, because onnxruntime-genai requires them for Whisper")
    return GenaiFolder(report, remarks, [DECODER, ENCODER])


def _read(folder: Path) -> LanguageModel:
    for name in (encoder_decoder.ENCODER, encoder_decoder.DECODER):
        if not (folder / name).is_file():
            raise path_error(folder, f"it contains no {name}", AS_WRITTEN)
    source = read_configurations(folder)
    kind = source.config.get("model_type")
    if kind != "whisper":
        message = f"--genai does not support encoder-decoders of the type {kind!r}; expected 'whisper'"
        raise path_error(folder / "config.json", message, "convert it without --genai")
    frames = source.stated.size("max_source_positions", _FRAMES)
    if frames != _FRAMES:
        message = f"its encoder has {frames} positions; onnxruntime-genai requires {_FRAMES}"
        raise path_error(folder / "config.json", message, "convert it without --genai")
    return source


def _sounds(folder: Path, source: LanguageModel) -> dict[str, Any]:
    """Return the feature extraction of onnxruntime-genai that is equal to transformers' WhisperFeatureExtractor."""
    stated = processor(folder, "feature_extractor", "audio_processor") or Stated(folder / FLAT, {})
    path = stated.path
    mels = source.stated.size("num_mel_bins", 80)
    if (features := stated.size("feature_size", mels)) != mels:
        message = f"it computes {features} features per frame, but the model needs {mels}"
        raise path_error(path, message, "use the file of the model")
    size, step, seconds = stated.size("n_fft", 400), stated.size("hop_length", 160), stated.size("chunk_length", 30)
    if (rate := stated.size("sampling_rate", _RATE)) != _RATE:
        message = f"its sampling_rate is {rate}; onnxruntime-genai requires {_RATE}"
        raise path_error(path, message, "convert it without --genai")
    if seconds * rate != 2 * _FRAMES * step:  # the encoder's first convolutions halve the number of frames
        message = f"it computes {seconds * rate / step:g} frames, but the model needs {2 * _FRAMES}"
        raise path_error(path, message, "use the file of the model")
    steps: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("audio_decoder", "AudioDecoder", {}),
        ("STFT", "STFTNorm", {"n_fft": size, "frame_length": size, "hop_length": step}),
        ("log_mel_spectrogram", "LogMelSpectrum", {"chunk_size": seconds, "hop_length": step, "n_fft": size, "n_mel": mels}),
    )
    sequence = [
        {"operation": {"name": name, "type": kind, **({"attrs": attributes} if attributes else {})}}
        for name, kind, attributes in steps
    ]
    return {"feature_extraction": {"sequence": sequence}}


def _genai_config(source: LanguageModel, decoder: Decoder, vocabulary: int, provider: str | None) -> dict[str, Any]:
    stated = source.stated
    positions = stated.size("max_target_positions", 448)
    begin, start = source.token("bos_token_id"), source.token("decoder_start_token_id")
    search = {**search_settings(source, vocabulary), "max_length": positions}

    def caches(pattern: str) -> tuple[str, str]:
        return pattern.format("key", "%d"), pattern.format("value", "%d")

    own, crossed = caches(SELF_PAST), caches(CROSS_PAST)
    extended, computed = caches(SELF_PRESENT), caches(CROSS_PRESENT)
    session = session_options(provider=provider)
    heads = stated.size("encoder_attention_heads", decoder.heads)
    width = decoder.heads * decoder.size
    return {
        "model": {
            "bos_token_id": 1 if begin is None else begin,
            "context_length": positions,
            "decoder": {
                "session_options": session,
                "filename": DECODER,
                "head_size": decoder.size,
                "hidden_size": width,
                "inputs": {
                    "input_ids": "input_ids",
                    "past_key_names": own[0],
                    "past_value_names": own[1],
                    "cross_past_key_names": crossed[0],
                    "cross_past_value_names": crossed[1],
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": extended[0],
                    "present_value_names": extended[1],
                },
                "num_attention_heads": decoder.heads,
                "num_hidden_layers": decoder.layers,
                "num_key_value_heads": decoder.groups,
            },
            "decoder_start_token_id": 1 if start is None else start,
            "encoder": {
                "session_options": session,
                "filename": ENCODER,
                "head_size": width // heads,
                "hidden_size": width,
                "inputs": {"audio_features": "audio_features"},
                "outputs": {
                    "encoder_hidden_states": "hidden_states",
                    "cross_present_key_names": computed[0],
                    "cross_present_value_names": computed[1],
                },
                "num_attention_heads": heads,
                "num_hidden_layers": stated.size("encoder_layers", decoder.layers),
                "num_key_value_heads": heads,
            },
            "eos_token_id": end_tokens(source),
            "pad_token_id": fill_token(source),
            "type": "whisper",
            "vocab_size": vocabulary,
        },
        "search": search,
    }
