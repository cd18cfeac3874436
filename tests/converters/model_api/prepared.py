"""Images as Model API prepares them: their checksums, recorded in prepared.json.

In an environment with openvino-model-api: ``python -m tests.converters.model_api.prepared``
"""

from __future__ import annotations

import itertools
import json
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as o

CHECKSUMS = Path(__file__).with_name("prepared.json")
RESIZES = [
    *itertools.product(("standard", "fit_to_window", "fit_to_window_letterbox"), ("LINEAR", "CUBIC", "NEAREST")),
    ("crop", "LINEAR"),
]
SIZES = [(64, 96), (57, 31)]
COUNT = 20
"""The number of images of each kind of resizing."""


def network(height: int, width: int, **info: str) -> ov.Model:
    """A network that returns its image."""
    image = o.parameter([1, 3, height, width], np.float32, name="input")
    image.output(0).get_tensor().set_names({"input"})
    same = o.multiply(image, o.constant(np.float32(1)))
    same.output(0).get_tensor().set_names({"image_embeddings"})
    model = ov.Model([o.result(same)], [image])
    for name, text in {"model_type": "sam_image_encoder", "pad_value": "77", **info}.items():
        model.set_rt_info(text, ["model_info", name])
    return model


def images(seed: int, height: int, width: int, least: int = 1) -> Iterator[np.ndarray]:
    """Noise of random sizes: with a side of the least size, and of once, twice and three times the size of the network."""
    rng = np.random.default_rng(seed)
    for number in range(COUNT):
        rows, columns = (int(side) for side in rng.integers(least, 200, 2))
        if number % 10 == 0:
            rows = least
        elif number % 10 == 1:
            columns = least
        elif number % 10 < 5:
            rows, columns = height * (number % 10 - 1), width * (number % 10 - 1)
        yield rng.integers(0, 256, (rows, columns, 3)).astype(np.uint8)


def unchanged(height: int, width: int) -> Iterator[np.ndarray]:
    """Noise of one size, in different ranges."""
    rng = np.random.default_rng(5)
    for most in (256, 100, 40, 8, 2):
        yield rng.integers(0, most, (height, width, 3)).astype(np.uint8)


def smallest(kind: str) -> int:
    """The least side of an image: a crop of one pixel is empty."""
    return 2 if kind == "crop" else 1


PERCENTILES = {"intensity_percentile_low": "5", "intensity_percentile_high": "87.5"}
"""The parameters of the network whose image is scaled between percentiles."""
CROPS = [(64, 96), (57, 31), (48, 48)]
"""The heights and widths of networks that take crops of frames."""


def checksum(image: np.ndarray) -> int:
    """A checksum of a prepared image or of bytes; `floats_checksum` of fractions."""
    return zlib.crc32(np.ascontiguousarray(image.astype(np.uint8)).tobytes())


def floats_checksum(image: np.ndarray) -> int:
    """A checksum of the exact values."""
    return zlib.crc32(np.ascontiguousarray(image.astype(np.float32)).tobytes())


def resizes(count: int = 200) -> Iterator[tuple[np.ndarray, int, int]]:
    """Bytes of one and three channels, and the size that they are resized to: larger, smaller, twice and half as large."""
    rng = np.random.default_rng(3)
    for number in range(count):
        rows, columns, height, width = (int(side) for side in rng.integers(1, 160, 4))
        match number % 8:
            case 0:
                rows = 1
            case 1:
                columns = 1
            case 2:
                height, width = 2 * rows, 2 * columns
            case 3:
                rows, columns = 2 * height, 2 * width
            case 4:
                height = rows
            case 5:
                height, width = rows, 1
        shape = (rows, columns, 3) if number % 3 else (rows, columns, 1)
        yield rng.integers(0, 256, shape).astype(np.uint8), height, width


def main() -> None:
    """Record the checksums of Model API's and OpenCV's images."""
    import cv2
    from model_api.adapters import OpenvinoAdapter, create_core
    from model_api.adapters.utils import create_intensity_fn, crop_resize_ocv

    found: dict[str, list[int]] = {}
    for kind, mode in RESIZES:
        for height, width in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                ov.save_model(network(height, width), f"{folder}/model.xml", compress_to_fp16=False)
                exact = {"INFERENCE_PRECISION_HINT": "f32"}
                adapter = OpenvinoAdapter(create_core(), f"{folder}/model.xml", device="CPU", plugin_config=exact)
                adapter.embed_preprocessing("NCHW", kind, mode, (width, height), 77)
                told = []
                for image in images(height, height, width, smallest(kind)):
                    (prepared,) = adapter.infer_sync({"input": image[None]}).values()
                    told.append(checksum(prepared))
            found[f"{kind} {mode} {height}x{width}"] = told
    between = create_intensity_fn("percentile", percentile_low=5.0, percentile_high=87.5)
    assert between is not None
    found["percentile"] = [floats_checksum(between(image)) for image in unchanged(64, 96)]
    for height, width in CROPS:
        frames = images(height, height, width, 2)
        found[f"frames {height}x{width}"] = [checksum(crop_resize_ocv(frame, (width, height))) for frame in frames]
    found["opencv"] = [checksum(cv2.resize(image, (width, height))) for image, height, width in resizes()]
    CHECKSUMS.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
