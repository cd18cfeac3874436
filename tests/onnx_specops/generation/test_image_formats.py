"""Images of unusual formats: the pixels that they have, or one clear error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_specops.generation import GenerationError
from onnx_specops.generation.images import ImageProcessor


@pytest.fixture
def processor(tmp_path: Path) -> ImageProcessor:
    path = tmp_path / "image_processor_config.json"
    path.write_text('{"processor": {"transforms": [{"operation": {"type": "DecodeImage"}}]}}')
    return ImageProcessor(path)


@pytest.mark.parametrize(
    ("mode", "pixel", "expected"),
    [
        ("L", 200, [200] * 3),
        ("LA", (200, 0), [200] * 3),  # transparency is not applied, as in transformers
        ("RGBA", (1, 2, 3, 0), [1, 2, 3]),
        ("1", 1, [255] * 3),
        ("I;16", 300, [1] * 3),
        ("I;16", 65535, [255] * 3),
    ],
)
def test_modes_of_images(mode: str, pixel: object, expected: list[int], processor: ImageProcessor, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new(mode, (2, 3), pixel).save(tmp_path / "image.png")
    pixels = processor(tmp_path / "image.png").pixels
    np.testing.assert_array_equal(pixels, np.broadcast_to(np.array(expected, np.uint8), (1, 3, 2, 3)))


def test_images_that_cannot_be_read(processor: ImageProcessor, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "image.tiff"
    for mode in ("I", "F"):
        image.new(mode, (2, 3), 1).save(path)
        with pytest.raises(GenerationError, match="its pixels have 32 bits"):
            processor(path)
    noise = image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8))
    noise.save(tmp_path / "image.png")
    whole = (tmp_path / "image.png").read_bytes()
    for content in (b"", whole[:33], whole[: len(whole) // 2], b"<!DOCTYPE html>"):
        (tmp_path / "image.png").write_bytes(content)
        with pytest.raises(GenerationError, match=r"image\.png cannot be read as an image"):
            processor(tmp_path / "image.png")
