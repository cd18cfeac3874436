"""Networks of PyTorch's own layers."""

from __future__ import annotations

import numpy as np

from tests.conformance.models.from_torch import imported, own
from tests.conformance.models.network import Input, Network, floats, ids, squares, uniform
from tests.conformance.models.rows.transformers_text import TEXT_SIZES


def mine(name, inputs, sizes, *args, family="torch", module=None, scripted=False, **options):
    return Network(name, family, "torch", imported(own(module or name, *args, **options), scripted=scripted), inputs, sizes)


def rec(kind, **o):
    label = kind + "".join(f", {k}" for k in o)
    return mine(label, {"tokens": ids(50, "b", "s")}, TEXT_SIZES, kind, module="Recurrent", family="recurrent", **o)


def script(name, inputs, sizes):
    return mine(f"{name}, scripted", inputs, sizes, name, module="scripted", scripted=True, family="control flow")


NETWORKS = [
    rec("LSTM", num_layers=2, bidirectional=True),
    rec("GRU", num_layers=2, bidirectional=True),
    rec("GRU", num_layers=1),
    rec("RNN", num_layers=2, bidirectional=True),
    rec("RNN", nonlinearity="relu"),
    mine(
        "PackedLSTM",
        {"x": floats(3, 9, 8), "lengths": Input((3,), lambda g, s: np.array([9, 4, 6]))},
        ({}, {}),
        family="recurrent",
    ),
    mine("LSTMCell loop", {"x": floats(5, "b", 8)}, ({"b": 2}, {"b": 1}), "LSTMCell", module="CellLoop", family="recurrent"),
    mine("ConvLSTM", {"x": floats("b", 4, 3, "h", "w")}, squares(16, 24), family="recurrent"),
    mine(
        "Seq2SeqAttention",
        {"source": ids(50, "b", "s"), "target": ids(50, "b", "t")},
        ({"b": 2, "s": 7, "t": 5}, {"b": 1, "s": 11, "t": 3}),
        family="recurrent",
    ),
    mine("SpeechCTC", {"x": floats("b", 16, "t")}, ({"b": 2, "t": 40}, {"b": 1, "t": 57}), family="recurrent"),
    mine("DLRM", {"dense": floats("b", 13), "categories": ids(30, 3, "b", 4)}, ({"b": 2}, {"b": 5}), family="recommenders"),
    mine("DeepFM", {"x": ids(100, "b", 5)}, ({"b": 2}, {"b": 5}), family="recommenders"),
    mine("InterestNetwork", {"h": ids(80, "b", "s"), "o": ids(80, "b")}, TEXT_SIZES, family="recommenders"),
    mine(
        "Bags",
        {
            "items": ids(50, "n"),
            "offsets": Input(("b",), lambda g, s: np.sort(g.integers(0, 9, s)).astype(np.int64) * (np.arange(s[0]) > 0)),
            "weights": floats("n"),
        },
        ({"b": 3, "n": 10}, {"b": 3, "n": 10}),
        family="recommenders",
    ),
    script("Branches", {"x": floats("b", 8)}, ({"b": 2}, {"b": 3})),
    script(
        "Repeats", {"x": floats("b", 8), "turns": Input((), lambda g, s: np.array(g.integers(0, 5)))}, ({"b": 2}, {"b": 3})
    ),
    script("Settles", {"x": floats("b", 8)}, ({"b": 2}, {"b": 3})),
    script("Greedy", {"state": floats("b", 16), "token": ids(20, "b")}, ({"b": 2}, {"b": 3})),
    script("EarlyExit", {"x": floats("b", 8)}, ({"b": 2}, {"b": 3})),
    mine("Points", {"x": floats("b", 3, "n")}, ({"b": 2, "n": 32}, {"b": 3, "n": 50}), family="others"),
    mine(
        "GraphAttention",
        {"nodes": floats("n", 8), "edges": ids(9, 2, "e")},
        ({"n": 9, "e": 20}, {"n": 12, "e": 31}),
        family="others",
    ),
    mine("TemporalConvolutions", {"x": floats("b", 4, "t")}, ({"b": 2, "t": 30}, {"b": 1, "t": 41}), family="others"),
    mine("SpatialTransformer", {"x": floats("b", 3, 32, 32)}, ({"b": 2}, {"b": 1}), family="others"),
    mine("SuperResolution", {"x": floats("b", 3, "h", "w")}, squares(16, 24), family="others"),
    mine("UNet", {"x": floats("b", 3, "h", "w")}, squares(32, 48), family="others"),
    mine("Detector", {"x": floats("b", 3, "h", "w")}, squares(32, 48), family="others"),
    mine("TwoStages", {"x": uniform(1, 3, "h", "w")}, ({"h": 64, "w": 64}, {"h": 48, "w": 64}), family="others"),
]
