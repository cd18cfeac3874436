"""Networks from images to images, and from images to vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.torch_networks.parts import (
    Activation,
    Gate,
    Made,
    Pyramid,
    Residual,
    conv,
    hard_swish,
    leaky,
    relu,
    relu6,
    separable,
    silu,
    up,
)


class Resolution(nn.Module):
    """Residual blocks and a PixelShuffle, added to the enlarged image."""

    def __init__(self, act: Activation) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.body = nn.Sequential(*(Residual(nn.Sequential(conv(32, 32, act=act), conv(32, 32))) for _ in range(4)))
        self.last = nn.Sequential(nn.Conv2d(32, 48, 3, padding=1), nn.PixelShuffle(4))

    def forward(self, x):
        return self.last(self.body(self.first(x))) + F.interpolate(x, scale_factor=4.0, mode="bicubic")


class Dense(nn.Module):
    """ESRGAN's dense block."""

    def __init__(self, c: int, growth: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(c + k * growth, c if k == 4 else growth, 3, padding=1) for k in range(5)
        )  # fmt: skip

    def forward(self, x):
        parts = [x]
        for layer in self.convs[:-1]:
            parts.append(F.leaky_relu(layer(torch.cat(parts, 1)), 0.2))
        return x + 0.2 * self.convs[-1](torch.cat(parts, 1))


class Enlarge(nn.Module):
    """Nearest-neighbor or bilinear upsampling, and a convolution."""

    def __init__(self, i: int, o: int, act: Activation, mode: str = "nearest") -> None:
        super().__init__()
        self.mode, self.conv = mode, conv(i, o, act=act)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2.0, mode=self.mode))


class Unet(nn.Module):
    """A U-Net with transposed convolutions."""

    def __init__(self, act: Activation) -> None:
        super().__init__()
        widths = [3, 16, 32, 64, 128]
        self.down = nn.ModuleList(
            nn.Sequential(conv(i, o, act=act), conv(o, o, act=act)) for i, o in itertools.pairwise(widths)
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(o, o // 2, 2, 2) for o in (128, 64, 32))
        self.back = nn.ModuleList(conv(o, o // 2, act=act) for o in (128, 64, 32))
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down[:-1]:
            kept.append(block(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.down[-1](x)
        for wider, block in zip(self.up, self.back, strict=True):
            x = block(torch.cat([wider(x), kept.pop()], 1))
        return self.last(x)


def _groups(act: Activation) -> Made:
    class Shuffled(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                conv(c, c, 1, g=4, act=act), nn.ChannelShuffle(4), conv(c, c, 3, g=c), conv(c, c, 1, g=4)
            )

        def forward(self, x):
            return F.relu(x + self.inner(x))

    return nn.Sequential(conv(3, 64, 3, 2, act=act), nn.MaxPool2d(3, 2, 1), *(Shuffled(64) for _ in range(3)),
                         conv(64, 128, 3, 2, g=8, act=act), *(Shuffled(128) for _ in range(4)),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)), (1, 3, 224, 224)  # fmt: skip


def _fsrcnn() -> Made:
    layers = [nn.Conv2d(1, 56, 5, padding=2), nn.PReLU(56), nn.Conv2d(56, 12, 1), nn.PReLU(12)]
    layers += [layer for _ in range(4) for layer in (nn.Conv2d(12, 12, 3, padding=1), nn.PReLU(12))]
    layers += [nn.Conv2d(12, 56, 1), nn.PReLU(56), nn.ConvTranspose2d(56, 1, 9, 3, 3)]
    return nn.Sequential(*layers), (1, 1, 180, 320)


def _edsr() -> Made:
    body = [Residual(nn.Sequential(nn.Conv2d(48, 48, 3, padding=1), nn.ReLU(), nn.Conv2d(48, 48, 3, padding=1)))] * 4
    last = [nn.Conv2d(48, 192, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(48, 3, 3, padding=1)]
    return nn.Sequential(nn.Conv2d(3, 48, 3, padding=1), *body, *last), (1, 3, 96, 128)


def _esrgan() -> Made:
    body = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), Dense(32, 16), Dense(32, 16), Dense(32, 16))
    return nn.Sequential(body, Enlarge(32, 32, leaky), Enlarge(32, 32, leaky), nn.Conv2d(32, 3, 3, padding=1)), (
        1,
        3,
        64,
        64,
    )


def _dcgan() -> Made:
    layers = [nn.ConvTranspose2d(100, 256, 4, 1, 0, bias=False), nn.BatchNorm2d(256), nn.ReLU()]
    return nn.Sequential(*layers, up(256, 128), up(128, 64), up(64, 32), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh()), (
        1, 100, 1, 1,
    )  # fmt: skip


def _style() -> Made:
    def layer(i: int, o: int, k: int, s: int = 1) -> nn.Sequential:
        return nn.Sequential(nn.ReflectionPad2d(k // 2), nn.Conv2d(i, o, k, s), nn.InstanceNorm2d(o, affine=True), nn.ReLU())

    body = [Residual(nn.Sequential(layer(64, 64, 3), layer(64, 64, 3))) for _ in range(3)]
    back = [nn.Upsample(scale_factor=2.0), layer(64, 32, 3), nn.Upsample(scale_factor=2.0), layer(32, 16, 3)]
    last = [nn.ReflectionPad2d(4), nn.Conv2d(16, 3, 9)]
    return nn.Sequential(layer(3, 16, 9), layer(16, 32, 3, 2), layer(32, 64, 3, 2), *body, *back, *last), (1, 3, 192, 192)


class Diffusion(nn.Module):
    """A U-Net with GroupNorm, SiLU and attention."""

    class Block(nn.Module):
        def __init__(self, i: int, o: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                nn.GroupNorm(8, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU(),
                nn.Conv2d(o, o, 3, padding=1),
            )  # fmt: skip
            self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x):
            return self.skip(x) + self.inner(x)

    class Attention(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            self.norm, self.qkv, self.out = nn.GroupNorm(8, c), nn.Linear(c, 3 * c), nn.Linear(c, c)

        def forward(self, x):
            n, c, h, w = x.shape
            tokens = self.norm(x).flatten(2).transpose(1, 2)
            q, k, v = (t.view(n, h * w, 4, c // 4).transpose(1, 2) for t in self.qkv(tokens).chunk(3, -1))
            found = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, h * w, c)
            return x + self.out(found).transpose(1, 2).view(n, c, h, w)

    def __init__(self) -> None:
        super().__init__()
        block, attention = self.Block, self.Attention
        self.first = nn.Conv2d(4, 64, 3, padding=1)
        self.down = nn.ModuleList([block(64, 64), nn.Sequential(block(64, 128), attention(128))])
        self.less = nn.ModuleList([nn.Conv2d(64, 64, 3, 2, 1), nn.Conv2d(128, 128, 3, 2, 1)])
        self.middle = nn.Sequential(block(128, 192), attention(192), block(192, 128))
        self.more = nn.ModuleList([nn.Conv2d(128, 128, 3, padding=1), nn.Conv2d(128, 128, 3, padding=1)])
        self.up = nn.ModuleList([nn.Sequential(block(256, 128), attention(128)), block(192, 64)])
        self.last = nn.Sequential(nn.GroupNorm(8, 64), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1))

    def forward(self, x):
        x, kept = self.first(x), []
        for block, less in zip(self.down, self.less, strict=True):
            kept.append(block(x))
            x = less(kept[-1])
        x = self.middle(x)
        for more, block in zip(self.more, self.up, strict=True):
            x = block(torch.cat([more(F.interpolate(x, scale_factor=2.0)), kept.pop()], 1))
        return self.last(x)


def _decoder() -> Made:
    block = Diffusion.Block
    layers = [nn.Conv2d(4, 96, 3, padding=1), block(96, 96), Diffusion.Attention(96)]
    for i, o in ((96, 64), (64, 32), (32, 16)):
        layers += [nn.Upsample(scale_factor=2.0), nn.Conv2d(i, i, 3, padding=1), block(i, o)]
    return nn.Sequential(*layers, nn.GroupNorm(8, 16), nn.SiLU(), nn.Conv2d(16, 3, 3, padding=1)), (1, 4, 24, 24)


class Segmentation(nn.Module):
    """A backbone, pooled context of several sizes (PSPNet), and bilinear upsampling."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Pyramid(32, relu, 3)
        self.pools = nn.ModuleList(
            nn.Sequential(nn.AdaptiveAvgPool2d(k), nn.Conv2d(128, 32, 1), nn.ReLU()) for k in (1, 2, 4)
        )
        self.join, self.last = conv(224, 64, act=relu), nn.Conv2d(64, 21, 1)

    def forward(self, x):
        size, f = x.shape[2:], self.backbone(x)[-1]
        parts = [F.interpolate(pool(f), size=f.shape[2:], mode="bilinear", align_corners=False) for pool in self.pools]
        return F.interpolate(self.last(self.join(torch.cat([f, *parts], 1))), size=size, mode="bilinear").argmax(1)


class Bilateral(nn.Module):
    """A shallow path and a deep one with gates, as in BiSeNet."""

    def __init__(self) -> None:
        super().__init__()
        self.shallow = nn.Sequential(conv(3, 32, 3, 2, act=relu), conv(32, 32, 3, 2, act=relu), conv(32, 64, 3, 2, act=relu))
        self.deep = Pyramid(32, relu, 3)
        self.gates = nn.ModuleList([nn.Sequential(conv(c, 64, act=relu), Gate(64)) for c in (64, 128)])
        self.join, self.last = nn.Sequential(conv(128, 64, 1, act=relu), Gate(64)), nn.Conv2d(64, 19, 1)

    def forward(self, x):
        near, (_, middle, deep) = self.shallow(x), self.deep(x)
        deep = F.interpolate(self.gates[1](deep), scale_factor=2.0) + self.gates[0](middle)
        found = self.join(torch.cat([near, F.interpolate(deep, size=near.shape[2:])], 1))
        return F.interpolate(self.last(found), scale_factor=8.0, mode="bilinear", align_corners=True)


class Selfie(nn.Module):
    """Inverted bottlenecks with HardSwish and gates; upsampled stages join the earlier ones (MediaPipe)."""

    class Block(nn.Module):
        def __init__(self, i: int, o: int, s: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                conv(i, 4 * i, 1, act=hard_swish), conv(4 * i, 4 * i, 5, s, 4 * i, hard_swish),
                Gate(4 * i, 8, nn.Hardsigmoid), conv(4 * i, o, 1),
            )  # fmt: skip
            self.adds = i == o and s == 1

        def forward(self, x):
            return x + self.inner(x) if self.adds else self.inner(x)

    def __init__(self) -> None:
        super().__init__()
        block = self.Block
        self.down = nn.ModuleList([
            conv(3, 16, 3, 2, act=hard_swish), block(16, 16, 2), nn.Sequential(block(16, 24, 2), block(24, 24, 1)),
            nn.Sequential(block(24, 32, 2), block(32, 32, 1), block(32, 32, 1)),
        ])  # fmt: skip
        self.back = nn.ModuleList(conv(i, o, 1, act=relu) for i, o in ((32, 24), (24, 16), (16, 16)))
        self.refine = nn.ModuleList(Residual(separable(c, c, 3, 1, relu)) for c in (24, 16, 16))
        self.last = nn.Sequential(nn.ConvTranspose2d(16, 1, 2, 2), nn.Sigmoid())

    def forward(self, x):
        found = []
        for stage in self.down:
            x = stage(x)
            found.append(x)
        for k, (back, refine) in enumerate(zip(self.back, self.refine, strict=True)):
            wide = F.interpolate(back(x), scale_factor=2.0, mode="bilinear", align_corners=False)
            x = refine(wide + found[-2 - k])
        return self.last(x)


class Matting(nn.Module):
    """Half of the channels have BatchNorm, the others InstanceNorm, as in MODNet."""

    class Norm(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            self.batch, self.instance, self.half = nn.BatchNorm2d(c // 2), nn.InstanceNorm2d(c - c // 2), c // 2

        def forward(self, x):
            return torch.cat([self.batch(x[:, : self.half]), self.instance(x[:, self.half :])], 1)

    def __init__(self) -> None:
        super().__init__()

        def layer(i: int, o: int, s: int = 1) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(i, o, 3, s, 1), self.Norm(o), nn.ReLU())

        self.down = nn.ModuleList([layer(3, 16, 2), layer(16, 32, 2), layer(32, 64, 2)])
        self.up = nn.ModuleList([layer(96, 32), layer(48, 16)])
        self.last = nn.Sequential(nn.Conv2d(16, 1, 3, padding=1), nn.Sigmoid())

    def forward(self, x):
        found = []
        for stage in self.down:
            x = stage(x)
            found.append(x)
        for k, stage in enumerate(self.up):
            x = stage(torch.cat([F.interpolate(x, scale_factor=2.0, mode="bilinear"), found[1 - k]], 1))
        return F.interpolate(self.last(x), scale_factor=2.0, mode="bilinear")


class Depth(nn.Module):
    """A pyramid that is joined from the deepest stage on, with bilinear upsampling (MiDaS)."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Pyramid(32, silu, 4)
        self.sides = nn.ModuleList(nn.Conv2d(32 << k, 64, 3, padding=1, bias=False) for k in range(4))
        unit = lambda: Residual(nn.Sequential(nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)))  # noqa: E731
        self.units = nn.ModuleList(unit() for _ in range(4))
        self.last = nn.Sequential(nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 1, 1), nn.ReLU())

    def forward(self, x):
        found, y = self.backbone(x), None
        for side, unit, f in zip(reversed(self.sides), self.units, reversed(found), strict=True):
            y = unit(side(f) if y is None else y + side(f))
            y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=True)
        return self.last(y)


def _faces() -> Made:
    """MobileFaceNet: PReLU and a depthwise convolution of all pixels."""

    def block(i: int, o: int, s: int, wide: int) -> nn.Module:
        inner = nn.Sequential(conv(i, wide, 1, act=nn.PReLU), conv(wide, wide, 3, s, wide, nn.PReLU), conv(wide, o, 1))
        return Residual(inner) if i == o and s == 1 else inner

    body = [conv(3, 64, 3, 2, act=nn.PReLU), conv(64, 64, 3, 1, 64, nn.PReLU), block(64, 64, 2, 128)]
    body += (
        [block(64, 64, 1, 128) for _ in range(4)] + [block(64, 128, 2, 256)] + [block(128, 128, 1, 256) for _ in range(6)]
    )
    last = [block(128, 128, 2, 512), block(128, 128, 1, 256), conv(128, 512, 1, act=nn.PReLU)]
    whole = [nn.Conv2d(512, 512, 7, groups=512, bias=False), nn.BatchNorm2d(512), nn.Flatten(), nn.Linear(512, 128)]
    return nn.Sequential(*body, *last, *whole), (1, 3, 112, 112)


def _recognition() -> Made:
    """ArcFace's residual blocks: BatchNorm before the first convolution, PReLU."""

    def block(i: int, o: int) -> nn.Module:
        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = nn.Sequential(nn.BatchNorm2d(i), conv(i, o, act=nn.PReLU), conv(o, o, 3, 2))
                self.skip = conv(i, o, 1, 2)

            def forward(self, x):
                return self.skip(x) + self.inner(x)

        return Block()

    return nn.Sequential(conv(3, 64, act=nn.PReLU), block(64, 64), block(64, 128), block(128, 256), block(256, 512),
                         nn.BatchNorm2d(512), nn.Flatten(), nn.Linear(512 * 49, 128)), (1, 3, 112, 112)  # fmt: skip


class Landmarks(nn.Module):
    """Inverted bottlenecks; the results of three sizes are joined (PFLD)."""

    def __init__(self) -> None:
        super().__init__()
        bottleneck = lambda i, o, s: nn.Sequential(  # noqa: E731
            conv(i, 2 * i, 1, act=relu6), conv(2 * i, 2 * i, 3, s, 2 * i, relu6), conv(2 * i, o, 1)
        )
        self.first = nn.Sequential(conv(3, 64, 3, 2, act=relu), conv(64, 64, 3, 1, 64, relu))
        self.second = nn.Sequential(bottleneck(64, 64, 2), *(Residual(bottleneck(64, 64, 1)) for _ in range(4)))
        self.third = nn.Sequential(bottleneck(64, 128, 2), *(Residual(bottleneck(128, 128, 1)) for _ in range(5)))
        self.fourth = bottleneck(128, 16, 1)
        self.fifth, self.sixth = conv(16, 32, 3, 2, act=relu), nn.Conv2d(32, 128, 7)
        self.last = nn.Linear(16 + 32 + 128, 196)

    def forward(self, x):
        a = self.fourth(self.third(self.second(self.first(x))))
        b = self.fifth(a)
        parts = [a.mean((2, 3)), b.mean((2, 3)), self.sixth(b).flatten(1)]
        return self.last(torch.cat(parts, 1))


class Persons(nn.Module):
    """Streams of 3x3 windows of different sizes with shared gates (OSNet)."""

    class Block(nn.Module):
        def __init__(self, i: int, o: int) -> None:
            super().__init__()
            c = o // 4
            light = lambda: nn.Sequential(nn.Conv2d(c, c, 1, bias=False), conv(c, c, 3, 1, c, relu))  # noqa: E731
            self.first, self.last, self.gate = conv(i, c, 1, act=relu), conv(c, o, 1), Gate(c, 4)
            self.streams = nn.ModuleList(nn.Sequential(*(light() for _ in range(k))) for k in (1, 2, 3, 4))
            self.skip = conv(i, o, 1) if i != o else nn.Identity()

        def forward(self, x):
            y = self.first(x)
            return F.relu(self.skip(x) + self.last(sum(self.gate(stream(y)) for stream in self.streams)))

    def __init__(self) -> None:
        super().__init__()
        block = self.Block
        between = lambda c: nn.Sequential(conv(c, c, 1, act=relu), nn.AvgPool2d(2))  # noqa: E731
        self.body = nn.Sequential(
            conv(3, 32, 7, 2, act=relu), nn.MaxPool2d(3, 2, 1), block(32, 128), block(128, 128), between(128),
            block(128, 192), block(192, 192), between(192), block(192, 256), block(256, 256), conv(256, 256, 1, act=relu),
        )  # fmt: skip
        self.last = nn.Linear(256, 256)

    def forward(self, x):
        return F.normalize(self.last(self.body(x).mean((2, 3))))


class Pose(nn.Module):
    """A backbone and three transposed convolutions (SimpleBaseline)."""

    def __init__(self, act: Activation) -> None:
        super().__init__()
        self.backbone = Pyramid(64, act, 4)
        self.up = nn.Sequential(up(512, 128, act=act), up(128, 128, act=act), up(128, 128, act=act), nn.Conv2d(128, 17, 1))

    def forward(self, x):
        return self.up(self.backbone(x)[-1])


class Hourglass(nn.Module):
    """Stages that shrink and grow, with additions between both halves."""

    def __init__(self, depth: int, c: int = 64) -> None:
        super().__init__()

        def block() -> nn.Module:
            less = c // 2
            return Residual(nn.Sequential(conv(c, less, 1, act=relu), conv(less, less, act=relu), conv(less, c, 1)))

        self.side, self.low, self.back = block(), block(), block()
        self.inner = Hourglass(depth - 1, c) if depth > 1 else block()

    def forward(self, x):
        low = self.back(self.inner(self.low(F.max_pool2d(x, 2))))
        return self.side(x) + F.interpolate(low, scale_factor=2.0)


def _openpose() -> Made:
    """Lightweight OpenPose: separable convolutions, dilations and two refinements."""

    class Open(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 256, 1)]
            self.body = nn.Sequential(conv(3, 32, 3, 2, act=relu), *(separable(i, o, 3, s, relu) for i, o, s in widths))
            self.reduce = nn.Sequential(conv(256, 128, 1, act=relu), Residual(separable(128, 128, 3, 1, nn.ELU)))
            self.first = nn.Sequential(conv(128, 128, act=relu), conv(128, 128, d=2, act=relu), nn.Conv2d(128, 57, 1))
            self.second = nn.Sequential(conv(185, 128, 1, act=relu), conv(128, 128, d=2, act=relu), nn.Conv2d(128, 57, 1))

        def forward(self, x):
            f = self.reduce(self.body(x))
            first = self.first(f)
            return torch.cat([first, self.second(torch.cat([f, first], 1))], 1)

    return Open(), (1, 3, 192, 256)


NETWORKS: dict[str, Callable[[], Made]] = {
    "resolution_prelu": lambda: (Resolution(nn.PReLU), (1, 3, 270, 480)),
    "resolution_relu": lambda: (Resolution(relu), (1, 3, 270, 480)),
    "unet_relu": lambda: (Unet(relu), (1, 3, 256, 256)),
    "unet_leaky": lambda: (Unet(leaky), (1, 3, 256, 256)),
    "groups_relu": lambda: _groups(relu),
    "groups_hardswish": lambda: _groups(hard_swish),
    "fsrcnn": _fsrcnn,
    "edsr": _edsr,
    "esrgan": _esrgan,
    "dcgan": _dcgan,
    "style": _style,
    "diffusion_unet": lambda: (Diffusion(), (1, 4, 32, 32)),
    "latent_decoder": _decoder,
    "segmentation_pools": lambda: (Segmentation(), (1, 3, 256, 256)),
    "segmentation_paths": lambda: (Bilateral(), (1, 3, 256, 256)),
    "selfie": lambda: (Selfie(), (1, 3, 256, 256)),
    "matting": lambda: (Matting(), (1, 3, 192, 192)),
    "depth": lambda: (Depth(), (1, 3, 224, 224)),
    "faces": _faces,
    "recognition": _recognition,
    "landmarks": lambda: (Landmarks(), (1, 3, 112, 112)),
    "persons": lambda: (Persons(), (1, 3, 256, 128)),
    "pose_relu": lambda: (Pose(relu), (1, 3, 256, 192)),
    "hourglass": lambda: (nn.Sequential(conv(3, 64, 7, 2, act=relu), Hourglass(4), nn.Conv2d(64, 16, 1)), (1, 3, 192, 192)),
    "openpose": _openpose,
}
