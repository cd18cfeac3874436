"""Text generation with the model in a folder, in ONNX Runtime.

    model = open_model("OUT")
    for piece in model.write("Once upon a time", tokens=64):
        print(piece, end="", flush=True)

By default, the models use greedy search. `Sampling` configures sampling, and `Beams` beam search. `TextModel.chat` answers
conversations, using the chat template in the folder. onnxruntime-genai can load the folders of language models too.
"""

from __future__ import annotations

import os
from pathlib import Path

import onnxruntime as ort

from onnx_specops.generation.beams import Beams, Hypothesis
from onnx_specops.generation.encoder_decoder import DECODER, ENCODER, EncoderDecoder
from onnx_specops.generation.errors import GenerationError, SettingWarning
from onnx_specops.generation.language_model import CONFIG, LanguageModel
from onnx_specops.generation.sampling import Sampling
from onnx_specops.generation.settings import MODEL, read_json
from onnx_specops.generation.speech import Segment, SpeechModel
from onnx_specops.generation.text_model import TextModel
from onnx_specops.generation.tokenizer import DETOKENIZER, TOKENIZER
from onnx_specops.generation.vision_language import VisionLanguageModel
from onnx_specops.runtime.session import Kernels

__all__ = [
    "CONFIG",
    "DECODER",
    "DETOKENIZER",
    "ENCODER",
    "TOKENIZER",
    "Beams",
    "EncoderDecoder",
    "GenerationError",
    "Hypothesis",
    "LanguageModel",
    "Sampling",
    "Segment",
    "SettingWarning",
    "SpeechModel",
    "TextModel",
    "VisionLanguageModel",
    "open_model",
]

# The file name of the language model in multimodal models.
_OF_EMBEDDINGS = "openvino_language_model"


def open_model(
    folder: str | os.PathLike[str], *, kernels: Kernels = "auto", sess_options: ort.SessionOptions | None = None
) -> TextModel:
    """Open the model in a folder.

    Args:
        folder: the output folder of ``specops convert FOLDER -o OUT``, with or without ``--genai``.
        kernels, sess_options: see `onnx_specops.InferenceSession`.

    Returns:
        A `SpeechModel` for Whisper, a `VisionLanguageModel` if genai_config.json lists a vision encoder, an `EncoderDecoder`
        for any other model with an encoder, and otherwise a `LanguageModel`.

    Raises:
        GenerationError: files are missing or inconsistent.
    """
    place = Path(folder)
    if not (place / CONFIG).is_file() and any((place / f"{_OF_EMBEDDINGS}{end}").is_file() for end in (".onnx", ".xml")):
        raise GenerationError(
            f"{place} contains a multimodal model, whose processor prepares the prompts: convert the folder, and"
            ' combine its models as docs/language-models.md describes under "Vision-language models"'
        )
    return _kind(place)(place, kernels=kernels, sess_options=sess_options)


def _kind(place: Path) -> type[LanguageModel] | type[EncoderDecoder] | type[SpeechModel]:
    if (place / CONFIG).is_file():
        model = read_json(place / CONFIG).get("model")
        if not isinstance(model, dict):
            return LanguageModel
        if model.get("type") == "whisper":
            return SpeechModel
        return VisionLanguageModel if "vision" in model and "embedding" in model else LanguageModel
    if not (place / ENCODER).is_file():
        return LanguageModel
    try:
        config = read_json(place / MODEL)
    except FileNotFoundError:
        raise GenerationError(f"{place} contains no {MODEL}, which specifies the kind of model") from None
    return SpeechModel if config.get("model_type") == "whisper" else EncoderDecoder
