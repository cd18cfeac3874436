"""The folder of an encoder-decoder: its two IRs, tokenizers and companion files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from converters.convert import Conversion
from converters.folders.agreement import check_folder
from converters.folders.companions import check_companions, copy_companions, places
from converters.folders.path_errors import AS_WRITTEN, path_error
from converters.folders.structure import DECODER_OF_A_PAIR as DECODER
from converters.folders.structure import ENCODER_OF_A_PAIR as ENCODER
from converters.folders.whole import all_or_none


def write_encoder_decoder(folder: Path, target: Path, convert: Callable[..., Conversion]) -> None:
    """Convert an encoder and its decoder separately, and copy the companion files.

    Args:
        folder: the folder that optimum-intel wrote.
        target: the output folder.
        convert: `converters.convert.convert` with the user's options.

    Raises:
        ConversionError: a model is missing or cannot be converted, or the files of the folder are inconsistent.
        OSError: a file cannot be written. The previous files are unchanged.
    """
    for name in (ENCODER, DECODER):
        if not (folder / name).is_file():
            raise path_error(folder, f"it contains no {name}", AS_WRITTEN)
    check_companions(folder)
    check_folder(folder, [folder / ENCODER, folder / DECODER])
    models = {name: (target / name).with_suffix(".onnx") for name in (ENCODER, DECODER)}
    with all_or_none(target, [path.name for path in models.values()]):
        for name, path in models.items():
            convert(folder / name, path)
        copy_companions(places(folder, target))
