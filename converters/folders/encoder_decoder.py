"""An encoder-decoder's folder: two IRs, the tokenizer's, and what belongs to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from converters.convert import Conversion
from converters.folders.companions import copy_companions, places
from converters.folders.path_errors import AS_WRITTEN, path_error

ENCODER, DECODER = "openvino_encoder_model.xml", "openvino_decoder_model.xml"


def write_encoder_decoder(folder: Path, target: Path, convert: Callable[..., Conversion]) -> None:
    """Convert an encoder and its decoder, each as it is; configurations and the like come along.

    Args:
        folder: as optimum-intel writes it.
        target: where to write.
        convert: `converters.convert.convert`, with the options that the user gave.

    Raises:
        ConversionError: one of them is missing, or cannot be converted.
        OSError: a file cannot be written; what was there before is still there.
    """
    for name in (ENCODER, DECODER):
        if not (folder / name).is_file():
            raise path_error(folder, f"it holds no {name}", AS_WRITTEN)
    target.mkdir(parents=True, exist_ok=True)
    for name in (ENCODER, DECODER):
        convert(folder / name, (target / name).with_suffix(".onnx"))
    copy_companions(places(folder, target))
