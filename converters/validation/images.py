"""Images as a model's input, prepared as the model itself says: its layout, size, mean and scale.

What it says is what Model API writes into ``rt_info`` under ``model_info`` (a conversion: in its metadata): ``resize_type``,
``pad_value``, ``reverse_input_channels``, ``mean_values`` and ``scale_values``, in this order, on pixels from 0 to 255, or
``embedded_processing``: all of it is in the graph. As there, channels stand as blue, green, red unless they are to be
reversed; a model that says nothing gets red, green, blue. What ``conversion_parameters`` tell is in the graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from converters.metadata_keys import MODEL_API
from converters.validation.arrays import InputSpec
from onnx_specops.runtime.errors import MissingExtraError

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}

_CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}
_FITS = ("standard", "fit_to_window", "fit_to_window_letterbox", "crop")


@dataclass(frozen=True)
class Preparation:
    """How an image becomes an input.

    Attributes:
        resize_type: ``"standard"`` (to the size, whatever the sides' ratio), ``"fit_to_window"`` and
            ``"fit_to_window_letterbox"`` (the whole image, in the corner or in the middle) or ``"crop"`` (its middle).
        pad_value: what stands where a fitted image does not reach.
        blue_first: whether channels stand as blue, green, red.
        mean: what is subtracted from each channel; empty for nothing.
        scale: what each channel is divided by; empty for nothing.
    """

    resize_type: str = "standard"
    pad_value: int = 0
    blue_first: bool = False
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    @classmethod
    def stated(cls, information: Mapping[str, str]) -> Preparation:
        """What the model says of itself.

        Args:
            information: its run-time information, or an ONNX model's metadata: names joined by blanks, and texts.

        Raises:
            ValueError: it says what has no meaning.
        """
        if (channels := information.get(MODEL_API)) is not None:  # the graph prepares the image
            return cls(blue_first=channels == "bgr")
        told = {k.removeprefix("model_info "): v for k, v in information.items() if k.startswith("model_info ")}
        if not told or _yes(told.get("embedded_processing", "")):
            return cls()
        resize_type = told.get("resize_type") or "standard"
        if resize_type not in _FITS:
            raise ValueError(f"the model asks for the resize_type {resize_type!r}, which is not one of {', '.join(_FITS)}")
        pad = _numbers(told.get("pad_value", ""))
        return cls(
            resize_type,
            int(pad[0]) if pad else 0,
            not _yes(told.get("reverse_input_channels", "")),
            _numbers(told.get("mean_values", "")),
            _numbers(told.get("scale_values", "")),
        )


def _yes(text: str) -> bool:
    return text.strip().lower() in ("true", "yes", "1")


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in re.findall(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", text))


def load_image(path: Path, spec: InputSpec, layout: str, preparation: Preparation) -> np.ndarray:
    """An image as the input.

    Args:
        path: the image, of any format that Pillow reads.
        spec: the input; a height or width that it leaves open is the image's own, any other open dimension 1.
        layout: what its dimensions are, as ``[N,C,H,W]``; where empty, it is told by where the channels are.
        preparation: what is to be done to the image.

    Raises:
        MissingExtraError: Pillow is not installed.
        ValueError: the file is no image, or the input takes none.
    """
    letters = letters_of(spec, layout)
    sizes = dict(zip(letters, spec.dims or (), strict=True))
    image = _open(path, sizes["C"] or 3)
    pixels = _sized(image, sizes["W"] or image.width, sizes["H"] or image.height, preparation)
    values = pixels.reshape(*pixels.shape[:2], -1)
    if values.shape[2] == 3 and preparation.blue_first:
        values = values[..., ::-1]
    if preparation.mean or preparation.scale:
        mean, scale = (_per_channel(v, values.shape[2]) for v in (preparation.mean or (0.0,), preparation.scale or (1.0,)))
        values = (values.astype(np.float32) - mean) / scale
    if np.dtype(spec.dtype).kind in "iu":
        limits = np.iinfo(spec.dtype)
        values = np.clip(np.rint(values), limits.min, limits.max)
    order = [letter for letter in letters if letter in "HWC"]
    values = values.transpose(["HWC".index(letter) for letter in order])
    for place, letter in enumerate(letters):
        if letter not in "HWC":
            values = np.repeat(np.expand_dims(values, place), sizes[letter] or 1, place)
    return np.ascontiguousarray(values.astype(spec.dtype))


def letters_of(spec: InputSpec, layout: str) -> str:
    """What the input's dimensions are: ``"NCHW"``; raises ``ValueError`` where it is no image's."""
    letters = re.sub(r"[^A-Za-z?]", "", layout).upper()
    if spec.dims is None:
        raise ValueError(f"{spec.name} is no image's: its rank is unknown")
    rank = len(spec.dims)
    if not letters and rank in (3, 4):
        first, last = spec.dims[rank - 3], spec.dims[-1]
        letters = "NCHW"[4 - rank :] if first in _CHANNELS or last not in _CHANNELS else "NHWC"[4 - rank :]
    if len(letters) != rank or any(letters.count(letter) != 1 for letter in "CHW"):
        raise ValueError(f"{spec.name} is no image's: {layout or f'it has {rank} dimensions'}")
    if dict(zip(letters, spec.dims, strict=True))["C"] not in (None, *_CHANNELS):
        raise ValueError(f"{spec.name} is no image's: it has {spec.dims[letters.index('C')]} channels")
    return letters


def _open(path: Path, channels: int) -> Any:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingExtraError("pillow", "an image as input", "images") from None
    try:
        with Image.open(path) as image:
            return image.convert(_CHANNELS[channels])
    except UnidentifiedImageError:
        raise ValueError(f"{path} is neither an image that Pillow reads nor an .npz or .npy file") from None
    except (Image.DecompressionBombError, SyntaxError, EOFError) as error:
        raise ValueError(f"{path}: {error}") from None


def _sized(image: Any, width: int, height: int, preparation: Preparation) -> np.ndarray:
    from PIL import Image, ImageOps

    size, method = (width, height), Image.Resampling.BILINEAR
    if image.size == size:
        return np.asarray(image)
    if preparation.resize_type == "standard":
        return np.asarray(image.resize(size, method))
    if preparation.resize_type == "crop":
        return np.asarray(ImageOps.fit(image, size, method))
    colour = preparation.pad_value if image.mode == "L" else (preparation.pad_value,) * len(image.mode)
    middle = (0.5, 0.5) if preparation.resize_type == "fit_to_window_letterbox" else (0.0, 0.0)
    return np.asarray(ImageOps.pad(image, size, method, color=colour, centering=middle))


def _per_channel(values: Sequence[float], channels: int) -> np.ndarray:
    if len(values) not in (1, channels):
        raise ValueError(f"the model states {len(values)} mean or scale values for {channels} channels")
    return np.asarray(values, np.float32)
