"""Normalizations and matrix products."""

from __future__ import annotations

import numpy as np

from tests.conformance.inference_engine.case import one, random

_D = (1, 6, 4, 5)
_FC = {"weights": random(1, 5, 24), "biases": random(2, 5)}


def _norm(name, data, dims=_D, kind="Norm", **options):
    return one(kind, name, dims, dims, {"alpha": 0.5, "beta": 0.75, "k": 1, **data}, feeds={"in0": (-3, 3)}, **options)


_INFINITE = np.array([np.inf, *np.linspace(-1, 1, 24), np.nan, -np.inf])

CASES = [
    one(
        "BatchNormalization",
        "plain",
        _D,
        _D,
        {"epsilon": 1e-3},
        blobs={"weights": random(1, 6, low=0.5, high=2), "biases": random(2, 6)},
    ),
    one(
        "BatchNormalization",
        "rows",
        (3, 6),
        (3, 6),
        {"epsilon": 0.1},
        blobs={"weights": random(1, 6, low=0.5, high=2), "biases": random(2, 6)},
    ),
    one(
        "BatchNormalization",
        "half",
        _D,
        _D,
        {"epsilon": 1e-2},
        blobs={"weights": random(1, 6, low=0.5, high=2), "biases": random(2, 6)},
        precision="FP16",
    ),
    one(
        "BatchNormalization",
        "version2",
        _D,
        _D,
        {"epsilon": 1e-3},
        blobs={"weights": random(1, 6, low=0.5, high=2), "biases": random(2, 6)},
        version=2,
        legacy_blobs=True,
        data_element="batch_norm_data",
    ),
    _norm("across", {"local-size": 5, "region": "across"}),
    _norm("across_even", {"local-size": 4, "region": "ACROSS"}),
    _norm("same", {"local-size": 3, "region": "same"}),
    _norm("k", {"local-size": 3, "region": "across", "k": 2}),
    _norm("underscore", {"local_size": 3, "region": "across"}),
    _norm("across", {"local-size": 3, "region": "across"}, kind="LRN"),
    _norm("same", {"local-size": 3, "region": "same"}, kind="LRN"),
    _norm("batch", {"local-size": 3, "region": "across"}, dims=(2, 8, 3, 3), kind="LRN"),
    _norm("version7", {"local-size": 3, "region": "across"}, kind="LRN", version=7),
    _norm("version2", {"local-size": 5, "region": "across"}, version=2, data_element="norm_data"),
    one("MVN", "plain", _D, _D, {"across_channels": 0, "normalize_variance": 1, "eps": 1e-9}),
    one("MVN", "across", _D, _D, {"across_channels": 1, "normalize_variance": 1, "eps": 1e-5}),
    one("MVN", "mean_only", _D, _D, {"across_channels": 0, "normalize_variance": 0, "eps": 1e-9}),
    one("MVN", "across_mean_only", (2, 3, 4, 4), (2, 3, 4, 4), {"across_channels": 1, "normalize_variance": 0, "eps": 1e-9}),
    one("MVN", "great_eps", _D, _D, {"across_channels": 0, "normalize_variance": 1, "eps": 0.5}),
    one(
        "MVN",
        "five_dimensions",
        (1, 2, 3, 4, 4),
        (1, 2, 3, 4, 4),
        {"across_channels": 0, "normalize_variance": 1, "eps": 1e-5},
    ),
    one(
        "Normalize",
        "plain",
        _D,
        _D,
        {"across_spatial": 0, "channel_shared": 0, "eps": 1e-10},
        blobs={"weights": random(1, 6)},
    ),
    one("Normalize", "defaults", _D, _D, {"eps": 1e-3}, blobs={"weights": random(1, 6)}),
    one("Normalize", "defaults_of_version_3", _D, _D, {"eps": 1e-3}, blobs={"weights": random(1, 6)}, version=3),
    one(
        "Normalize",
        "shared",
        _D,
        _D,
        {"across_spatial": 0, "channel_shared": 1, "eps": 1e-3},
        blobs={"weights": random(1, 1)},
    ),
    one(
        "Normalize",
        "across",
        _D,
        _D,
        {"across_spatial": 1, "channel_shared": 0, "eps": 1e-3},
        blobs={"weights": random(1, 6)},
    ),
    one(
        "Normalize",
        "across_shared",
        (2, 3, 4, 4),
        (2, 3, 4, 4),
        {"across_spatial": 1, "channel_shared": 1, "eps": 0.1},
        blobs={"weights": random(1, 1)},
    ),
    one(
        "Normalize",
        "rows",
        (3, 6),
        (3, 6),
        {"across_spatial": 0, "channel_shared": 0, "eps": 1e-3},
        blobs={"weights": random(1, 6)},
    ),
    one(
        "Normalize",
        "half",
        _D,
        _D,
        {"across_spatial": 0, "channel_shared": 0, "eps": 1e-6},
        blobs={"weights": random(1, 6)},
        precision="FP16",
    ),
    one("FullyConnected", "rows", (2, 24), (2, 5), {"out-size": 5}, blobs=_FC),
    one("FullyConnected", "images", (2, 4, 2, 3), (2, 5), {"out-size": 5}, blobs=_FC),
    one("FullyConnected", "no_biases", (2, 24), (2, 5), {"out-size": 5}, blobs={"weights": random(1, 5, 24)}),
    one("FullyConnected", "half", (2, 24), (2, 5), {"out-size": 5}, blobs=_FC, precision="FP16"),
    one(
        "FullyConnected",
        "version2",
        (1, 24),
        (1, 5),
        {"out-size": 5},
        blobs=_FC,
        version=2,
        legacy_blobs=True,
        data_element="fc_data",
    ),
    one("FullyConnected", "weights_as_input", [(2, 24), random(1, 5, 24), random(2, 5)], (2, 5), {"out-size": 5}, version=7),
    one("InnerProduct", "rows", (2, 24), (2, 5), {"out-size": 5}, blobs=_FC),
    one("InnerProduct", "images", (2, 4, 2, 3), (2, 5), {"out-size": 5}, blobs=_FC),
    one("InnerProduct", "no_biases", (2, 24), (2, 5), {"out-size": 5}, blobs={"weights": random(1, 5, 24)}),
    one("InnerProduct", "version7", (2, 24), (2, 5), {"out-size": 5}, blobs=_FC, version=7),
    one("Gemm", "plain", [(3, 4), (4, 5)], (3, 5), {"alpha": 1, "beta": 1, "transpose_a": 0, "transpose_b": 0}),
    one("Gemm", "three", [(3, 4), (4, 5), (3, 5)], (3, 5), {"alpha": 0.5, "beta": 2, "transpose_a": 0, "transpose_b": 0}),
    one("Gemm", "transposed", [(4, 3), (5, 4)], (3, 5), {"transpose_a": 1, "transpose_b": 1}),
    one("Gemm", "batch", [(1, 2, 3, 4), (1, 2, 4, 5)], (1, 2, 3, 5), {"alpha": 2, "transpose_a": 0, "transpose_b": 0}),
    one("Gemm", "broadcast", [(2, 2, 3, 4), (1, 1, 4, 5)], (2, 2, 3, 5), {"transpose_a": "False", "transpose_b": "False"}),
    one("Gemm", "batch_transposed", [(2, 3, 4), (2, 5, 4)], (2, 3, 5), {"transpose_b": "true"}),
    *[
        one("Gemm", name, [(3, 4), (4, 5), (3, 5)], (3, 5), data, feeds={"in0": _INFINITE[:12], "in2": _INFINITE[-15:]})
        for name, data in (
            ("no_product", {"alpha": 0, "beta": 2}),
            ("no_addend", {"alpha": 1, "beta": 0}),
            ("nothing", {"alpha": 0, "beta": 0}),
            ("infinity", {"alpha": -1, "beta": 0.5}),
        )
    ],
    one("Gemm", "no_product_of_two", [(3, 4), (4, 5)], (3, 5), {"alpha": 0}, feeds={"in0": _INFINITE[:12]}),
    one("Gemm", "of_a_constant", [(3, 4), random(4, 4, 5)], (3, 5), {"alpha": 1, "beta": 1}, version=7),
]
