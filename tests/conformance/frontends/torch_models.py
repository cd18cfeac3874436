"""Models of PyTorch, as programs of `torch.export`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.conformance.frontends.model import Arrays


def numbers(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


class _Function(nn.Module):
    """A function of inputs, with the modules that it needs."""

    def __init__(self, function: Callable, **modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.Hardswish(),
        nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU6(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(8, 5), nn.Softmax(1),
    )  # fmt: skip


def recurrent() -> nn.Module:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.gru = nn.LSTM(6, 8, bidirectional=True, batch_first=True), nn.GRU(16, 4, batch_first=True)

        def forward(self, tokens):
            states, (hidden, cell) = self.lstm(tokens)
            return self.gru(states)[0], hidden, cell

    return Net()


def detection() -> nn.Module:
    class Net(nn.Module):
        def forward(self, boxes, scores):
            corners = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs()], 1)
            values, kept = scores.topk(8)
            best = corners[kept]
            least, most = torch.max(best[:, None, :2], best[:, :2]), torch.min(best[:, None, 2:], best[:, 2:])
            return best, values, kept, (most - least).clamp(min=0).prod(2)

    return Net()


def embeddings() -> nn.Module:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.bag = nn.Embedding(20, 6, padding_idx=0), nn.EmbeddingBag(20, 6, mode="sum")

        def forward(self, tokens, offsets):
            return self.table(tokens).mean(0), self.bag(tokens, offsets)

    return Net()


def control_flow() -> nn.Module:
    class Net(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda v: v * 2.0, lambda v: v.abs() + 1.0, (x,))

    return Net()


def dynamic_batch() -> nn.Module:
    return nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.Linear(16, 4), nn.LogSoftmax(1))


def attention() -> nn.Module:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)

        def forward(self, x, mask):
            query, key, value = (v.unflatten(2, (2, 4)).transpose(1, 2) for v in self.qkv(x).chunk(3, 2))
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            return self.norm(x + self.out(mixed.transpose(1, 2).flatten(2)))

    return Net()


def image_to_image() -> nn.Module:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.narrow, self.wide = nn.Conv2d(3, 8, 3, padding=1), nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1)

        def forward(self, image):
            x = self.wide(F.elu(F.instance_norm(self.narrow(image.float() / 255))))
            x = F.interpolate(F.pixel_shuffle(x, 2), size=(31, 37), mode="bilinear", align_corners=False)
            x = F.interpolate(F.pad(x, (1, 2, 3, 4), mode="reflect"), scale_factor=2.0, mode="nearest")
            return F.grid_sample(x, torch.full((1, 5, 6, 2), 0.25), align_corners=False), x

    return Net()


def narrow() -> nn.Module:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.from_numpy(numbers(1, 8, 8)).bfloat16())

        def forward(self, x):
            return (x.bfloat16() @ self.weight).float(), x.half().float()

    return Net()


def indexing() -> nn.Module:
    class Net(nn.Module):
        def forward(self, x, places):
            scattered = x.index_copy(0, places, torch.ones(3, 5))
            values, order = x.topk(3, 1)
            return {
                "sums": x.cumsum(1),
                "sliced": scattered[::2, 1:-1, None] * F.one_hot(places, 5)[:, None, :],
                "values": values,
                "order": order,
                "rolled": scattered.roll(1, 1).flip(0),
                "products": torch.einsum("ij,kj->ik", x, scattered),
            }

    return Net()


_TOKENS = np.array([3, 1, 4, 1, 5, 9], np.int64)
NETWORKS: dict[str, tuple[Callable[[], nn.Module], Arrays, Any]] = {
    "cnn": (cnn, {"input": numbers(20, 2, 3, 16, 16)}, None),
    "recurrent": (recurrent, {"tokens": numbers(21, 2, 7, 6)}, None),
    "detection": (detection, {"boxes": numbers(22, 30, 4), "scores": np.abs(numbers(23, 30))}, None),
    "embeddings": (embeddings, {"tokens": _TOKENS, "offsets": np.array([0, 2, 5], np.int64)}, None),
    "control_flow": (control_flow, {"x": numbers(24, 3, 4)}, None),
    "dynamic_batch": (dynamic_batch, {"input": numbers(25, 5, 10)}, ({0: torch.export.Dim("batch")},)),
    "attention": (attention, {"x": numbers(26, 2, 5, 8), "mask": np.tril(np.ones((5, 5), bool))}, None),
    "image_to_image": (
        image_to_image,
        {"image": np.random.default_rng(27).integers(0, 256, (1, 3, 12, 16)).astype(np.uint8)},
        None,
    ),
    "narrow": (narrow, {"x": numbers(28, 3, 8)}, None),
    "indexing": (indexing, {"x": numbers(29, 6, 5), "places": np.array([4, 0, 2], np.int64)}, None),
}


def models(folder: Path) -> list[tuple[str, Path, str, Arrays, Arrays]]:
    made = []
    for name, (build, inputs, dynamic) in NETWORKS.items():
        torch.manual_seed(0)
        module = build().eval()
        given = tuple(map(torch.from_numpy, inputs.values()))
        program = torch.export.export(module, given, dynamic_shapes=dynamic)
        (folder / name).mkdir()
        torch.export.save(program, folder / name / "model.pt2")
        with torch.no_grad():
            results = module(*given)
        results = results if isinstance(results, (dict, tuple)) else (results,)
        named = results if isinstance(results, dict) else {str(place): value for place, value in enumerate(results)}
        made.append((name, folder / name, "model.pt2", inputs, {key: value.numpy() for key, value in named.items()}))
    return made


MAKERS = {"pt2": models}
