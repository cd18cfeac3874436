"""Quantization and binary convolutions."""

from __future__ import annotations

import numpy as np

from tests.conformance.inference_engine.case import Case, one
from tests.conformance.inference_engine.model import Net

_D = (1, 3, 4, 5)


def _fq(name, low, high, out_low, out_high, levels=200, dims=_D, kind="FakeQuantize", **options) -> Case:
    limits = [np.asarray(v, np.float32) for v in (low, high, out_low, out_high)]
    if np.ndim(low) == 0:
        limits = [v.reshape(1, 1, 1, 1)[(0,) * (4 - len(dims))] for v in limits]
    return one(kind, name, [dims, *limits], dims, {"levels": levels}, feeds={"in0": (-2, 2)}, **options)


def _channels(*values):
    return np.array(values, np.float32).reshape(1, -1, 1, 1)


def _binary(name, channels, outputs, size, kernel, out, data=None, out_low=-1.0, low=0.1, high=None) -> Case:
    def make(net: Net) -> None:
        x = net.input(1, channels, size, size)
        limits = [
            net.const(np.full((1, 1, 1, 1), v, np.float32)) for v in (low, low if high is None else high, out_low, 1.0)
        ]
        bits = net.layer("FakeQuantize", [x, *limits], [x.dims], {"levels": 2})
        count = outputs * channels * kernel * kernel
        weights = np.random.default_rng(5).integers(0, 256, count // 8, dtype=np.uint8)
        attributes = {"kernel": (kernel, kernel), "output": outputs, "input": channels, "group": 1, "pad_value": 0.0}
        attributes |= {
            "mode": "xnor-popcount",
            "strides": (1, 1),
            "dilations": (1, 1),
            "pads_begin": (0, 0),
            "pads_end": (0, 0),
        }
        attributes |= data or {}
        blobs = {"weights": weights}
        net.layer("BinaryConvolution", [bits], [out], attributes, blobs=blobs, name="out")

    return Case("BinaryConvolution", name, make)


CASES = [
    _fq("bytes", -1.0, 1.0, -1.0, 1.0),
    _fq("other_range", -1.0, 1.0, 0.0, 5.0),
    _fq("few_levels", -1.0, 1.0, -2.0, 2.0, 5),
    _fq("channels", _channels(-1, -0.5, 0), _channels(1, 0.5, 2), _channels(-1, -0.5, 0), _channels(1, 0.5, 2)),
    _fq("two_levels", 0.1, 0.1, -1.0, 1.0, 2),
    _fq("two_levels_of_channels", _channels(-1, 0, 1), _channels(-1, 0, 1), _channels(-1, -1, -1), _channels(1, 1, 1), 2),
    _fq("two_levels_of_a_range", -1.0, 1.0, -0.5, 2.0, 2),
    _binary("bits_of_a_range", 8, 8, 5, 3, (1, 8, 3, 3), out_low=0.0, low=-0.5, high=1.0),
    _fq("version7", -1.0, 1.0, -1.0, 1.0, version=7),
    _fq("bytes", -1.0, 1.0, -1.0, 1.0, kind="Quantize", version=5),
    _fq("few_levels", -1.0, 1.0, -2.0, 2.0, 5, kind="Quantize", version=5),
    _fq("two_levels", 0.1, 0.1, -1.0, 1.0, 2, kind="Quantize", version=5),
    _fq(
        "channels",
        _channels(-1, -0.5, 0),
        _channels(1, 0.5, 2),
        _channels(-1, -0.5, 0),
        _channels(1, 0.5, 2),
        kind="Quantize",
        version=5,
    ),
    _binary("plain", 16, 16, 5, 3, (1, 16, 3, 3)),
    _binary("points", 32, 16, 3, 1, (1, 16, 3, 3)),
    _binary("strides", 16, 16, 7, 3, (1, 16, 3, 3), {"strides": (2, 2)}),
    _binary("pads", 16, 16, 4, 3, (1, 16, 4, 4), {"pads_begin": (1, 1), "pads_end": (1, 1), "pad_value": -1.0}),
    _binary("pads_of_nothing", 16, 16, 4, 3, (1, 16, 4, 4), {"pads_begin": (1, 1), "pads_end": (1, 1), "pad_value": 0.0}),
    _binary("from_0", 16, 16, 5, 3, (1, 16, 3, 3), out_low=0.0),
]
