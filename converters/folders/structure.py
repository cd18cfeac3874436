"""The structure of the model in a folder, which its files and states show, in relation to its configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from converters.folders.genai_types import (
    IMAGES,
    PAIR,
    SPEECH,
    TEXT,
    has_encoder_of_images,
    has_only_caches,
    is_decoder,
    structure_of,
)
from converters.folders.language_model import DECODER, LANGUAGE, TEXT_EMBEDDINGS
from converters.folders.layouts import variables
from converters.folders.stated import shown
from onnx_specops.generation.states import contradiction

ENCODER_OF_A_PAIR, DECODER_OF_A_PAIR = "openvino_encoder_model.xml", "openvino_decoder_model.xml"

_READS_SOUND = ("moonshine", "speech_to_text", "whisper")
"""Types of speech recognition, whose encoders take no tokens."""


def other_structure(folder: Path, config: Mapping[str, Any], inputs: Collection[str] = ()) -> str:
    """Return how the configuration of a folder contradicts the structure of its model; empty if it does not.

    Args:
        folder: the folder that optimum-intel wrote.
        config: its config.json.
        inputs: the inputs of the encoder, if it is known and the folder contains one.
    """
    name, structure = structure_of(config)
    kind, text = config.get("model_type"), config.get("text_config")
    found, decoder = "", DECODER
    if any((folder / one).is_file() for one in (ENCODER_OF_A_PAIR, DECODER_OF_A_PAIR)):
        if is_decoder(kind) or structure == TEXT or (structure == IMAGES and not has_encoder_of_images(kind)):
            name, structure = ("model_type", TEXT) if is_decoder(kind) else (name, structure)
            found = "the folder contains an encoder and a decoder"
        elif inputs and structure == PAIR and "input_ids" not in inputs:
            found = f"the encoder has the inputs {', '.join(sorted(inputs))}"
        elif inputs and kind in _READS_SOUND and "input_ids" in inputs:
            found = "the encoder takes tokens"
        decoder = ""
    elif any((folder / one).is_file() for one in (LANGUAGE, TEXT_EMBEDDINGS)):
        if structure in (TEXT, PAIR) or kind in _READS_SOUND:
            found = "the folder contains a decoder of embeddings"
        decoder = LANGUAGE
    elif structure in (PAIR, SPEECH, IMAGES) and variables(folder / DECODER):
        found = "the model is a decoder of text"
    if found:
        return f"its {name} is {shown(config[name])}, {structure}, but {found}"
    states: dict[str, Sequence[int]] = dict.fromkeys(variables(folder / decoder) if decoder else (), ())
    told = {**config, **text} if isinstance(text, dict) else config
    return contradiction(told, states, only_caches=has_only_caches(told.get("model_type")))
