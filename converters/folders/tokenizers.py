"""The tokenizer and detokenizer of a model's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from converters.convert import Conversion
from converters.errors import ConversionError, Fault

TOKENIZER, DETOKENIZER = "openvino_tokenizer.xml", "openvino_detokenizer.xml"


def write_tokenizers(folder: Path, target: Path, convert: Callable[..., Conversion]) -> tuple[list[Path], list[str]]:
    """Convert the tokenizer and detokenizer of a folder, if it has them.

    Args:
        folder: the folder that optimum-intel wrote.
        target: the output folder, which exists.
        convert: `converters.convert.convert` with the user's options.

    Returns:
        The written files, and a line for each model that cannot be converted. onnxruntime-genai has its own tokenizers.

    Raises:
        ConversionError: a model is damaged.
    """
    written, remarks = [], []
    for name in (TOKENIZER, DETOKENIZER):
        if not (folder / name).is_file():
            continue
        place = (target / name).with_suffix(".onnx")
        try:
            convert(folder / name, place, weights="embed")
            written.append(place)
        except ConversionError as error:
            if any(problem.fault is not Fault.UNSUPPORTED for problem in error.problems):
                raise
            remarks.append(f"{name} is not converted: {error.problems[0].message}")
    return written, remarks
