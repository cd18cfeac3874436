"""Families of small modules for quantization: each function returns a module and the shapes of its inputs.

The widths are 8 to 32 channels, and the images 16 to 24 pixels. An input of the type ``int`` has token numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Made = tuple[nn.Module, Sequence[tuple[int, ...]]]
Activation = Callable[[int], nn.Module]

ACTIVATIONS: dict[str, Activation] = {
    "relu": lambda _: nn.ReLU(),
    "relu6": lambda _: nn.ReLU6(),
    "silu": lambda _: nn.SiLU(),
    "hardswish": lambda _: nn.Hardswish(),
    "prelu": nn.PReLU,
    "leaky": lambda _: nn.LeakyReLU(0.1),
    "clamp": lambda _: nn.Hardtanh(-0.8, 1.1),
    "sigmoid": lambda _: nn.Sigmoid(),
    "tanh": lambda _: nn.Tanh(),
    "gelu": lambda _: nn.GELU(),
    "gelu_tanh": lambda _: nn.GELU("tanh"),
    "elu": lambda _: nn.ELU(),
    "mish": lambda _: nn.Mish(),
    "hardsigmoid": lambda _: nn.Hardsigmoid(),
    "softplus": lambda _: nn.Softplus(),
    "selu": lambda _: nn.SELU(),
}
"""Name -> a function that returns the module for a number of channels."""


class Of(nn.Module):
    """A module whose ``forward`` is a function of the inputs and of its parts."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module | Sequence[nn.Module]) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part if isinstance(part, nn.Module) else nn.ModuleList(part))

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(self, *inputs)


def conv(
    i: int, o: int, k: int | tuple[int, int] = 3, s: int = 1, g: int = 1, act: Activation | None = None, d: int = 1
) -> nn.Module:
    """Return a Convolution with a BatchNormalization and an activation."""
    sizes = (k, k) if isinstance(k, int) else k
    pads = (sizes[0] // 2 * d, sizes[1] // 2 * d)
    layers = [nn.Conv2d(i, o, sizes, s, pads, dilation=d, groups=g, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act(o)] if act else []))


def residual(act: Activation) -> Made:
    def forward(m: Any, x: Any) -> Any:
        x = m.stem(x)
        x = m.after(m.first(x) + m.beside(x))
        return m.head(m.last(x + m.second(x)).mean((2, 3)))

    return Of(
        forward,
        stem=nn.Sequential(conv(3, 16, 3, 1, act=act), nn.MaxPool2d(3, 2, 1)),
        first=nn.Sequential(conv(16, 16, act=act), conv(16, 24, 1)),
        beside=conv(16, 24, 1),
        after=act(24),
        second=nn.Sequential(conv(24, 8, 1, act=act), conv(8, 24)),
        last=nn.Sequential(act(24), conv(24, 32, 3, 2, act=act)),
        head=nn.Linear(32, 10),
    ), [(2, 3, 24, 24)]


def mobile(act: Activation) -> Made:
    def forward(m: Any, x: Any) -> Any:
        x = m.stem(x)
        x = x + m.inverted(x)
        y = m.wide(x)
        y = y * m.gate(F.adaptive_avg_pool2d(y, 1))
        return m.head(m.down(y) + x)

    return Of(
        forward,
        stem=conv(3, 16, 3, 2, act=act),
        inverted=nn.Sequential(conv(16, 32, 1, act=act), conv(32, 32, 3, 1, 32, act), conv(32, 16, 1)),
        wide=nn.Sequential(conv(16, 24, 1, act=act), conv(24, 24, 5, 1, 24, act)),
        gate=nn.Sequential(nn.Conv2d(24, 8, 1), nn.ReLU(), nn.Conv2d(8, 24, 1), nn.Hardsigmoid()),
        down=conv(24, 16, 1),
        head=nn.Sequential(conv(16, 32, 1, act=act), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)),
    ), [(1, 3, 24, 24)]


def shuffled(act: Activation) -> Made:
    def forward(m: Any, x: Any) -> Any:
        x = m.stem(x)
        for k, block in enumerate(m.blocks):
            left, right = x.chunk(2, 1)
            x = F.channel_shuffle(torch.cat([left, block(right)], 1), 2 if k % 2 else 4)
        return m.last(x)

    def block() -> nn.Module:
        return nn.Sequential(conv(8, 8, 1, act=act), conv(8, 8, 3, 1, 8), conv(8, 8, 1, g=2, act=act))

    return Of(
        forward, stem=conv(3, 16, 3, 2, act=act), blocks=[block(), block(), block()], last=conv(16, 24, 3, 2, 4, act)
    ), [(2, 3, 24, 24)]


def yolo(act: Activation) -> Made:
    def split(m: Any, x: Any) -> Any:
        parts = list(m.first(x).chunk(2, 1))
        for block in m.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return m.last(torch.cat(parts, 1))

    def stage(i: int, o: int) -> nn.Module:
        half = o // 2
        blocks = [nn.Sequential(conv(half, half, act=act), conv(half, half, act=act))]
        return Of(split, first=conv(i, o, 1, act=act), blocks=blocks, last=conv(3 * half, o, 1, act=act))

    def forward(m: Any, x: Any) -> Any:
        low = m.low(x)
        high = m.high(low)
        pools = [m.squeeze(high)]
        for _ in range(2):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        high = m.join(torch.cat(pools, 1))
        both = m.neck(torch.cat([F.interpolate(high, scale_factor=2.0), low], 1))
        return torch.cat([head(y).flatten(2) for head, y in zip(m.heads, (both, high), strict=True)], 2)

    return Of(
        forward,
        low=nn.Sequential(conv(3, 8, 3, 2, act=act), stage(8, 16)),
        high=nn.Sequential(conv(16, 16, 3, 2, act=act), stage(16, 16)),
        squeeze=conv(16, 8, 1, act=act),
        join=conv(24, 16, 1, act=act),
        neck=stage(32, 16),
        heads=[nn.Sequential(conv(16, 8, act=act), nn.Conv2d(8, 12, 1)) for _ in range(2)],
    ), [(1, 3, 24, 24)]


def unet(act: Activation) -> Made:
    def forward(m: Any, x: Any) -> Any:
        kept = []
        for block in m.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = m.middle(x)
        for up, block in zip(m.up, m.back, strict=True):
            x = block(torch.cat([up(x), kept.pop()], 1))
        return m.last(x)

    return Of(
        forward,
        down=[conv(3, 8, act=act), conv(8, 16, act=act), conv(16, 16, act=act)],
        middle=conv(16, 16, act=act),
        up=[
            nn.ConvTranspose2d(16, 16, 2, 2),
            nn.ConvTranspose2d(16, 8, 4, 2, 1, groups=2),
            nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1),
        ],
        back=[conv(32, 16, act=act), conv(24, 16, act=act), conv(16, 8, act=act)],
        last=nn.Conv2d(8, 5, 1),
    ), [(1, 3, 16, 24)]


def dilated(act: Activation) -> Made:
    def forward(m: Any, x: Any) -> Any:
        y = m.stem(x)
        whole = F.interpolate(m.whole(F.adaptive_avg_pool2d(y, 1)), size=y.shape[2:])
        y = m.join(torch.cat([*(branch(y) for branch in m.branches), whole], 1))
        return F.interpolate(m.last(y), scale_factor=2.0, mode="bilinear", align_corners=False)

    return Of(
        forward,
        stem=nn.Sequential(conv(3, 16, 3, 2, act=act), conv(16, 16, (1, 7), act=act), conv(16, 16, (7, 1), act=act)),
        whole=conv(16, 8, 1, act=act),
        branches=[
            conv(16, 8, 1, act=act),
            conv(16, 8, d=2, act=act),
            nn.Sequential(conv(16, 16, 3, 1, 16, d=3), conv(16, 8, 1)),
        ],
        join=conv(32, 16, 1, act=act),
        last=nn.Conv2d(16, 4, 1),
    ), [(2, 3, 24, 16)]


def resolution(act: Activation) -> Made:
    def forward(m: Any, x: Any) -> Any:
        y = m.first(F.pixel_unshuffle(x, 2))
        y = y + m.body(y)
        return F.pixel_shuffle(m.last(y), 4) + F.interpolate(x, scale_factor=2.0, mode="bicubic")

    body = nn.Sequential(conv(16, 16, act=act), conv(16, 16), conv(16, 16, 3, 1, 4, act))
    return Of(forward, first=nn.Conv2d(12, 16, 3, padding=1), body=body, last=nn.Conv2d(16, 48, 3, padding=1)), [
        (1, 3, 16, 16)
    ]


def volume(act: Activation) -> Made:
    def conv3(i: int, o: int, s: int = 1, g: int = 1) -> nn.Module:
        return nn.Sequential(nn.Conv3d(i, o, 3, s, 1, groups=g, bias=False), nn.BatchNorm3d(o), act(o))

    def forward(m: Any, x: Any) -> Any:
        y = m.first(x)
        y = y + m.second(y)
        return m.up(F.avg_pool3d(y, 2)), m.head(y.mean((2, 3, 4)))

    return Of(
        forward,
        first=conv3(2, 16, 2),
        second=nn.Sequential(conv3(16, 16, 1, 16), conv3(16, 16, 1, 2)),
        up=nn.ConvTranspose3d(16, 8, 2, 2),
        head=nn.Linear(16, 6),
    ), [(1, 2, 8, 16, 16)]


def signal(act: Activation) -> Made:
    def conv1(i: int, o: int, k: int, s: int = 1, g: int = 1, d: int = 1) -> nn.Module:
        layers = nn.Conv1d(i, o, k, s, k // 2 * d, groups=g, dilation=d, bias=False), nn.BatchNorm1d(o), act(o)
        return nn.Sequential(*layers)

    def forward(m: Any, x: Any) -> Any:
        y = m.first(x)
        for block in m.blocks:
            y = y + block(y)
        return m.up(y)

    blocks = [nn.Sequential(conv1(16, 16, 9, g=16), conv1(16, 16, 1)) for _ in range(2)]
    blocks.append(conv1(16, 16, 3, d=4))
    return Of(forward, first=conv1(8, 16, 5, 2), blocks=blocks, up=nn.ConvTranspose1d(16, 8, 4, 2, 1)), [(2, 8, 48)]


def dense(act: Activation) -> Made:
    def forward(m: Any, x: Any) -> Any:
        y = m.stem(x)
        for k, block in enumerate(m.blocks):
            y = torch.cat([y, block(y)], 1)
            if k == 1:
                y = F.avg_pool2d(m.between(y), 2)
        pools = F.avg_pool2d(y, 3, 1, 1, count_include_pad=k % 2 == 0), F.max_pool2d(y, 3, 1, 1, ceil_mode=True)
        return m.head(torch.cat(pools, 1).mean((2, 3)))

    def block(i: int) -> nn.Module:
        return nn.Sequential(nn.BatchNorm2d(i), act(i), nn.Conv2d(i, 16, 1), conv(16, 8, act=act))

    return Of(
        forward,
        stem=conv(3, 8, 3, 1, act=act),
        blocks=[block(8), block(16), block(12), block(20)],
        between=conv(24, 12, 1, act=act),
        head=nn.Linear(56, 10),
    ), [(2, 3, 20, 20)]


def padded(act: Activation) -> Made:
    """Preprocessing, uneven and reflected padding, several results."""

    def forward(m: Any, x: Any) -> Any:
        x = (x - m.mean) / m.scale
        y = m.first(F.pad(x, (0, 1, 0, 1)))
        z = m.second(F.pad(y, (1, 1, 1, 1), mode="reflect"))
        return z, m.third(F.pad(z[:, :, 1:, :-1], (2, 0, 1, 0), value=0.5)), y.amax((2, 3))

    made = Of(
        forward,
        first=nn.Sequential(nn.Conv2d(3, 16, 3, 2), act(16)),
        second=nn.Sequential(nn.Conv2d(16, 16, 3), act(16)),
        third=nn.Sequential(nn.Conv2d(16, 8, 2, groups=2), act(8)),
    )
    made.register_buffer("mean", torch.tensor([0.4, 0.5, 0.6]).reshape(1, 3, 1, 1))
    made.register_buffer("scale", torch.tensor([0.2, 0.25, 0.3]).reshape(1, 3, 1, 1))
    return made, [(1, 3, 20, 20)]


def arithmetic(act: Activation) -> Made:
    """Elementwise operations of branches, with broadcasts."""

    def forward(m: Any, x: Any) -> Any:
        a, b, c = (branch(x) for branch in m.branches)
        mean = b.mean((2, 3), keepdim=True)
        y = m.last((a + b) * mean - c * 0.5)
        return m.head(torch.maximum(y, a) / (1.5 + torch.sigmoid(c)) + a.amax(1, keepdim=True))

    return Of(
        forward,
        branches=[conv(3, 16, k, act=act) for k in (1, 3, 3)],
        last=conv(16, 16, 1, act=act),
        head=nn.Conv2d(16, 8, 3, padding=1),
    ), [(2, 3, 16, 16)]


def normalized(act: Activation) -> Made:
    def forward(m: Any, x: Any) -> Any:
        y = m.act(m.group(m.first(x)))
        y = m.act(m.instance(m.second(y)))
        return F.normalize(m.third(y).flatten(1), dim=1)

    return Of(
        forward,
        first=nn.Conv2d(3, 16, 3, padding=1),
        group=nn.GroupNorm(4, 16),
        second=nn.Conv2d(16, 16, 3, 2),
        instance=nn.InstanceNorm2d(16, affine=True),
        third=nn.Conv2d(16, 8, 1),
        act=act(16),
    ), [(2, 3, 16, 16)]


def convnext(act: Activation) -> Made:
    def block(m: Any, x: Any) -> Any:
        y = m.depth(x).permute(0, 2, 3, 1)
        return x + m.down(m.act(m.up(m.norm(y)))).permute(0, 3, 1, 2)

    def forward(m: Any, x: Any) -> Any:
        y = m.stem(x)
        for part in m.blocks:
            y = part(y)
        return m.head(m.norm(y.mean((2, 3))))

    blocks = [
        Of(
            block,
            depth=nn.Conv2d(16, 16, 7, padding=3, groups=16),
            norm=nn.LayerNorm(16),
            up=nn.Linear(16, 32),
            act=act(1),
            down=nn.Linear(32, 16),
        )
        for _ in range(2)
    ]
    return Of(forward, stem=nn.Conv2d(3, 16, 4, 4), blocks=blocks, norm=nn.LayerNorm(16), head=nn.Linear(16, 10)), [
        (2, 3, 24, 24)
    ]


def _attention(m: Any, x: Any, mask: Any = None, fused: bool = False) -> Any:
    n, length, width = x.shape
    q, k, v = m.qkv(m.before(x)).reshape(n, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4).unbind(0)
    if fused:
        y = F.scaled_dot_product_attention(q, k, v, mask)
    else:
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        y = (scores if mask is None else scores + mask).softmax(-1) @ v
    x = x + m.out(y.transpose(1, 2).reshape(n, length, width))
    return x + m.down(m.act(m.up(m.between(x))))


def _layers(width: int, act: Activation, count: int = 2) -> list[nn.Module]:
    return [
        Of(
            _attention,
            before=nn.LayerNorm(width),
            qkv=nn.Linear(width, 3 * width),
            out=nn.Linear(width, width),
            between=nn.LayerNorm(width),
            up=nn.Linear(width, 32),
            act=act(1),
            down=nn.Linear(32, width),
        )
        for _ in range(count)
    ]


def encoder(act: Activation) -> Made:
    """Attention without a mask, and with a causal one."""

    def forward(m: Any, x: Any) -> Any:
        first, second = m.blocks
        causal = torch.full((x.shape[1], x.shape[1]), -1e4).triu(1)
        return m.head(second(first(x), causal))

    return Of(forward, blocks=_layers(24, act), head=nn.Linear(24, 10)), [(2, 7, 24)]


def tokens(act: Activation) -> Made:
    """Embeddings, positions, a mask of the tokens and scaled_dot_product_attention."""

    def forward(m: Any, ids: Any) -> Any:
        mask = (ids != 0)[:, None, None, :]
        x = m.norm(m.words(ids) + m.places(torch.arange(ids.shape[1])))
        for block in m.blocks:
            x = _attention(block, x, mask, fused=True)
        return m.head(x[:, 0]), m.head(x)

    return Of(
        forward,
        words=nn.Embedding(40, 24),
        places=nn.Embedding(9, 24),
        norm=nn.LayerNorm(24),
        blocks=_layers(24, act),
        head=nn.Linear(24, 10),
    ), [(2, 7)]


def windows(act: Activation) -> Made:
    """Windows of pixels, rolled, with a relative bias, and merged patches."""

    def forward(m: Any, x: Any) -> Any:
        y = m.stem(x).permute(0, 2, 3, 1)
        n, h, w, c = y.shape
        y = torch.roll(y, (-2, -2), (1, 2)).reshape(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5)
        y = _attention(m.blocks[0], y.reshape(-1, 16, c), m.bias)
        y = y.reshape(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        y = torch.roll(y, (2, 2), (1, 2))
        y = torch.cat([y[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], -1)
        return m.head(m.merge(m.norm(y)).mean((1, 2)))

    made = Of(
        forward,
        stem=nn.Conv2d(3, 24, 2, 2),
        blocks=_layers(24, act, 1),
        norm=nn.LayerNorm(96),
        merge=nn.Linear(96, 16, bias=False),
        head=nn.Linear(16, 10),
    )
    made.register_buffer("bias", torch.randn(2, 16, 16))
    return made, [(1, 3, 16, 16)]


def recurrent(act: Activation) -> Made:
    def forward(m: Any, x: Any) -> Any:
        y, (h, _) = m.lstm(x)
        y, _ = m.gru(m.act(y))
        return m.head(y), h

    return Of(
        forward,
        lstm=nn.LSTM(24, 8, batch_first=True, bidirectional=True),
        act=act(1),
        gru=nn.GRU(16, 16),
        head=nn.Linear(16, 10),
    ), [(2, 7, 24)]


def cells(act: Activation) -> Made:
    """Cells written out over the tokens."""

    def forward(m: Any, x: Any) -> Any:
        h = c = k = torch.zeros(x.shape[0], 12)
        for token in m.act(m.first(x)).unbind(1):
            h, c = m.lstm(token, (h, c))
            k = m.gru(h, k)
        return m.head(k)

    return Of(
        forward, first=nn.Linear(8, 16), act=act(1), lstm=nn.LSTMCell(16, 12), gru=nn.GRUCell(12, 12), head=nn.Linear(12, 10)
    ), [(2, 3, 8)]


def linear(act: Activation) -> Made:
    """Linear layers of two and three dimensions, with and without bias, and a residual."""

    def forward(m: Any, x: Any) -> Any:
        y = m.act(m.first(x))
        y = m.act(y + m.second(y))
        y = m.third(y.reshape(4, 2, 16)).reshape(4, 2 * 12)
        return m.last(m.act(y))

    return Of(
        forward,
        first=nn.Linear(16, 32),
        second=nn.Linear(32, 32, bias=False),
        third=nn.Linear(16, 12),
        last=nn.Linear(24, 8),
        act=act(1),
    ), [(4, 16)]


def products(act: Activation) -> Made:
    """Products of two activations in several orders."""

    def forward(m: Any, x: Any, y: Any) -> Any:
        a, b = m.act(m.first(x)), m.act(m.second(y))
        both = torch.bmm(a, b.transpose(1, 2))
        mixed = torch.einsum("bij,bik->bjk", both, a)
        return m.head(mixed) + torch.matmul(b.transpose(1, 2), b).mean(1, keepdim=True)[..., :10]

    return Of(forward, first=nn.Linear(12, 16), second=nn.Linear(8, 16), head=nn.Linear(16, 10), act=act(1)), [
        (2, 5, 12),
        (2, 6, 8),
    ]


def branches(act: Activation) -> Made:
    """One tensor with many consumers, of which some are results, and slices, tiles and stacks of it."""

    def forward(m: Any, x: Any) -> Any:
        y = m.stem(x)
        ends = [end(y) for end in m.ends]
        stacked = torch.stack(ends[:2], 1).flatten(1, 2)
        tiled = y[:, ::2, ::2, ::2].repeat(1, 2, 1, 1)
        return y, m.join(stacked), m.last(tiled.permute(0, 1, 3, 2)), F.adaptive_max_pool2d(ends[2], 3)

    return Of(
        forward,
        stem=conv(3, 16, act=act),
        ends=[conv(16, 8, k, act=act) for k in (1, 3, 1)],
        join=conv(16, 8, act=act),
        last=nn.Conv2d(16, 8, 1),
    ), [(1, 3, 16, 18)]


FAMILIES: dict[str, Callable[[Activation], Made]] = {
    function.__name__: function
    for function in (
        residual,
        mobile,
        shuffled,
        yolo,
        unet,
        dilated,
        resolution,
        volume,
        signal,
        dense,
        padded,
        arithmetic,
        normalized,
        convnext,
        encoder,
        tokens,
        windows,
        recurrent,
        cells,
        linear,
        products,
        branches,
    )
}
"""Name -> a function that returns the module with an activation."""
