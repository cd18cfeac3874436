"""Text out of a model's folder, by ONNX Runtime alone.

    model = open_model("OUT")
    for piece in model.write("Once upon a time", tokens=64):
        print(piece, end="", flush=True)

`Sampling` states how each token is chosen, the likeliest by default; `TextModel.chat` answers conversations by the folder's
chat template. onnxruntime-genai loads the folders of language models, too, and searches with beams besides.
"""

from __future__ import annotations

import os
from pathlib import Path

import onnxruntime as ort

from onnx_specops.generation.encoder_decoder import DECODER, ENCODER, EncoderDecoder
from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.language_model import CONFIG, LanguageModel
from onnx_specops.generation.sampling import Sampling
from onnx_specops.generation.text_model import TextModel
from onnx_specops.generation.tokenizer import DETOKENIZER, TOKENIZER
from onnx_specops.runtime.session import Kernels

__all__ = [
    "CONFIG",
    "DECODER",
    "DETOKENIZER",
    "ENCODER",
    "TOKENIZER",
    "EncoderDecoder",
    "GenerationError",
    "LanguageModel",
    "Sampling",
    "TextModel",
    "open_model",
]

# The language model of those that see or hear.
_OF_EMBEDDINGS = "openvino_language_model"


def open_model(
    folder: str | os.PathLike[str], *, kernels: Kernels = "auto", sess_options: ort.SessionOptions | None = None
) -> TextModel:
    """The model of a folder: an `EncoderDecoder` where it holds an encoder and no genai_config.json, else a `LanguageModel`.

    Args:
        folder: as ``specops convert FOLDER -o OUT`` writes it, of a language model with ``--genai``.
        kernels, sess_options: as of `onnx_specops.InferenceSession`.

    Raises:
        GenerationError: what is missing in the folder, or does not belong together.
    """
    place = Path(folder)
    if not (place / CONFIG).is_file() and any((place / f"{_OF_EMBEDDINGS}{end}").is_file() for end in (".onnx", ".xml")):
        raise GenerationError(
            f"{place} holds a model of images or sounds and text, whose prompts its processor makes: convert the folder, and"
            ' put its parts together as docs/language-models.md has it under "Models of images and text"'
        )
    pair = (place / ENCODER).is_file() and not (place / CONFIG).is_file()
    kind: type[LanguageModel] | type[EncoderDecoder] = EncoderDecoder if pair else LanguageModel
    return kind(place, kernels=kernels, sess_options=sess_options)
