"""Images as inputs of a model, prepared as image_processor_config.json describes.

The file is in the format of onnxruntime-genai, and describes the image processing of transformers.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.settings import read_json

ImageLike = str | os.PathLike[str] | np.ndarray
"""The path of an image, or ``[height, width, 3]`` in RGB with 256 levels."""

CROP = 336
"""The height and width of a crop of Phi-3 vision."""

_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # of CLIP, which encodes crops
_CUBIC = -0.75  # the coefficient of PyTorch's cubic interpolation
_MAX_RATIO = 200
_MOST_PIXELS = 1 << 26
_INTERPOLATIONS = {"NEAREST": 0, "LANCZOS": 1, "LINEAR": 2, "CUBIC": 3}  # as Pillow numbers them


@dataclass(frozen=True)
class Prepared:
    """An image as an input.

    Attributes:
        pixels: ``[1, 3, height, width]``, or patches ``[patches, elements]``.
        grid: ``[1, 3]``, the numbers of frames, rows and columns of patches; ``None`` without patches.
        sizes: ``[1, 2]``, height and width of an image in crops ``[1, crops, 3, height, width]``; ``None`` without crops.
    """

    pixels: np.ndarray
    grid: np.ndarray | None
    sizes: np.ndarray | None = None


class ImageProcessor:
    """Prepares images.

    Args:
        path: the file.

    Raises:
        GenerationError: the file is missing or has unknown operations.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            found = read_json(path)["processor"]["transforms"]
            self._steps = [(str(step["operation"]["type"]), step["operation"].get("attrs", {})) for step in found]
        except FileNotFoundError:
            raise GenerationError(f"{path} does not exist: create it with specops convert FOLDER -o OUT --genai") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise GenerationError(f"{path} does not describe operations: {type(error).__name__} {error}") from error
        if unknown := {kind for kind, _ in self._steps} - _STEPS.keys():
            raise GenerationError(f"{path} has unknown operations: {', '.join(sorted(unknown))}")

    def __call__(self, image: ImageLike) -> Prepared:
        """Prepare an image.

        Raises:
            GenerationError: the image cannot be read, its sides differ by more than a factor of 200, or the file has invalid
                attributes.
        """
        value: Any = image
        for kind, attributes in self._steps:
            try:
                with np.errstate(all="ignore"):
                    value = _STEPS[kind](value, attributes)
            except GenerationError:
                raise
            except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
                message = f"the attributes of its {kind} are invalid: {type(error).__name__} {error}"
                raise GenerationError(f"{self._path}: {message}") from error
        found = value if isinstance(value, Prepared) else Prepared(np.ascontiguousarray(value[None]), None)
        if not np.isfinite(found.pixels).all():
            raise GenerationError(f"{self._path}: its attributes give values that are not finite numbers")
        return found


def _decode(image: ImageLike, attributes: Mapping[str, Any]) -> np.ndarray:
    if isinstance(image, np.ndarray):
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise GenerationError(f"the image is {image.dtype} {list(image.shape)}; expected uint8 [height, width, 3]")
        return image
    pillow = _pillow()
    from PIL import ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # twice as many pixels are an error
            with pillow.open(image) as opened:
                turned = ImageOps.exif_transpose(opened)
                if turned.mode.startswith("I;16"):  # Pillow would clip 16 bits to 8
                    turned = pillow.fromarray((np.asarray(turned) >> 8).astype(np.uint8))
                if turned.mode in ("I", "F"):
                    raise ValueError("its pixels have 32 bits; expected 8 or 16")
                return np.asarray(turned.convert("RGB"))
    except Exception as error:  # decoders of damaged files also raise SyntaxError, struct.error, ...
        raise GenerationError(f"{os.fspath(image)} cannot be read as an image: {error}") from error


def _resize(image: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    height, width = attributes["height"], attributes["width"]
    if attributes.get("smart_resize"):
        # onnxruntime-genai ignores the largest size, which is that of Mistral 3, and rounds as for Qwen2-VL
        sized = _size_within if attributes["height"] else _smart_size
        height, width = sized(image.shape[0], image.shape[1], attributes)
    if image.shape[:2] == (height, width):
        return image
    if height * width > _MOST_PIXELS:
        raise ValueError(f"images become {height} x {width} pixels")
    resample = _INTERPOLATIONS[attributes.get("interpolation", "CUBIC")]
    return np.asarray(_pillow().fromarray(image).resize((width, height), resample))


def _smart_size(height: int, width: int, attributes: Mapping[str, Any]) -> tuple[int, int]:
    """Return multiples of the merged patches, near the image's size and within the limits of pixels."""
    if max(height, width) > _MAX_RATIO * min(height, width):
        raise GenerationError(f"an image of {height} x {width} pixels is too narrow")
    factor = attributes["patch_size"] * attributes["merge_size"]
    least, most = attributes["min_pixels"], attributes["max_pixels"]
    high, wide = (max(factor, round(size / factor) * factor) for size in (height, width))
    if high * wide > most:
        scale = math.sqrt(height * width / most)
        high, wide = (max(factor, math.floor(size / scale / factor) * factor) for size in (height, width))
    elif high * wide < least:
        scale = math.sqrt(least / (height * width))
        high, wide = (math.ceil(size * scale / factor) * factor for size in (height, width))
    return high, wide


def _size_within(height: int, width: int, attributes: Mapping[str, Any]) -> tuple[int, int]:
    """Return the next multiples of the merged patches for an image that is not larger than stated."""
    ratio = max(height / attributes["height"], width / attributes["width"], 1.0)
    factor = attributes["patch_size"] * attributes["merge_size"]
    high, wide = (max(factor, math.ceil(math.floor(size / ratio) / factor) * factor) for size in (height, width))
    return high, wide


def _rescale(image: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    return image.astype(np.float32) * np.float32(attributes.get("rescale_factor", 1 / 255))


def _normalize(image: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    mean, deviation = (np.array(attributes[name], np.float32) for name in ("mean", "std"))
    return (image - mean) / deviation


def _permute(image: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    return image.transpose(attributes["dims"])


def _unchanged(image: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    return image


def _patches(image: np.ndarray, attributes: Mapping[str, Any]) -> Prepared:
    """Split an image ``[height, width, 3]`` into patches, sorted by the token that they become."""
    patch, merge, frames = (attributes[name] for name in ("patch_size", "merge_size", "temporal_patch_size"))
    rows, columns = image.shape[0] // patch, image.shape[1] // patch
    blocks = image.reshape(rows // merge, merge, patch, columns // merge, merge, patch, 3)
    ordered = blocks.transpose(0, 3, 1, 4, 6, 2, 5)  # ..., channel, row, column
    repeated = np.repeat(ordered[:, :, :, :, :, None], frames, axis=5)
    grid = np.array([[1, rows, columns]], np.int64)
    return Prepared(np.ascontiguousarray(repeated.reshape(rows * columns, -1)), grid)


def _crops(image: np.ndarray, attributes: Mapping[str, Any]) -> Prepared:
    """Split an image ``[height, width, 3]`` into crops. The first crop is the whole image."""
    most = attributes["num_crops"]
    large = image if image.shape[1] >= image.shape[0] else image.transpose(1, 0, 2)
    padded = _padded(large, most)
    whole = padded if large is image else padded.transpose(1, 0, 2)
    values = _normalize(_rescale(whole, {}), {"mean": _MEAN, "std": _DEVIATION}).transpose(2, 0, 1)
    rows, columns = (size // CROP for size in whole.shape[:2])
    parts = values.reshape(3, rows, CROP, columns, CROP).transpose(1, 3, 0, 2, 4).reshape(-1, 3, CROP, CROP)
    small = _reduced(_reduced(values, rows).transpose(0, 2, 1), columns).transpose(0, 2, 1)
    pixels = np.concatenate([small[None], parts])[None]
    return Prepared(np.ascontiguousarray(pixels), None, np.array([whole.shape[:2]], np.int64))


def _padded(image: np.ndarray, most: int) -> np.ndarray:
    """Return an image that is not high, resized to as many crops as possible, at most ``most``, between white rows."""
    ratio = image.shape[1] / image.shape[0]
    columns = 1
    while (columns + 1) * math.ceil((columns + 1) / ratio) <= most:
        columns += 1
    width = columns * CROP
    height = int(width / ratio)
    if not height:
        raise GenerationError(f"an image of {image.shape[0]} x {image.shape[1]} pixels is too narrow")
    resized = _resize(image, {"height": height, "width": width, "interpolation": "LINEAR"})
    padding = -height % CROP
    return np.pad(resized, [(padding // 2, padding - padding // 2), (0, 0), (0, 0)], constant_values=255)


def _reduced(values: np.ndarray, scale: int) -> np.ndarray:
    """Reduce the second dimension of ``[channels, rows, columns]`` by an integer, with PyTorch's cubic interpolation."""
    if scale % 2:
        return values[:, scale // 2 :: scale]
    last = values.shape[1] - 1  # each result is in the middle of two rows
    after = np.arange(scale // 2, last + 1, scale)
    far = values[:, np.maximum(after - 2, 0)] + values[:, np.minimum(after + 1, last)]
    return np.float32(0.5 - _CUBIC / 8) * (values[:, after - 1] + values[:, after]) + np.float32(_CUBIC / 8) * far


_STEPS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "DecodeImage": _decode,
    "Resize": _resize,
    "Rescale": _rescale,
    "Normalize": _normalize,
    "Permute3D": _permute,
    "PatchImage": _patches,
    "Phi3ImageTransform": _crops,
    "PixtralImageSizes": _unchanged,
}


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise GenerationError("images require the package pillow: pip install 'onnx-specops[images]'") from None
    return Image
