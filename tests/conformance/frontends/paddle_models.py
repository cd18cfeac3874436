"""Models of PaddlePaddle, as .pdmodel and .pdiparams."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tests.conformance.frontends.model import Arrays

os.environ["FLAGS_enable_pir_api"] = "0"  # noqa: SIM112  # OpenVINO 2026.4 reads no .json

import paddle
from paddle import nn
from paddle.nn import functional as F
from paddle.static import InputSpec


def numbers(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


class Cnn(nn.Layer):
    """Convolutions, a depthwise one among them, batch normalization, pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2D(3, 8, 3, stride=2, padding=1), nn.BatchNorm2D(8), nn.Hardswish(),
            nn.Conv2D(8, 8, 3, padding=1, groups=8), nn.ReLU6(), nn.MaxPool2D(2),
            nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(8, 5), nn.Softmax(),
        )  # fmt: skip

    def forward(self, image):
        return self.layers(image)


class Recurrent(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, direction="bidirect")
        self.linear = nn.Linear(16, 3)

    def forward(self, tokens):
        states, _ = self.lstm(tokens)
        return self.linear(states)


class Detection(nn.Layer):
    """Boxes of a YOLO head, and their suppression."""

    def forward(self, head, size):
        boxes, scores = paddle.vision.ops.yolo_box(
            head, size, anchors=[10, 13, 16, 30], class_num=3, conf_thresh=0.1, downsample_ratio=8
        )
        scores = paddle.transpose(scores, [0, 2, 1])
        kept, index, count = paddle.vision.ops.matrix_nms(
            boxes, scores, score_threshold=0.05, post_threshold=0.05, nms_top_k=20, keep_top_k=10, return_index=True
        )
        return kept, index, count


class Embeddings(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 6)

    def forward(self, tokens):
        mask = paddle.cast(tokens != 0, "float32").unsqueeze(-1)
        mean = (self.table(tokens) * mask).sum(1) / paddle.clip(mask.sum(1), 1.0)
        values, nearest = paddle.topk(paddle.matmul(F.normalize(mean, axis=1), self.table.weight, transpose_y=True), 3)
        return mean, nearest, values


class ControlFlow(nn.Layer):
    """A condition, and a loop with a given number of steps."""

    def forward(self, x, steps):
        y = paddle.static.nn.cond(paddle.sum(x) > 0, lambda: x * 2.0, lambda: paddle.abs(x))
        step = paddle.zeros([1], "int64")
        _, y, _ = paddle.static.nn.while_loop(
            lambda k, v, n: k < n, lambda k, v, n: [k + 1, paddle.tanh(v + 0.5), n], [step, y, steps]
        )
        return y


class DynamicBatch(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(10, 16), nn.Linear(16, 4)

    def forward(self, features):
        return F.softmax(self.second(F.gelu(self.first(features))))


class Attention(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu")

    def forward(self, x):
        return self.block(x)


class ImageToImage(nn.Layer):
    """Resizing, a transposed convolution, pixel shuffle, padding."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.wide = nn.Conv2D(3, 8, 3, padding=1), nn.Conv2DTranspose(8, 4, 3, stride=2, padding=1)

    def forward(self, image):
        x = self.wide(F.elu(self.narrow(image)))
        x = F.interpolate(F.pixel_shuffle(x, 2), size=[31, 37], mode="bilinear")
        return F.interpolate(F.pad(x, [1, 2, 3, 4], mode="reflect"), scale_factor=2, mode="nearest")


class Half(nn.Layer):
    """16-bit floats, for which PaddlePaddle's CPU kernels only have casts."""

    def forward(self, x):
        narrow = paddle.cast(paddle.cast(x, "float16"), "float32")
        return narrow.sum(1), paddle.cast(narrow * 1.5, "float16")


class Indexing(nn.Layer):
    """Scatters, slices, cumulative sums, one-hot."""

    def forward(self, x, places):
        scattered = paddle.scatter(x, places, paddle.ones([3, 5]))
        sliced = scattered[::2, 1:-1].unsqueeze(-1) * F.one_hot(places, 5).unsqueeze(1)
        return paddle.cumsum(x, 1), sliced, paddle.roll(scattered, 1, 1)


class Regions(nn.Layer):
    """Regions of a map, and a deformable convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = nn.Conv2D(4, 18, 3, padding=1)
        self.deform = paddle.vision.ops.DeformConv2D(4, 6, 3, padding=1)

    def forward(self, maps, boxes):
        maps = self.deform(maps, self.offsets(maps))
        return paddle.vision.ops.roi_align(maps, boxes, paddle.to_tensor([2], "int32"), 3, 0.5, aligned=False)


def _spec(name: str, *shape, dtype: str = "float32") -> InputSpec:
    return InputSpec(list(shape), dtype, name)


_CORNERS = np.abs(numbers(33, 2, 4)) * 3
NETWORKS: dict[str, tuple[type, list[InputSpec], Arrays]] = {
    "cnn": (Cnn, [_spec("image", 2, 3, 16, 16)], {"image": numbers(20, 2, 3, 16, 16)}),
    "recurrent": (Recurrent, [_spec("tokens", 2, 7, 6)], {"tokens": numbers(21, 2, 7, 6)}),
    "detection": (
        Detection,
        [_spec("head", 1, 16, 4, 4), _spec("size", 1, 2, dtype="int32")],
        {"head": numbers(22, 1, 16, 4, 4), "size": np.array([[32, 32]], np.int32)},
    ),
    "embeddings": (
        Embeddings,
        [_spec("tokens", 3, 6, dtype="int64")],
        {"tokens": np.array([[3, 1, 4, 0, 0, 0], [1, 5, 9, 2, 6, 5], [8, 0, 0, 0, 0, 0]], np.int64)},
    ),
    "control_flow": (
        ControlFlow,
        [_spec("x", 3, 4), _spec("steps", 1, dtype="int64")],
        {"x": numbers(24, 3, 4), "steps": np.array([3], np.int64)},
    ),
    "dynamic_batch": (DynamicBatch, [_spec("features", -1, 10)], {"features": numbers(25, 5, 10)}),
    "attention": (Attention, [_spec("x", 2, 5, 8)], {"x": numbers(26, 2, 5, 8)}),
    "image_to_image": (ImageToImage, [_spec("image", 1, 3, 12, 16)], {"image": numbers(27, 1, 3, 12, 16)}),
    "half": (Half, [_spec("x", 3, 8)], {"x": numbers(28, 3, 8)}),
    "indexing": (
        Indexing,
        [_spec("x", 6, 5), _spec("places", 3, dtype="int64")],
        {"x": numbers(29, 6, 5), "places": np.array([4, 0, 2], np.int64)},
    ),
    "regions": (
        Regions,
        [_spec("maps", 1, 4, 10, 12), _spec("boxes", 2, 4)],
        {"maps": numbers(30, 1, 4, 10, 12), "boxes": np.concatenate([_CORNERS[:, :2], _CORNERS[:, :2] + 8], 1)},
    ),
}


def models(folder: Path) -> list[tuple[str, Path, str, Arrays, Arrays]]:
    made = []
    for name, (kind, specs, inputs) in NETWORKS.items():
        paddle.seed(0)
        layer = kind()
        layer.eval()
        try:
            paddle.jit.save(layer, str(folder / name / "model"), input_spec=specs)
        except Exception as error:
            print(f"{name}: {error}")
            continue
        loaded = paddle.jit.load(str(folder / name / "model"))
        loaded.eval()
        results = loaded(*map(paddle.to_tensor, inputs.values()))
        results = results if isinstance(results, (list, tuple)) else [results]
        for extra in (folder / name).iterdir():
            if extra.suffix not in (".pdmodel", ".pdiparams"):
                extra.unlink()
        outputs = {str(place): value.numpy() for place, value in enumerate(results)}
        made.append((name, folder / name, "model.pdmodel", inputs, outputs))
    return made


MAKERS = {"paddle": models}
