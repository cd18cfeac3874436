"""Networks for volumes and videos."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.torch_networks.parts import Activation, Made, Residual, leaky, relu, silu


def _conv(i: int, o: int, k: int | tuple[int, ...] = 3, s: int | tuple[int, ...] = 1, g: int = 1,
          act: Activation | None = relu) -> nn.Sequential:  # fmt: skip
    pads = tuple(n // 2 for n in (k if isinstance(k, tuple) else (k,) * 3))
    layers = [nn.Conv3d(i, o, k, s, pads, groups=g, bias=False), nn.BatchNorm3d(o)]
    return nn.Sequential(*layers, *([act(o)] if act else []))


def _volume(act: Activation) -> Made:
    body = [_conv(i, o, 3, s, act=act) for i, o, s in ((3, 16, 2), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1))]
    return nn.Sequential(*body, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 100)), (1, 3, 16, 112, 112)


class Unet(nn.Module):
    """A U-Net of volumes with InstanceNorm and transposed convolutions (nnU-Net)."""

    def __init__(self, first: int, act: Activation) -> None:
        super().__init__()

        def pair(i: int, o: int, s: int = 1) -> nn.Sequential:
            return nn.Sequential(nn.Conv3d(i, o, 3, s, 1), nn.InstanceNorm3d(o, affine=True), act(o),
                                 nn.Conv3d(o, o, 3, padding=1), nn.InstanceNorm3d(o, affine=True), act(o))  # fmt: skip

        a, b, c = first, 2 * first, 4 * first
        self.down = nn.ModuleList([pair(1, a), pair(a, b, 2), pair(b, c, 2)])
        self.up = nn.ModuleList([nn.ConvTranspose3d(c, b, 2, 2), nn.ConvTranspose3d(b, a, 2, 2)])
        self.back, self.last = nn.ModuleList([pair(2 * b, b), pair(2 * a, a)]), nn.Conv3d(a, 3, 1)

    def forward(self, x):
        kept = []
        for stage in self.down:
            x = stage(x)
            kept.append(x)
        for k, (wider, back) in enumerate(zip(self.up, self.back, strict=True)):
            x = back(torch.cat([wider(x), kept[-2 - k]], 1))
        return self.last(x)


def _shrinking() -> Made:
    """V-Net's residual blocks, with strided and transposed convolutions."""
    block = lambda c: Residual(nn.Sequential(_conv(c, c, act=leaky), _conv(c, c, act=None)), leaky(c))  # noqa: E731
    wider = lambda i, o: nn.Sequential(nn.ConvTranspose3d(i, o, 4, 2, 1), nn.BatchNorm3d(o), leaky(o))  # noqa: E731
    return nn.Sequential(_conv(1, 16, act=leaky), block(16), _conv(16, 32, 2 + 1, 2, act=leaky), block(32),
                         _conv(32, 64, 3, 2, act=leaky), block(64), wider(64, 32), wider(32, 16),
                         nn.Conv3d(16, 2, 1), nn.Softmax(1)), (1, 1, 32, 48, 48)  # fmt: skip


class Films(nn.Module):
    """X3D: depthwise convolutions over time and space, gates, Swish."""

    class Block(nn.Module):
        def __init__(self, i: int, o: int, s: int) -> None:
            super().__init__()
            wide, step = 9 * i // 4 // 4 * 4, (1, s, s)
            self.first, self.second = _conv(i, wide, 1), _conv(wide, wide, 3, step, wide, None)
            self.gate = nn.Sequential(
                nn.AdaptiveAvgPool3d(1), nn.Conv3d(wide, 8, 1), nn.ReLU(), nn.Conv3d(8, wide, 1), nn.Sigmoid()
            )
            self.last = _conv(wide, o, 1, act=None)
            self.skip = _conv(i, o, 1, step, act=None) if i != o or s > 1 else nn.Identity()

        def forward(self, x):
            y = self.second(self.first(x))
            return F.relu(self.skip(x) + self.last(F.silu(y * self.gate(y))))

    def __init__(self) -> None:
        super().__init__()
        block = self.Block
        self.first = nn.Sequential(_conv(3, 24, (1, 3, 3), (1, 2, 2), act=None), _conv(24, 24, (5, 1, 1), 1, 24))
        self.body = nn.Sequential(block(24, 24, 2), block(24, 24, 1), block(24, 48, 2), block(48, 48, 1), block(48, 96, 2))
        self.last = nn.Linear(96, 100)

    def forward(self, x):
        return self.last(self.body(self.first(x)).mean((2, 3, 4)))


def _clips() -> Made:
    """C3D: plain convolutions and max pooling."""
    layers = [_conv(3, 32), nn.MaxPool3d((1, 2, 2)), _conv(32, 64), nn.MaxPool3d(2), _conv(64, 128), nn.MaxPool3d(2)]
    return nn.Sequential(*layers, _conv(128, 128), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(128 * 25, 101)), (
        1,
        3,
        8,
        80,
        80,
    )


NETWORKS: dict[str, Callable[[], Made]] = {
    "volume_relu": lambda: _volume(relu),
    "volume_silu": lambda: _volume(silu),
    "volume_unet": lambda: (Unet(16, leaky), (1, 1, 32, 64, 64)),
    "volume_residual": _shrinking,
    "films": lambda: (Films(), (1, 3, 8, 112, 112)),
    "clips": _clips,
}
