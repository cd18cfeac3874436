"""The folder of a language model whose states onnxruntime-genai does not support. The states remain variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from converters.convert import Conversion
from converters.errors import UnsupportedError
from converters.folders.companions import copy_companions, places
from converters.folders.genai import write_genai
from converters.folders.language_model import DECODER


def write_language_model(folder: Path, target: Path, convert: Callable[..., Conversion]) -> None:
    """Convert a language model for `onnx_specops.generation.LanguageModel`.

    States other than caches, such as those of hybrids of attention and state spaces, stay variables. Other models have the
    form of `write_genai`.

    Args:
        folder: the folder that optimum-intel wrote.
        target: the output folder.
        convert: `converters.convert.convert` with the user's options.

    Raises:
        ConversionError: a model is missing or cannot be converted.
        OSError: a file cannot be written. The previous files are unchanged.
    """
    decoder = folder / DECODER
    try:
        write_genai(folder, target, convert)
    except UnsupportedError as error:
        if not decoder.is_file() or any(problem.file != str(decoder) for problem in error.problems):
            raise
        convert(decoder, (target / DECODER).with_suffix(".onnx"))
        copy_companions(places(folder, target))
