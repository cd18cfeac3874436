"""Networks for audio, text and time series."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.torch_networks.parts import Activation, Made, Residual, Tokens, conv, gelu, relu, separable


def _signal(act: Activation) -> Made:
    def conv1(i: int, o: int, k: int, s: int = 1, g: int = 1) -> nn.Module:
        return nn.Sequential(nn.Conv1d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm1d(o), act(o))

    layers = [conv1(64, 256, 11, 2)]
    for _ in range(6):
        layers += [conv1(256, 256, 33, g=256), conv1(256, 256, 1)]
    return nn.Sequential(*layers, nn.Conv1d(256, 29, 1)), (1, 64, 800)


class Recurrent(nn.Module):
    """A recurrent layer; without its states."""

    def __init__(self, kind: type[nn.Module], i: int, o: int, layers: int = 1, both: bool = False) -> None:
        super().__init__()
        self.inner = kind(i, o, layers, batch_first=True, bidirectional=both)

    def forward(self, x):
        return self.inner(x)[0]


class Apply(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def _recognizer() -> Made:
    """CRNN: convolutions of a line of text, and two LSTMs of both directions."""
    widths = [(1, 32, 2), (32, 64, 2), (64, 128, (2, 1)), (128, 128, (2, 1)), (128, 256, (2, 1))]
    layers = [nn.Sequential(conv(i, o, act=relu), nn.MaxPool2d(s, s)) for i, o, s in widths]
    return nn.Sequential(*layers, Apply(lambda x: x.squeeze(2).transpose(1, 2)), Recurrent(nn.LSTM, 256, 128, 2, True),
                         nn.Linear(256, 96)), (1, 1, 32, 200)  # fmt: skip


def _speech(kind: type[nn.Module]) -> Made:
    """DeepSpeech 2: two convolutions of a spectrogram, recurrent layers."""
    first = [nn.Conv2d(1, 32, (21, 11), 2, (10, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20)]
    first += [nn.Conv2d(32, 32, (11, 11), (2, 1), (5, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20)]
    return nn.Sequential(*first, Apply(lambda x: x.flatten(1, 2).transpose(1, 2)), Recurrent(kind, 640, 256, 3),
                         nn.Linear(256, 29)), (1, 1, 80, 200)  # fmt: skip


class Waves(nn.Module):
    """WaveNet: dilated causal convolutions with gates."""

    def __init__(self, c: int = 48) -> None:
        super().__init__()
        self.first, self.dilations = nn.Conv1d(1, c, 1), [1 << (k % 8) for k in range(16)]
        self.gated = nn.ModuleList(nn.Conv1d(c, 2 * c, 2, dilation=d) for d in self.dilations)
        self.out = nn.ModuleList(nn.Conv1d(c, 2 * c, 1) for _ in self.dilations)
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(c, 64, 1), nn.ReLU(), nn.Conv1d(64, 128, 1))

    def forward(self, x):
        x, total = self.first(x), 0
        for d, gated, out in zip(self.dilations, self.gated, self.out, strict=True):
            a, b = gated(F.pad(x, (d, 0))).chunk(2, 1)
            more, skip = out(a.tanh() * b.sigmoid()).chunk(2, 1)
            x, total = x + more, total + skip
        return self.last(total)


class Separation(nn.Module):
    """Conv-TasNet: an encoder of samples, depthwise convolutions with global norms, masks, a transposed convolution."""

    class Block(nn.Module):
        def __init__(self, c: int, h: int, d: int) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv1d(c, h, 1), nn.PReLU(), nn.GroupNorm(1, h))
            self.second = nn.Sequential(nn.Conv1d(h, h, 3, padding=d, dilation=d, groups=h), nn.PReLU(), nn.GroupNorm(1, h))
            self.out, self.skip = nn.Conv1d(h, c, 1), nn.Conv1d(h, c, 1)

        def forward(self, x):
            y = self.second(self.first(x))
            return x + self.out(y), self.skip(y)

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.norm, self.first = (
            nn.Conv1d(1, 256, 16, 8, bias=False),
            nn.GroupNorm(1, 256),
            nn.Conv1d(256, 96, 1),
        )
        self.blocks = nn.ModuleList(self.Block(96, 192, 1 << k % 6) for k in range(12))
        self.mask, self.decoder = nn.Sequential(nn.PReLU(), nn.Conv1d(96, 512, 1)), nn.ConvTranspose1d(256, 1, 16, 8)

    def forward(self, x):
        code = F.relu(self.encoder(x))
        y, total = self.first(self.norm(code)), 0
        for block in self.blocks:
            y, skip = block(y)
            total = total + skip
        masks = self.mask(total).sigmoid().chunk(2, 1)
        return torch.cat([self.decoder(code * mask) for mask in masks], 1)


class Vocoder(nn.Module):
    """HiFi-GAN: transposed convolutions, then residual blocks of several kernel sizes and dilations."""

    class Block(nn.Module):
        def __init__(self, c: int, k: int) -> None:
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv1d(c, c, k, padding=d * (k // 2), dilation=d) for d in (1, 3))

        def forward(self, x):
            for layer in self.convs:
                x = x + layer(F.leaky_relu(x, 0.1))
            return x

    def __init__(self) -> None:
        super().__init__()
        self.first, widths = nn.Conv1d(80, 128, 7, padding=3), (128, 64, 32, 16)
        steps = ((8, 16), (8, 16), (2, 4))
        self.up = nn.ModuleList(
            nn.ConvTranspose1d(i, o, k, s, (k - s) // 2) for i, o, (s, k) in zip(widths, widths[1:], steps, strict=False)
        )
        self.blocks = nn.ModuleList(nn.ModuleList(self.Block(c, k) for k in (3, 7)) for c in widths[1:])
        self.last = nn.Conv1d(16, 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        for wider, blocks in zip(self.up, self.blocks, strict=True):
            x = wider(F.leaky_relu(x, 0.1))
            x = sum(block(x) for block in blocks) / 2
        return torch.tanh(self.last(F.leaky_relu(x)))


class Stems(nn.Module):
    """Demucs: strided convolutions with gated units, an LSTM, transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        widths = (2, 32, 64, 128)
        pairs = list(itertools.pairwise(widths))
        self.down = nn.ModuleList(
            nn.Sequential(nn.Conv1d(i, o, 8, 4), nn.ReLU(), nn.Conv1d(o, 2 * o, 1), nn.GLU(1)) for i, o in pairs
        )
        self.lstm, self.join = Recurrent(nn.LSTM, 128, 128, 1, True), nn.Linear(256, 128)
        self.up = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(o, 2 * o, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(o, i, 8, 4), *([nn.ReLU()] * (i > 2))
            )
            for i, o in reversed(pairs)
        )

    def forward(self, x):
        kept = []
        for stage in self.down:
            x = stage(x)
            kept.append(x)
        x = self.join(self.lstm(x.transpose(1, 2))).transpose(1, 2)
        for stage in self.up:
            x = stage(x + kept.pop()[..., : x.shape[-1]])
        return x


class Attention(nn.Module):
    """Multi-head attention; ``causal``, with a bias for distances, or with rotary positions."""

    def __init__(self, c: int, heads: int, kind: str = "", groups: int = 0) -> None:
        super().__init__()
        self.heads, self.size, self.kind, self.groups = heads, c // heads, kind, groups or heads
        self.q, self.k, self.v = nn.Linear(c, c), *(nn.Linear(c, self.groups * self.size) for _ in range(2))
        self.out = nn.Linear(c, c)
        self.bias = nn.Embedding(32, heads) if kind == "distances" else None

    def _rotated(self, x):
        half = self.size // 2
        angles = torch.arange(x.shape[2])[:, None] / 10000 ** (torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def forward(self, x, mask=None):
        n, t, c = x.shape
        q = self.q(x).view(n, t, self.heads, self.size).transpose(1, 2)
        k, v = (f(x).view(n, t, self.groups, self.size).transpose(1, 2) for f in (self.k, self.v))
        if self.kind == "rotated":
            q, k = self._rotated(q), self._rotated(k)
            k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        if self.bias is not None:
            places = torch.arange(t)
            mask = self.bias((places[:, None] - places).abs().clamp(max=31)).permute(2, 0, 1)[None]
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=self.kind in ("causal", "rotated"))
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Layer(nn.Module):
    """A layer of a transformer, with normalizations before (or after) both halves."""

    def __init__(self, c: int, heads: int, kind: str = "", first: bool = True, act: Activation = gelu) -> None:
        super().__init__()
        self.attention, self.first = Attention(c, heads, kind), first
        self.norms = nn.ModuleList([nn.LayerNorm(c), nn.LayerNorm(c)])
        self.inner = nn.Sequential(nn.Linear(c, 4 * c), act(c), nn.Linear(4 * c, c))

    def forward(self, x, mask=None):
        if self.first:
            x = x + self.attention(self.norms[0](x), mask)
            return x + self.inner(self.norms[1](x))
        x = self.norms[0](x + self.attention(x, mask))
        return self.norms[1](x + self.inner(x))


class Text(nn.Module):
    """Embeddings and layers of a transformer; ``masked``: padding tokens are masked."""

    def __init__(self, c: int, heads: int, layers: int, kind: str = "", *, masked: bool = False, first: bool = True) -> None:
        super().__init__()
        self.words, self.places, self.masked = nn.Embedding(4000, c), nn.Embedding(512, c), masked
        self.layers = nn.ModuleList(Layer(c, heads, kind, first) for _ in range(layers))
        self.norm, self.last = nn.LayerNorm(c), nn.Linear(c, 4000 if kind == "causal" else 2)

    def forward(self, tokens):
        x = self.norm(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))
        mask = None
        if self.masked:
            mask = torch.where((tokens == 0)[:, None, None], -1e4, 0.0)
        for layer in self.layers:
            x = layer(x, mask)
        return self.last(x)


class Rotary(nn.Module):
    """Llama's layers: RMSNorm, rotary positions, groups of heads, SwiGLU."""

    class Layer(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            self.norms, self.attention = nn.ModuleList([nn.RMSNorm(c), nn.RMSNorm(c)]), Attention(c, 8, "rotated", 2)
            self.gate, self.up, self.down = nn.Linear(c, 3 * c), nn.Linear(c, 3 * c), nn.Linear(3 * c, c)

        def forward(self, x):
            x = x + self.attention(self.norms[0](x))
            y = self.norms[1](x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def __init__(self) -> None:
        super().__init__()
        self.words, self.layers = nn.Embedding(4000, 256), nn.Sequential(*(self.Layer(256) for _ in range(4)))
        self.last = nn.Sequential(nn.RMSNorm(256), nn.Linear(256, 4000))

    def forward(self, tokens):
        return self.last(self.layers(self.words(tokens)))


class Conformer(nn.Module):
    """Speech: feed-forward halves, attention, and depthwise convolutions with gated units."""

    class Block(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            half = lambda: nn.Sequential(nn.LayerNorm(c), nn.Linear(c, 4 * c), nn.SiLU(), nn.Linear(4 * c, c))  # noqa: E731
            self.first, self.last, self.attention = half(), half(), Attention(c, 4)
            self.norms = nn.ModuleList(nn.LayerNorm(c) for _ in range(3))
            self.conv = nn.Sequential(
                nn.Conv1d(c, 2 * c, 1), nn.GLU(1), nn.Conv1d(c, c, 31, padding=15, groups=c), nn.BatchNorm1d(c), nn.SiLU(),
                nn.Conv1d(c, c, 1),
            )  # fmt: skip

        def forward(self, x):
            x = x + 0.5 * self.first(x)
            x = x + self.attention(self.norms[0](x))
            x = x + self.conv(self.norms[1](x).transpose(1, 2)).transpose(1, 2)
            return self.norms[2](x + 0.5 * self.last(x))

    def __init__(self) -> None:
        super().__init__()
        self.shrink = nn.Sequential(nn.Conv2d(1, 144, 3, 2), nn.ReLU(), nn.Conv2d(144, 144, 3, 2), nn.ReLU())
        self.join, self.blocks = nn.Linear(144 * 19, 144), nn.Sequential(*(self.Block(144) for _ in range(4)))
        self.last = nn.Linear(144, 128)

    def forward(self, x):
        y = self.shrink(x[:, None]).transpose(1, 2)
        return self.last(self.blocks(self.join(y.flatten(2))))


class Voice(nn.Module):
    """FastSpeech: attention, and convolutions of the sequence."""

    class Block(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            self.attention, self.norms = Attention(c, 2), nn.ModuleList([nn.LayerNorm(c), nn.LayerNorm(c)])
            self.conv = nn.Sequential(nn.Conv1d(c, 4 * c, 9, padding=4), nn.ReLU(), nn.Conv1d(4 * c, c, 1))

        def forward(self, x):
            x = self.norms[0](x + self.attention(x))
            return self.norms[1](x + self.conv(x.transpose(1, 2)).transpose(1, 2))

    def __init__(self) -> None:
        super().__init__()
        self.words, self.blocks = nn.Embedding(100, 192), nn.Sequential(*(self.Block(192) for _ in range(4)))
        post = lambda i, o, *act: nn.Sequential(nn.Conv1d(i, o, 5, padding=2), nn.BatchNorm1d(o), *act)  # noqa: E731
        self.mel, self.post = (
            nn.Linear(192, 80),
            nn.Sequential(post(80, 256, nn.Tanh()), post(256, 256, nn.Tanh()), post(256, 80)),
        )

    def forward(self, tokens):
        mel = self.mel(self.blocks(self.words(tokens))).transpose(1, 2)
        return mel + self.post(mel)


class Tagger(nn.Module):
    """Embeddings, an LSTM of both directions, and a layer for each token."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm, self.last = (
            nn.Embedding(10000, 100),
            Recurrent(nn.LSTM, 100, 128, 2, True),
            nn.Linear(256, 20),
        )

    def forward(self, tokens):
        return self.last(self.lstm(self.words(tokens))).log_softmax(-1)


class Sentences(nn.Module):
    """Convolutions of several kernel sizes over a text, and their maxima."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(10000, 128)
        self.convs, self.last = nn.ModuleList(nn.Conv1d(128, 100, k) for k in (3, 4, 5)), nn.Linear(300, 4)

    def forward(self, tokens):
        x = self.words(tokens).transpose(1, 2)
        return self.last(torch.cat([F.relu(layer(x)).amax(2) for layer in self.convs], 1))


class Clicks(nn.Module):
    """DLRM: an embedding for each feature, and the products of all pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(1000, 32) for _ in range(20))
        self.last = nn.Sequential(nn.Linear(190 + 640, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))
        self.register_buffer("pairs", torch.tensor([i * 20 + j for i in range(20) for j in range(i)]))

    def forward(self, tokens):
        x = torch.stack([table(tokens[:, k]) for k, table in enumerate(self.tables)], 1)
        products = (x @ x.transpose(1, 2)).flatten(1)[:, self.pairs]
        return self.last(torch.cat([products, x.flatten(1)], 1)).sigmoid()


class Points(nn.Module):
    """PointNet: layers of single points, a transformation of the points, and their maximum."""

    def __init__(self) -> None:
        super().__init__()

        def layers(*widths: int) -> nn.Sequential:
            pairs = itertools.pairwise(widths)
            return nn.Sequential(*(nn.Sequential(nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU()) for i, o in pairs))

        self.turn, self.turned = layers(3, 64, 128, 256), nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 9))
        self.body, self.last = layers(3, 64, 64, 128, 512), nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 40))

    def forward(self, x):
        turned = self.turned(self.turn(x).amax(2)).view(-1, 3, 3) + torch.eye(3)
        return self.last(self.body(turned @ x).amax(2))


class Series(nn.Module):
    """TCN: residual blocks of dilated causal convolutions."""

    class Block(nn.Module):
        def __init__(self, i: int, o: int, d: int) -> None:
            super().__init__()
            pad = lambda: nn.ConstantPad1d((2 * d, 0), 0.0)  # noqa: E731
            self.inner = nn.Sequential(
                pad(), nn.Conv1d(i, o, 3, dilation=d), nn.ReLU(), pad(), nn.Conv1d(o, o, 3, dilation=d), nn.ReLU()
            )
            self.skip = nn.Conv1d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x):
            return F.relu(self.skip(x) + self.inner(x))

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(self.Block(8, 64, 1), *(self.Block(64, 64, 1 << k) for k in range(1, 6)))
        self.last = nn.Linear(64, 12)

    def forward(self, x):
        return self.last(self.body(x)[..., -1])


def _words() -> Made:
    """Keyword spotting: separable convolutions of a spectrogram."""
    first = nn.Sequential(nn.Conv2d(1, 64, (10, 4), 2, (5, 1), bias=False), nn.BatchNorm2d(64), nn.ReLU())
    return nn.Sequential(first, *(separable(64, 64, 3, 1, relu) for _ in range(4)), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 12)), (1, 1, 49, 10)  # fmt: skip


def _noise() -> Made:
    """Noise suppression: GRUs over the frames of a spectrogram, and a mask."""
    first, last = [nn.Linear(257, 128), nn.ReLU()], [nn.Linear(128, 257), nn.Sigmoid()]
    return nn.Sequential(*first, Recurrent(nn.GRU, 128, 128, 2), *last), (1, 100, 257)


def _sounds() -> Made:
    """VGG-like blocks of a spectrogram (PANNs)."""
    layers = [nn.Sequential(conv(i, o, act=relu), conv(o, o, act=relu), nn.AvgPool2d(2))
              for i, o in ((1, 32), (32, 64), (64, 128), (128, 256))]  # fmt: skip
    last = Apply(lambda x: x.mean(3).amax(2) + x.mean((2, 3)))
    return nn.Sequential(*layers, last, nn.Linear(256, 527), nn.Sigmoid()), (1, 1, 200, 64)


class Listener(nn.Module):
    """Whisper's encoder: two convolutions, positions, layers of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv1d(80, 256, 3, padding=1), nn.GELU(), nn.Conv1d(256, 256, 3, 2, 1), nn.GELU())
        self.places = nn.Parameter(torch.randn(300, 256) / math.sqrt(256))
        self.layers = nn.Sequential(*(Layer(256, 4) for _ in range(4)), nn.LayerNorm(256))

    def forward(self, x):
        return self.layers(self.first(x).transpose(1, 2) + self.places)


def _perceptron() -> Made:
    layers = [Residual(nn.Sequential(nn.BatchNorm1d(256), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)))] * 3
    return nn.Sequential(nn.Linear(64, 256), *layers, nn.Linear(256, 1)), (1, 64)


NETWORKS: dict[str, Callable[[], Made]] = {
    "signal_relu": lambda: _signal(relu),
    "signal_gelu": lambda: _signal(gelu),
    "recognizer": _recognizer,
    "speech_gru": lambda: _speech(nn.GRU),
    "speech_lstm": lambda: _speech(nn.LSTM),
    "speech_rnn": lambda: _speech(nn.RNN),
    "waves": lambda: (Waves(), (1, 1, 4000)),
    "separation": lambda: (Separation(), (1, 1, 8000)),
    "vocoder": lambda: (Vocoder(), (1, 80, 40)),
    "stems": lambda: (Stems(), (1, 2, 21844)),
    "text_masked": lambda: (Text(256, 4, 4, masked=True, first=False), Tokens((1, 128), 4000)),
    "text_causal": lambda: (Text(256, 4, 4, "causal"), Tokens((1, 128), 4000)),
    "text_distances": lambda: (Text(256, 4, 4, "distances"), Tokens((1, 128), 4000)),
    "text_rotary": lambda: (Rotary(), Tokens((1, 128), 4000)),
    "conformer": lambda: (Conformer(), (1, 400, 80)),
    "listener": lambda: (Listener(), (1, 80, 600)),
    "voice": lambda: (Voice(), Tokens((1, 100), 100)),
    "tagger": lambda: (Tagger(), Tokens((1, 60), 10000)),
    "sentences": lambda: (Sentences(), Tokens((1, 200), 10000)),
    "clicks": lambda: (Clicks(), Tokens((32, 20), 1000)),
    "points": lambda: (Points(), (1, 3, 1024)),
    "series": lambda: (Series(), (1, 8, 512)),
    "words": _words,
    "noise": _noise,
    "sounds": _sounds,
    "perceptron": _perceptron,
}
