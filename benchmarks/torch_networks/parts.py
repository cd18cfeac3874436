"""Layers that several networks share, and their activations: functions of the number of channels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

Activation = Callable[[int], nn.Module]


@dataclass(frozen=True)
class Tokens:
    """An input of token numbers below ``count``."""

    shape: tuple[int, ...]
    count: int


Input = tuple[int, ...] | Tokens
Made = tuple[nn.Module, Input]
"""A network, and the shape of its input."""


def relu(_: int) -> nn.Module:
    return nn.ReLU()


def relu6(_: int) -> nn.Module:
    return nn.ReLU6()


def silu(_: int) -> nn.Module:
    return nn.SiLU()


def hard_swish(_: int) -> nn.Module:
    return nn.Hardswish()


def leaky(_: int) -> nn.Module:
    return nn.LeakyReLU(0.1)


def elu(_: int) -> nn.Module:
    return nn.ELU()


def gelu(_: int) -> nn.Module:
    return nn.GELU()


def mish(_: int) -> nn.Module:
    return nn.Mish()


def conv(i: int, o: int, k: int = 3, s: int = 1, g: int = 1, act: Activation | None = None, d: int = 1) -> nn.Sequential:
    """A convolution with a BatchNorm and an activation."""
    layers = [nn.Conv2d(i, o, k, s, d * (k // 2), dilation=d, groups=g, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act(o)] if act else []))


def separable(i: int, o: int, k: int, s: int, act: Activation) -> nn.Sequential:
    """A depthwise convolution, and one of single pixels."""
    return nn.Sequential(conv(i, i, k, s, i, act), conv(i, o, 1, act=act))


def up(i: int, o: int, k: int = 4, act: Activation = relu) -> nn.Sequential:
    """A transposed convolution that doubles the size."""
    return nn.Sequential(nn.ConvTranspose2d(i, o, k, 2, (k - 2) // 2, bias=False), nn.BatchNorm2d(o), act(o))


class Residual(nn.Module):
    def __init__(self, inner: nn.Module, after: nn.Module | None = None) -> None:
        super().__init__()
        self.inner, self.after = inner, after or nn.Identity()

    def forward(self, x):
        return self.after(x + self.inner(x))


class Gate(nn.Module):
    """Factors for the channels, from their means."""

    def __init__(self, c: int, less: int = 4, last: type[nn.Module] = nn.Sigmoid) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c // less, 1), nn.ReLU(), nn.Conv2d(c // less, c, 1), last()
        )

    def forward(self, x):
        return x * self.inner(x)


class Several(nn.Module):
    """A backbone in stages, with a head on each of the last stages."""

    def __init__(self, stages: Sequence[nn.Module], heads: Sequence[nn.Module]) -> None:
        super().__init__()
        self.stages, self.heads = nn.ModuleList(stages), nn.ModuleList(heads)

    def forward(self, x):
        found = []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        tail = found[len(found) - len(self.heads) :]
        return torch.cat([head(f).flatten(1) for head, f in zip(self.heads, tail, strict=True)], 1)


class Pyramid(nn.Module):
    """ResNet-like stages of widths from ``first``; returns their results from the second one on."""

    def __init__(self, first: int, act: Activation, count: int = 4, deep: int = 1) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv(3, first, 7, 2, act=act), nn.MaxPool2d(3, 2, 1))
        widths = [first, *(first << k for k in range(count))]
        self.stages = nn.ModuleList(
            nn.Sequential(
                conv(i, o, 3, 1 if k == 0 else 2, act=act),
                *(Residual(nn.Sequential(conv(o, o, act=act), conv(o, o)), act(o)) for _ in range(deep)),
            )
            for k, (i, o) in enumerate(itertools.pairwise(widths))
        )

    def forward(self, x):
        x, found = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return found
