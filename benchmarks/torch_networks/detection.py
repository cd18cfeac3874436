"""Networks that detect objects, faces, hands and text."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.torch_networks.parts import (
    Activation,
    Made,
    Pyramid,
    Residual,
    Several,
    conv,
    elu,
    hard_swish,
    leaky,
    mish,
    relu,
    relu6,
    separable,
    silu,
    up,
)


class Split(nn.Module):
    """YOLOv8's block: half of the channels pass through bottlenecks, and all results are concatenated."""

    def __init__(self, i: int, o: int, n: int, act: Activation, shortcut: bool = True) -> None:
        super().__init__()
        self.half = o // 2
        self.first, self.last = conv(i, o, 1, act=act), conv((2 + n) * self.half, o, 1, act=act)
        inner = [nn.Sequential(conv(self.half, self.half, act=act), conv(self.half, self.half, act=act)) for _ in range(n)]
        self.inner = nn.ModuleList(Residual(block) if shortcut else block for block in inner)

    def forward(self, x):
        parts = list(self.first(x).split(self.half, 1))
        for block in self.inner:
            parts.append(block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    """YOLOv8n's backbone, neck and heads."""

    def __init__(self, act: Activation) -> None:
        super().__init__()
        self.low = nn.Sequential(conv(3, 16, 3, 2, act=act), conv(16, 32, 3, 2, act=act), Split(32, 32, 1, act),
                                 conv(32, 64, 3, 2, act=act), Split(64, 64, 2, act))  # fmt: skip
        self.middle = nn.Sequential(conv(64, 128, 3, 2, act=act), Split(128, 128, 2, act))
        self.high = nn.Sequential(conv(128, 256, 3, 2, act=act), Split(256, 256, 1, act), conv(256, 128, 1, act=act))
        self.pool, self.join = nn.MaxPool2d(5, 1, 2), conv(512, 256, 1, act=act)
        self.up = nn.Upsample(scale_factor=2.0)
        self.neck = nn.ModuleList([Split(384, 128, 1, act, False), Split(192, 64, 1, act, False)])
        self.down = nn.ModuleList([conv(64, 64, 3, 2, act=act), conv(128, 128, 3, 2, act=act)])
        self.back = nn.ModuleList([Split(192, 128, 1, act, False), Split(384, 256, 1, act, False)])
        self.heads = nn.ModuleList(
            nn.Sequential(conv(c, 64, act=act), conv(64, 64, act=act), nn.Conv2d(64, 144, 1)) for c in (64, 128, 256)
        )

    def forward(self, x):
        low = self.low(x)
        middle = self.middle(low)
        parts = [self.high(middle)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        high = self.join(torch.cat(parts, 1))
        m = self.neck[0](torch.cat([self.up(high), middle], 1))
        s = self.neck[1](torch.cat([self.up(m), low], 1))
        m = self.back[0](torch.cat([self.down[0](s), m], 1))
        h = self.back[1](torch.cat([self.down[1](m), high], 1))
        return torch.cat([head(f).flatten(2) for head, f in zip(self.heads, (s, m, h), strict=True)], 2)


def _ssd(act: Activation, size: int) -> Made:
    widths = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
    body = nn.Sequential(conv(3, 32, 3, 2, act=act), *(separable(i, o, 3, s, act) for i, o, s in widths),
                         *(separable(512, 512, 3, 1, act) for _ in range(5)))  # fmt: skip
    more = nn.Sequential(separable(512, 1024, 3, 2, act), separable(1024, 1024, 3, 1, act))
    heads = [nn.Conv2d(512, 24, 3, padding=1), nn.Conv2d(1024, 36, 3, padding=1)]
    return Several([body, more], heads), (1, 3, size, size)


def _hand(act: Activation, size: int) -> Made:
    def block(c: int) -> nn.Module:
        return Residual(nn.Sequential(conv(c, c, 5, g=c), conv(c, c, 1)), act(c))

    stages = [nn.Sequential(conv(3, 24, 3, 2, act=act), block(24), block(24))]
    for i, o in ((24, 48), (48, 96), (96, 160), (160, 160)):
        stages.append(nn.Sequential(separable(i, o, 5, 2, act), *(block(o) for _ in range(3))))
    return Several(stages, [nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(160, 63, 1))]), (1, 3, size, size)


class Palm(nn.Module):
    """MediaPipe's palm detection: NHWC interface, 5x5 depthwise convolutions, padded channels, bilinear upsampling."""

    class Block(nn.Module):
        def __init__(self, i: int, o: int, s: int, act: Activation) -> None:
            super().__init__()
            self.inner, self.act, self.more, self.stride = (
                nn.Sequential(conv(i, i, 5, s, i), conv(i, o, 1)),
                act(o),
                o - i,
                s,
            )

        def forward(self, x):
            y = self.inner(x)
            x = F.max_pool2d(x, 2) if self.stride == 2 else x
            return self.act(y + (F.pad(x, (0, 0, 0, 0, 0, self.more)) if self.more else x))

    def __init__(self, act: Activation) -> None:
        super().__init__()

        def stage(i: int, o: int, n: int) -> nn.Sequential:
            return nn.Sequential(self.Block(i, o, 2, act), *(self.Block(o, o, 1, act) for _ in range(n)))

        self.first = nn.Sequential(conv(3, 32, 5, 2, act=act), *(self.Block(32, 32, 1, act) for _ in range(3)))
        self.stages = nn.ModuleList([stage(32, 64, 3), stage(64, 128, 3), stage(128, 256, 3), stage(256, 256, 3)])
        self.sides = nn.ModuleList([conv(256, 256, 1, act=act), conv(256, 128, 1, act=act)])
        self.after = nn.ModuleList([self.Block(256, 256, 1, act), self.Block(128, 128, 1, act)])
        self.heads = nn.ModuleList(nn.Conv2d(c, n, 1) for c in (256, 128) for n in (6, 108))

    def forward(self, x):
        x, found = self.first(x.permute(0, 3, 1, 2)), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        maps = []
        for side, after, f in zip(self.sides, self.after, (found[2], found[1]), strict=True):
            wide = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
            x = after(side(wide) + f)
            maps.append(x)
        parts = [head(maps[k // 2]).permute(0, 2, 3, 1) for k, head in enumerate(self.heads)]
        return torch.cat([part.reshape(part.shape[0], -1) for part in parts], 1)


class Shuffled(nn.Module):
    """ShuffleNetV2's block."""

    def __init__(self, i: int, o: int, s: int, act: Activation) -> None:
        super().__init__()
        half = o // 2
        inside = i if s == 2 else half
        self.main = nn.Sequential(conv(inside, half, 1, act=act), conv(half, half, 3, s, half), conv(half, half, 1, act=act))
        self.side = nn.Sequential(conv(i, i, 3, s, i), conv(i, half, 1, act=act)) if s == 2 else None
        self.shuffle = nn.ChannelShuffle(2)

    def forward(self, x):
        if self.side is not None:
            return self.shuffle(torch.cat([self.side(x), self.main(x)], 1))
        kept, changed = x.chunk(2, 1)
        return self.shuffle(torch.cat([kept, self.main(changed)], 1))


class Nano(nn.Module):
    """NanoDet: ShuffleNetV2, a path of bilinear upsampling and 5x5 depthwise convolutions, heads with distributions."""

    def __init__(self, act: Activation) -> None:
        super().__init__()

        def stage(i: int, o: int, n: int) -> nn.Sequential:
            return nn.Sequential(Shuffled(i, o, 2, act), *(Shuffled(o, o, 1, act) for _ in range(n)))

        self.first = nn.Sequential(conv(3, 24, 3, 2, act=act), nn.MaxPool2d(3, 2, 1))
        self.stages = nn.ModuleList([stage(24, 116, 3), stage(116, 232, 7), stage(232, 464, 3)])
        self.sides = nn.ModuleList(conv(c, 96, 1, act=act) for c in (116, 232, 464))
        deep = lambda i: nn.Sequential(separable(i, 96, 5, 1, act))  # noqa: E731
        self.top, self.back = nn.ModuleList([deep(192), deep(192)]), nn.ModuleList([deep(192), deep(192)])
        self.down = nn.ModuleList([separable(96, 96, 5, 2, act) for _ in range(2)])
        self.heads = nn.ModuleList(
            nn.Sequential(separable(96, 96, 5, 1, act), separable(96, 96, 5, 1, act), nn.Conv2d(96, 112, 1))
            for _ in range(3)
        )

    def forward(self, x):
        x, found = self.first(x), []
        for stage, side in zip(self.stages, self.sides, strict=True):
            x = stage(x)
            found.append(side(x))
        low, middle, high = found
        wide = lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)  # noqa: E731
        middle = self.top[0](torch.cat([wide(high), middle], 1))
        low = self.top[1](torch.cat([wide(middle), low], 1))
        middle = self.back[0](torch.cat([self.down[0](low), middle], 1))
        high = self.back[1](torch.cat([self.down[1](middle), high], 1))
        parts = []
        for head, f in zip(self.heads, (low, middle, high), strict=True):
            scores, sides = head(f).flatten(2).split([80, 32], 1)
            parts.append(torch.cat([scores.sigmoid(), sides], 1))
        return torch.cat(parts, 2).transpose(1, 2)


class Roads(nn.Module):
    """YOLOP: one backbone, detection and two segmentations with nearest-neighbor upsampling."""

    class Cross(nn.Module):
        def __init__(self, i: int, o: int, n: int) -> None:
            super().__init__()
            half = o // 2
            self.first, self.side = conv(i, half, 1, act=hard_swish), nn.Conv2d(i, half, 1, bias=False)
            block = lambda: Residual(nn.Sequential(conv(half, half, 1, act=hard_swish), conv(half, half, act=hard_swish)))  # noqa: E731
            self.inner, self.through = nn.Sequential(*(block() for _ in range(n))), nn.Conv2d(half, half, 1, bias=False)
            self.norm, self.last = nn.BatchNorm2d(o), conv(o, o, 1, act=hard_swish)

        def forward(self, x):
            joined = torch.cat([self.through(self.inner(self.first(x))), self.side(x)], 1)
            return self.last(F.leaky_relu(self.norm(joined), 0.1))

    def __init__(self) -> None:
        super().__init__()
        cross, act = self.Cross, hard_swish
        self.focus = conv(12, 32, act=act)
        self.low = nn.Sequential(
            conv(32, 64, 3, 2, act=act), cross(64, 64, 1), conv(64, 128, 3, 2, act=act), cross(128, 128, 3)
        )
        self.middle = nn.Sequential(conv(128, 256, 3, 2, act=act), cross(256, 256, 3))
        self.high = nn.Sequential(conv(256, 512, 3, 2, act=act), conv(512, 256, 1, act=act))
        self.join = nn.Sequential(conv(1024, 512, 1, act=act), cross(512, 512, 1), conv(512, 256, 1, act=act))
        self.neck = nn.Sequential(cross(512, 256, 1), conv(256, 128, 1, act=act))
        self.head = nn.Conv2d(256, 18, 1)
        self.masks = nn.ModuleList(
            nn.Sequential(
                conv(256, 128, act=act), nn.Upsample(scale_factor=2.0), cross(128, 64, 1), conv(64, 32, act=act),
                nn.Upsample(scale_factor=2.0), conv(32, 16, act=act), cross(16, 8, 1), nn.Upsample(scale_factor=2.0),
                conv(8, 2, act=act), nn.Sigmoid(),
            )
            for _ in range(2)
        )  # fmt: skip

    def forward(self, x):
        parts = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        low = self.low(self.focus(torch.cat(parts, 1)))
        middle = self.middle(low)
        high = self.high(middle)
        high = self.join(torch.cat([high, *(F.max_pool2d(high, k, 1, k // 2) for k in (5, 9, 13))], 1))
        found = self.neck(torch.cat([F.interpolate(high, scale_factor=2.0), middle], 1))
        joined = torch.cat([F.interpolate(found, scale_factor=2.0), low], 1)
        return self.head(high).flatten(1), *(mask(joined) for mask in self.masks)


class Retina(nn.Module):
    """RetinaFace: a small MobileNet, a pyramid, and context modules with LeakyReLU."""

    class Context(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            self.wide, self.first = conv(c, c // 2), conv(c, c // 4, act=leaky)
            self.second, self.third = (
                conv(c // 4, c // 4),
                nn.Sequential(conv(c // 4, c // 4, act=leaky), conv(c // 4, c // 4)),
            )

        def forward(self, x):
            y = self.first(x)
            return F.relu(torch.cat([self.wide(x), self.second(y), self.third(y)], 1))

    def __init__(self) -> None:
        super().__init__()
        act = leaky
        self.stages = nn.ModuleList([
            nn.Sequential(conv(3, 8, 3, 2, act=act), separable(8, 16, 3, 1, act), separable(16, 32, 3, 2, act),
                          separable(32, 32, 3, 1, act), separable(32, 64, 3, 2, act), separable(64, 64, 3, 1, act)),
            nn.Sequential(separable(64, 128, 3, 2, act), *(separable(128, 128, 3, 1, act) for _ in range(5))),
            nn.Sequential(separable(128, 256, 3, 2, act), separable(256, 256, 3, 1, act)),
        ])  # fmt: skip
        self.sides = nn.ModuleList(conv(c, 64, 1, act=act) for c in (64, 128, 256))
        self.merge = nn.ModuleList(conv(64, 64, act=act) for _ in range(2))
        self.context = nn.ModuleList(self.Context(64) for _ in range(3))
        self.heads = nn.ModuleList(nn.Conv2d(64, 32, 1) for _ in range(3))

    def forward(self, x):
        found = []
        for stage, side in zip(self.stages, self.sides, strict=True):
            x = stage(x)
            found.append(side(x))
        low, middle, high = found
        middle = self.merge[0](middle + F.interpolate(high, size=middle.shape[2:]))
        low = self.merge[1](low + F.interpolate(middle, size=low.shape[2:]))
        parts = []
        for context, head, f in zip(self.context, self.heads, (low, middle, high), strict=True):
            y = head(context(f)).permute(0, 2, 3, 1)
            parts.append(y.reshape(y.shape[0], -1, 16))
        y = torch.cat(parts, 1)
        return y[..., :14], y[..., 14:].softmax(-1)


class Centers(nn.Module):
    """CenterNet: transposed convolutions, heads, and the peaks of the heat map."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Pyramid(32, relu, 4)
        self.up = nn.Sequential(up(256, 128), up(128, 64), up(64, 64))
        head = lambda o: nn.Sequential(conv(64, 64, act=relu), nn.Conv2d(64, o, 1))  # noqa: E731
        self.heat, self.size = head(20), head(4)

    def forward(self, x):
        f = self.up(self.backbone(x)[-1])
        heat = self.heat(f).sigmoid()
        peaks = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
        scores, places = peaks.flatten(1).topk(100)
        sizes = self.size(f).flatten(2)
        cells = places % sizes.shape[2]
        return scores, places, sizes.gather(2, cells[:, None].expand(-1, 4, -1))


class Texts(nn.Module):
    """A pyramid of four sizes, joined by nearest-neighbor upsampling, and two heads of transposed convolutions (DB)."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Pyramid(32, relu, 4)
        self.sides = nn.ModuleList(nn.Conv2d(32 << k, 64, 1, bias=False) for k in range(4))
        self.smooth = nn.ModuleList(nn.Conv2d(64, 16, 3, padding=1, bias=False) for _ in range(4))
        head = lambda: nn.Sequential(conv(64, 16, act=relu), up(16, 16, 2), nn.ConvTranspose2d(16, 1, 2, 2), nn.Sigmoid())  # noqa: E731
        self.heads = nn.ModuleList([head(), head()])

    def forward(self, x):
        sides = [side(f) for side, f in zip(self.sides, self.backbone(x), strict=True)]
        for k in (2, 1, 0):
            sides[k] = sides[k] + F.interpolate(sides[k + 1], scale_factor=2.0)
        size = sides[0].shape[2:]
        f = torch.cat([F.interpolate(smooth(s), size=size) for smooth, s in zip(self.smooth, sides, strict=True)], 1)
        probability, threshold = (head(f) for head in self.heads)
        return 1 / (1 + torch.exp(-50 * (probability - threshold)))


class Plates(nn.Module):
    """LPRNet: narrow convolutions, and pooling over channels."""

    class Small(nn.Module):
        def __init__(self, i: int, o: int) -> None:
            super().__init__()
            q = o // 4
            self.inner = nn.Sequential(
                nn.Conv2d(i, q, 1), nn.ReLU(), nn.Conv2d(q, q, (3, 1), padding=(1, 0)), nn.ReLU(),
                nn.Conv2d(q, q, (1, 3), padding=(0, 1)), nn.ReLU(), nn.Conv2d(q, o, 1), nn.BatchNorm2d(o), nn.ReLU(),
            )  # fmt: skip

        def forward(self, x):
            return self.inner(x)

    class Planes(nn.Module):
        """A maximum over neighboring pixels, of every ``step``-th channel."""

        def __init__(self, step: int, s: int) -> None:
            super().__init__()
            self.pool = nn.MaxPool3d((1, 3, 3), (step, 1, s))

        def forward(self, x):
            return self.pool(x[:, None])[:, 0]

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), self.Planes(1, 1),
                                   self.Small(64, 128), self.Planes(2, 2), self.Small(64, 256),
                                   self.Small(256, 256))  # fmt: skip
        self.second = nn.Sequential(self.Planes(4, 2), nn.Conv2d(64, 256, (1, 4)), nn.BatchNorm2d(256), nn.ReLU(),
                                    nn.Conv2d(256, 68, (13, 1)), nn.BatchNorm2d(68), nn.ReLU())  # fmt: skip
        self.last = nn.Conv2d(68 + 256, 68, 1)

    def forward(self, x):
        f = self.first(x)
        y = self.second(f)
        norm = f / (f**2).mean()
        g = F.adaptive_avg_pool2d(norm, (y.shape[2], y.shape[3]))
        return self.last(torch.cat([y, g], 1)).mean(2)


NETWORKS: dict[str, Callable[[], Made]] = {
    "yolo_silu": lambda: (Yolo(silu), (1, 3, 320, 320)),
    "yolo_hardswish": lambda: (Yolo(hard_swish), (1, 3, 320, 320)),
    "yolo_relu": lambda: (Yolo(relu), (1, 3, 320, 320)),
    "yolo_leaky": lambda: (Yolo(leaky), (1, 3, 320, 320)),
    "yolo_mish": lambda: (Yolo(mish), (1, 3, 320, 320)),
    "ssd_relu": lambda: _ssd(relu, 300),
    "ssd_relu6": lambda: _ssd(relu6, 300),
    "ssd_elu": lambda: _ssd(elu, 300),
    "hand_prelu": lambda: _hand(nn.PReLU, 224),
    "hand_relu": lambda: _hand(relu, 224),
    "palm_relu": lambda: (Palm(relu), (1, 192, 192, 3)),
    "palm_prelu": lambda: (Palm(nn.PReLU), (1, 192, 192, 3)),
    "nano_leaky": lambda: (Nano(leaky), (1, 3, 320, 320)),
    "roads": lambda: (Roads(), (1, 3, 256, 256)),
    "retina": lambda: (Retina(), (1, 3, 320, 320)),
    "centers": lambda: (Centers(), (1, 3, 256, 256)),
    "texts": lambda: (Texts(), (1, 3, 256, 256)),
    "plates": lambda: (Plates(), (1, 3, 24, 94)),
}
