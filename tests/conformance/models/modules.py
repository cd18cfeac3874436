"""Networks of PyTorch's own layers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# -- recurrent ----------------------------------------------------------------------


class Recurrent(nn.Module):
    """A stack of recurrent layers over embedded tokens, with the last states as outputs."""

    def __init__(self, kind: str, **options) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.layers = getattr(nn, kind)(16, 24, batch_first=True, **options)
        self.head = nn.LazyLinear(10)
        with torch.no_grad():
            self(torch.zeros(1, 2, dtype=torch.int64))

    def forward(self, tokens: Tensor):
        outputs, states = self.layers(self.embedding(tokens))
        return self.head(outputs), states


class PackedLSTM(nn.Module):
    """Sequences of different lengths, packed by PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, (hidden, _) = self.layers(packed)
        return nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)[0], hidden


class CellLoop(nn.Module):
    """Cells in a loop with a dynamic number of steps."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = getattr(nn, kind)(8, 16)
        self.pair = kind == "LSTMCell"

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(x.shape[1], 16)
        memory = torch.zeros(x.shape[1], 16)
        steps = []
        for step in range(x.shape[0]):
            if self.pair:
                state, memory = self.cell(x[step], (state, memory))
            else:
                state = self.cell(x[step], state)
            steps.append(state)
        return torch.stack(steps)


class ConvLSTM(nn.Module):
    """A convolutional LSTM over video frames."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.channels = channels
        self.gates = nn.Conv2d(3 + channels, 4 * channels, 3, padding=1)
        self.head = nn.Conv2d(channels, 1, 1)

    def forward(self, frames: Tensor) -> Tensor:
        batch, _, _, height, width = frames.shape
        hidden = torch.zeros(batch, self.channels, height, width)
        memory = hidden
        for step in range(4):
            gates = self.gates(torch.cat([frames[:, step], hidden], 1))
            i, f, o, g = gates.chunk(4, 1)
            memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * memory.tanh()
        return self.head(hidden)


class Seq2SeqAttention(nn.Module):
    """A recurrent encoder and decoder with attention between them."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(50, 16), nn.Embedding(50, 16)
        self.encoder = nn.GRU(16, 16, bidirectional=True, batch_first=True)
        self.decoder = nn.GRU(16, 32, batch_first=True)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.head = nn.Linear(64, 50)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, last = self.encoder(self.source(source))
        start = torch.cat([last[0], last[1]], 1)[None]
        outputs, _ = self.decoder(self.target(target), start)
        seen, _ = self.attention(outputs, memory, memory)
        return self.head(torch.cat([outputs, seen], 2))


class SpeechCTC(nn.Module):
    """Convolutions, recurrent layers and classes per frame, as in DeepSpeech and CRNN."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1),
            nn.BatchNorm2d(8),
            nn.Hardtanh(0, 20),
            nn.Conv2d(8, 8, 3, (2, 1), 1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
        )
        self.layers = nn.LSTM(32, 32, num_layers=2, bidirectional=True)
        self.head = nn.Linear(64, 29)

    def forward(self, spectrogram: Tensor) -> Tensor:
        x = self.convolutions(spectrogram[:, None])
        x = x.flatten(1, 2).permute(2, 0, 1)
        return self.head(self.layers(x)[0]).log_softmax(-1)


# -- recommenders ----------------------------------------------------------------------


class DLRM(nn.Module):
    """Bags of categories, dense features, and the products of all pairs."""

    def __init__(self, tables: tuple[int, ...] = (40, 60, 30)) -> None:
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.bags = nn.ModuleList(nn.EmbeddingBag(n, 16, mode="sum") for n in tables)
        pairs = (len(tables) + 1) * len(tables) // 2
        self.register_buffer("pairs", torch.tril_indices(len(tables) + 1, len(tables) + 1, -1))
        self.top = nn.Sequential(nn.Linear(16 + pairs, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())

    def forward(self, dense: Tensor, categories: Tensor) -> Tensor:
        x = self.bottom(dense)
        features = torch.stack([x] + [bag(categories[i]) for i, bag in enumerate(self.bags)], 1)
        products = features @ features.transpose(1, 2)
        return self.top(torch.cat([x, products[:, self.pairs[0], self.pairs[1]]], 1))


class DeepFM(nn.Module):
    """Factorization machine and perceptron over the same embedded fields."""

    def __init__(self, fields: int = 5, entries: int = 100) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(entries, 1), nn.Embedding(entries, 8)
        self.deep = nn.Sequential(nn.Linear(8 * fields, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, categories: Tensor) -> Tensor:
        vectors = self.second(categories)
        pairs = 0.5 * (vectors.sum(1).square() - vectors.square().sum(1)).sum(1, keepdim=True)
        return (self.first(categories).sum(1) + pairs + self.deep(vectors.flatten(1))).sigmoid()


class InterestNetwork(nn.Module):
    """Deep Interest Network: previous purchases weighted by the offered item."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(80, 12, padding_idx=0)
        self.attention = nn.Sequential(nn.Linear(48, 16), nn.PReLU(), nn.Linear(16, 1))
        self.head = nn.Sequential(nn.Linear(24, 16), nn.PReLU(), nn.Linear(16, 1))

    def forward(self, history: Tensor, offered: Tensor) -> Tensor:
        past, item = self.items(history), self.items(offered)
        wide = item[:, None].expand_as(past)
        scores = self.attention(torch.cat([past, wide, past - wide, past * wide], 2)).squeeze(2)
        scores = scores.masked_fill(history == 3, -1e9).softmax(1)
        return self.head(torch.cat([(scores[:, None] @ past).squeeze(1), item], 1)).sigmoid()


class Bags(nn.Module):
    """Bags of different lengths by offsets, weighted, with every reduction."""

    def __init__(self) -> None:
        super().__init__()
        self.sums, self.means = (
            nn.EmbeddingBag(50, 8, mode="sum"),
            nn.EmbeddingBag(50, 8, mode="sum", include_last_offset=True),
        )
        self.head = nn.Linear(8, 4)

    def forward(self, items: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        return self.head(self.sums(items, offsets, weights) * torch.tanh(self.sums(items, offsets)))


# -- control flow ----------------------------------------------------------------------


class Branches(nn.Module):
    """Nested branches that depend on data."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            y = self.one(x)
            if y.max() > 1.0:
                y = y / 2
        else:
            y = self.other(x).tanh()
        return y + 1


class Repeats(nn.Module):
    """A loop whose number of iterations is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        for _ in range(int(turns)):
            x = torch.tanh(self.layer(x)) + 0.1 * x
        return x


class Settles(nn.Module):
    """A loop that continues while the result changes, at most 20 times."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        change, turn = torch.ones(1), 0
        while bool(change > 0.05) and turn < 20:
            y = torch.tanh(0.5 * self.layer(x))
            change = (y - x).abs().max().reshape(1)
            x = y
            turn += 1
        return x


class Greedy(nn.Module):
    """Greedy decoding: a loop that feeds the most likely token back."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.gates, self.next = nn.Embedding(20, 16), nn.Linear(32, 16), nn.Linear(32, 16)
        self.head = nn.Linear(16, 20)

    def forward(self, state: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
        tokens = token[:, None]
        for _ in range(6):
            x = torch.cat([self.embedding(token), state], 1)
            gate = self.gates(x).sigmoid()
            state = gate * state + (1 - gate) * self.next(x).tanh()
            token = self.head(state).argmax(1)
            tokens = torch.cat([tokens, token[:, None]], 1)
        return tokens, state


class EarlyExit(nn.Module):
    """A loop that ends as soon as one of its heads is certain."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.head(x)
        turn = 0
        sure = False
        while turn < 5 and not sure:
            x = torch.relu(self.layer(x)) + x
            scores = self.head(x).softmax(1)
            sure = bool(scores.max(1)[0].min() > 0.9)
            turn += 1
        return scores


def scripted(name: str, *args: str) -> torch.jit.ScriptModule:
    """The module of this file, scripted."""
    return torch.jit.script(globals()[name](*args).eval())


# -- images, points, graphs ----------------------------------------------------------------------


class Points(nn.Module):
    """PointNet: features of each point, and of all points together."""

    def __init__(self) -> None:
        super().__init__()
        self.align = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU())
        self.matrix = nn.Linear(16, 9)
        self.features = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 32, 1))
        self.head = nn.Conv1d(64, 5, 1)

    def forward(self, points: Tensor) -> Tensor:
        matrix = self.matrix(self.align(points).amax(2)).reshape(-1, 3, 3) + torch.eye(3)
        x = self.features(matrix @ points)
        whole = x.amax(2, keepdim=True).expand(-1, -1, x.shape[2])
        return self.head(torch.cat([x, whole], 1)).log_softmax(1)


class GraphAttention(nn.Module):
    """A graph network: messages along edges, with a softmax over each node's incoming ones."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.score, self.head = nn.Linear(8, 16), nn.Linear(32, 1), nn.Linear(16, 4)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        x = self.project(nodes)
        source, target = edges[0], edges[1]
        scores = F.leaky_relu(self.score(torch.cat([x[source], x[target]], 1)), 0.2).squeeze(1)
        largest = torch.full((x.shape[0],), -1e9).scatter_reduce(0, target, scores, "amax")
        weights = (scores - largest[target]).exp()
        total = torch.zeros(x.shape[0]).index_add(0, target, weights)
        messages = x[source] * (weights / (total[target] + 1e-9))[:, None]
        return self.head(torch.zeros_like(x).index_add(0, target, messages).relu())


class TemporalConvolutions(nn.Module):
    """Dilated causal convolutions with gates, as in WaveNet."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Conv1d(4, 16, 1)
        self.layers = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(16, 32, 2, dilation=2**i)) for i in range(4)
        )
        self.skips = nn.ModuleList(nn.Conv1d(16, 16, 1) for _ in range(4))
        self.head = nn.Conv1d(16, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.start(x), torch.zeros(1)
        for i, (layer, skip) in enumerate(zip(self.layers, self.skips, strict=False)):
            gate, value = layer(F.pad(x, (2**i, 0))).chunk(2, 1)
            y = skip(gate.sigmoid() * value.tanh())
            x, total = x + y, total + y
        return self.head(total.relu())


class SpatialTransformer(nn.Module):
    """Samples an image with a grid that it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.locate = nn.Sequential(
            nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 6)
        )
        self.head = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        theta = self.locate(x).reshape(-1, 2, 3) * 0.2 + torch.tensor([[1.0, 0, 0], [0, 1.0, 0]])
        middles = (2 * torch.arange(24) + 1) / 24 - 1.0
        rows, columns = torch.meshgrid(middles, middles, indexing="ij")
        places = torch.stack([columns, rows, torch.ones(24, 24)], -1).reshape(-1, 3)
        grid = (places @ theta.transpose(1, 2)).reshape(-1, 24, 24, 2)  # F.affine_grid, which OpenVINO does not import
        return self.head(F.grid_sample(x, grid, align_corners=False, padding_mode="border"))


class SuperResolution(nn.Module):
    """ESPCN: convolutions and pixel shuffle, in parallel with a bicubic upscaling."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 27, 3, padding=1), nn.PixelShuffle(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + F.interpolate(x, scale_factor=3, mode="bicubic", align_corners=False)


class UNet(nn.Module):
    """The original U-Net, with skip connections."""

    def __init__(self, widths: tuple[int, ...] = (8, 16, 32)) -> None:
        super().__init__()

        def pair(i: int, o: int) -> nn.Module:
            return nn.Sequential(
                nn.Conv2d(i, o, 3, padding=1),
                nn.InstanceNorm2d(o, affine=True),
                nn.LeakyReLU(0.1),
                nn.Conv2d(o, o, 3, padding=1),
                nn.GroupNorm(2, o),
                nn.GELU(),
            )

        self.down = nn.ModuleList(pair(i, o) for i, o in zip((3, *widths), widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in zip(widths[:0:-1], widths[-2::-1], strict=False))
        self.join = nn.ModuleList(pair(2 * o, o) for o in widths[-2::-1])
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for index, layer in enumerate(self.down):
            x = layer(F.max_pool2d(x, 2) if index else x)
            kept.append(x)
        for up, join, side in zip(self.up, self.join, kept[-2::-1], strict=False):
            x = join(torch.cat([up(x), side], 1))
        return self.head(x)


class Detector(nn.Module):
    """A head like YOLO's: boxes from a grid and anchors, decoded, and the best of each image."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.SiLU(), nn.Conv2d(32, 3 * 9, 1)
        )
        self.register_buffer("anchors", torch.tensor([[4.0, 6.0], [8.0, 8.0], [12.0, 5.0]]).reshape(1, 3, 1, 1, 2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.body(x)
        batch, _, height, width = y.shape
        y = y.reshape(batch, 3, 9, height, width).permute(0, 1, 3, 4, 2).sigmoid()
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        grid = torch.stack([columns, rows], -1).float()
        centres = (y[..., :2] * 2 - 0.5 + grid) * 4
        boxes = torch.cat([centres, (y[..., 2:4] * 2) ** 2 * self.anchors, y[..., 4:]], -1).flatten(1, 3)
        scores, best = (boxes[..., 4:5] * boxes[..., 5:]).amax(-1).topk(5, 1)
        return boxes.gather(1, best[..., None].expand(-1, -1, 9)), scores


class TwoStages(nn.Module):
    """A two-stage detector: boxes proposed from a grid, suppressed, their features aligned and classified."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
        self.propose = nn.Conv2d(16, 5, 1)
        self.classify = nn.Sequential(nn.Flatten(), nn.Linear(16 * 9, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self.body(picture)
        proposed = self.propose(features)[0]
        height, width = features.shape[2], features.shape[3]
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        centres = torch.stack([columns, rows], -1).reshape(-1, 2) * 4.0 + 2
        sides = (proposed[:4].reshape(4, -1).T[:, :2] * 0.5).exp() * 10
        boxes = torch.cat([centres - sides / 2, centres + sides / 2], 1).clamp(0, 64)
        scores = proposed[4].reshape(-1).sigmoid()
        kept = torch.ops.torchvision.nms(boxes, scores, 0.3)[:20]
        boxes, scores = boxes[kept], scores[kept]
        rois = torch.cat([torch.zeros_like(scores)[:, None], boxes], 1)
        aligned = torch.ops.torchvision.roi_align(features, rois, 0.25, 3, 3, 2, False)
        return boxes, scores, self.classify(aligned).softmax(1)
