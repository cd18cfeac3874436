"""Images as a model's input, prepared according to the model's metadata: layout, size, mean and scale.

Model API writes the metadata into ``rt_info`` under ``model_info``, and conversions write it into ``metadata_props``:
``resize_type``, ``pad_value``, ``reverse_input_channels``, ``mean_values`` and ``scale_values``, in this order, for pixels
from 0 to 255. ``embedded_processing`` means that the graph contains the preprocessing. As in Model API, the channel order is
blue, green, red, unless the channels are reversed. For a model without metadata, it is red, green, blue. The graph already
applies ``conversion_parameters``.
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
class Preprocessing:
    """The preprocessing of an image as an input.

    Attributes:
        resize_type: ``"standard"`` (to the size, regardless of the aspect ratio), ``"fit_to_window"`` and
            ``"fit_to_window_letterbox"`` (the whole image, in the corner or the middle) or ``"crop"`` (its middle).
        pad_value: the value outside a fitted image.
        blue_first: whether the channel order is blue, green, red.
        mean: the number that is subtracted from each channel; empty for none.
        scale: the number by which each channel is divided; empty for none.
    """

    resize_type: str = "standard"
    pad_value: int = 0
    blue_first: bool = False
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    @classmethod
    def stated(cls, information: Mapping[str, str]) -> Preprocessing:
        """Read the preprocessing from a model's metadata.

        Args:
            information: its run-time information, or an ONNX model's metadata; nested names are joined by blanks.

        Raises:
            ValueError: the metadata is invalid.
        """
        if (channels := information.get(MODEL_API)) is not None:  # the graph prepares the image
            return cls(blue_first=channels == "bgr")
        told = {k.removeprefix("model_info "): v for k, v in information.items() if k.startswith("model_info ")}
        if not told or _yes(told.get("embedded_processing", "")):
            return cls()
        resize_type = told.get("resize_type") or "standard"
        if resize_type not in _FITS:
            raise ValueError(f"the model's resize_type {resize_type!r} is not one of {', '.join(_FITS)}")
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


def load_image(path: Path, spec: InputSpec, layout: str, preprocessing: Preprocessing) -> np.ndarray:
    """Load an image as the input.

    Args:
        path: the image, in any format that Pillow reads.
        spec: the input. A dynamic height or width is the image's own, and any other dynamic dimension is 1.
        layout: the layout, such as ``[N,C,H,W]``. If it is empty, it is derived from the number of channels.
        preprocessing: the preprocessing of the image.

    Raises:
        MissingExtraError: Pillow is not installed.
        ValueError: the file is not an image, or the input does not take one.
    """
    letters = layout_of(spec, layout)
    sizes = dict(zip(letters, spec.dims or (), strict=True))
    image = _open(path, sizes["C"] or 3)
    pixels = _sized(image, sizes["W"] or image.width, sizes["H"] or image.height, preprocessing)
    values = pixels.reshape(*pixels.shape[:2], -1)
    if values.shape[2] == 3 and preprocessing.blue_first:
        values = values[..., ::-1]
    if preprocessing.mean or preprocessing.scale:
        mean, scale = (
            _per_channel(v, values.shape[2]) for v in (preprocessing.mean or (0.0,), preprocessing.scale or (1.0,))
        )
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


def layout_of(spec: InputSpec, layout: str) -> str:
    """Return the layout of the input, such as ``"NCHW"``. Raise ``ValueError`` if it is not an image's."""
    letters = re.sub(r"[^A-Za-z?]", "", layout).upper()
    if spec.dims is None:
        raise ValueError(f"{spec.name} is not an image input: its rank is unknown")
    rank = len(spec.dims)
    if not letters and rank in (3, 4):
        first, last = spec.dims[rank - 3], spec.dims[-1]
        letters = "NCHW"[4 - rank :] if first in _CHANNELS or last not in _CHANNELS else "NHWC"[4 - rank :]
    if len(letters) != rank or any(letters.count(letter) != 1 for letter in "CHW"):
        raise ValueError(f"{spec.name} is not an image input: {layout or f'it has {rank} dimensions'}")
    if dict(zip(letters, spec.dims, strict=True))["C"] not in (None, *_CHANNELS):
        raise ValueError(f"{spec.name} is not an image input: it has {spec.dims[letters.index('C')]} channels")
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
        raise ValueError(f"{path} is not an .npz file, an .npy file or an image that Pillow can read") from None
    except (Image.DecompressionBombError, SyntaxError, EOFError) as error:
        raise ValueError(f"{path}: {error}") from None


def _sized(image: Any, width: int, height: int, preprocessing: Preprocessing) -> np.ndarray:
    from PIL import Image, ImageOps

    size, method = (width, height), Image.Resampling.BILINEAR
    if image.size == size:
        return np.asarray(image)
    if preprocessing.resize_type == "standard":
        return np.asarray(image.resize(size, method))
    if preprocessing.resize_type == "crop":
        return np.asarray(ImageOps.fit(image, size, method))
    color = preprocessing.pad_value if image.mode == "L" else (preprocessing.pad_value,) * len(image.mode)
    middle = (0.5, 0.5) if preprocessing.resize_type == "fit_to_window_letterbox" else (0.0, 0.0)
    return np.asarray(ImageOps.pad(image, size, method, color=color, centering=middle))


def _per_channel(values: Sequence[float], channels: int) -> np.ndarray:
    if len(values) not in (1, channels):
        raise ValueError(f"the model states {len(values)} mean or scale values for {channels} channels")
    return np.asarray(values, np.float32)
