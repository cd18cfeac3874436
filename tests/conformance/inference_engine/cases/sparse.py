"""Sparse matrices, and affine transformations."""

from __future__ import annotations

import numpy as np

from tests.conformance.inference_engine.case import Case, one


def _fill(name, pairs, size, places, rows=None, **options) -> Case:
    pairs = np.array(pairs, np.float32).reshape(-1, 2)
    inputs = [pairs, (len(pairs),), np.array(size, np.float32), np.array([7], np.float32)]
    outs = [(places, 2), (places,), (rows or size[0],)]
    return one("SparseFillEmptyRows", name, inputs, outs, {}, version=7, **options)


def _fill_computed(name, pairs, size, places) -> Case:
    inputs = [(len(pairs), 2), (len(pairs),), (2,), (1,)]
    feeds = {"in0": np.array(pairs), "in2": [*size], "in3": [7]}
    return one("SparseFillEmptyRows", name, inputs, [(places, 2), (places,), (size[0],)], {}, version=7, feeds=feeds)


def _sum(name, pairs, picked, rows, table=(4, 5), default=1, weighted=False, computed=False) -> Case:
    pairs, picked = np.array(pairs, np.int32), np.array(picked, np.int32)
    inputs = [
        (pairs.shape, "I32") if computed else pairs,
        (picked.shape, "I32") if computed else picked,
        np.array([rows, 9], np.int32),
        table,
        np.array(default, np.int32),
    ]
    if weighted:
        inputs.append((len(picked),))
    feeds = {"in0": pairs, "in1": picked} if computed else None
    return one("ExperimentalSparseWeightedSum", name, inputs, (rows, *table[1:]), {}, version=7, feeds=feeds)


_PAIRS = [[0, 1], [0, 3], [2, 0], [3, 1], [3, 2]]

CASES = [
    _fill("gap", [[0, 1], [2, 3], [0, 2], [3, 0]], (4, 6), 5),
    _fill("marked_end", [[0, 1], [2, 3], [-1, -1], [1, 1]], (4, 6), 8),
    _fill("outside", [[1, 1], [0, 5], [0, 6], [1, 0]], (3, 6), 7),
    _fill("more_rows_stated", [[1, 1], [3, 5]], (4, 6), 6, 6),
    _fill("full", [[2, 0], [1, 0], [0, 0]], (3, 2), 3),
    _fill("nothing", [[-1, -1], [0, 0]], (3, 2), 5),
    _fill("order", [[2, 0], [1, 4], [2, 5], [1, 0], [2, 1]], (4, 6), 9),
    _fill_computed("computed", [[2, 0], [1, 4], [2, 5], [1, 0]], (4, 6), 6),
    _fill_computed("computed_with_an_end", [[2, 0], [1, 4], [4, 0.5], [1, 0]], (4, 6), 5),
    _fill_computed("computed_without_an_end", [[2, 0], [1, 4], [0, 3]], (4, 6), 4),
    _sum("computed", _PAIRS, [1, 0, 2, 3, 3], 4, computed=True),
    _sum("unused_default_below_the_table", [[0, 0], [1, 2]], [1, 3], 2, default=-1),
    _sum("unused_default_beyond_the_table", [[0, 0], [1, 2]], [1, 3], 2, default=4),
    _sum("plain", _PAIRS, [1, 0, 2, 3, 3], 4),
    _sum("weighted", _PAIRS, [1, 0, 2, 3, 3], 4, weighted=True),
    _sum("apart", [[0, 1], [0, 3], [2, 0], [0, 1], [2, 2]], [1, 0, 2, 3, 3], 4, default=0),
    _sum("apart_weighted", [[3, 1], [0, 3], [3, 0], [3, 1], [0, 2]], [1, 0, 2, 3, 3], 5, weighted=True),
    _sum("matrices", [[0, 1], [1, 3]], [1, 0], 3, table=(4, 2, 3)),
    _sum("matrices_weighted", [[0, 1], [1, 3]], [1, 0], 3, table=(4, 2, 3), weighted=True),
    *[
        one("PowerFile", name, dims, dims, data, version=version)
        for name, dims, data, version in (
            ("transformations", (2, 6), {}, 6),
            ("image", (1, 2, 3, 5), {"power_file": "identity"}, 7),
            ("vector", (1, 13), {}, 5),
            ("version2", (1, 6, 1, 1), {}, 2),
        )
    ],
    *[
        one("Swish", name, dims, dims, data, version=version, feeds={"in0": (-4, 4)})
        for name, dims, data, version in (
            ("plain", (2, 9), {}, 6),
            ("steeper", (2, 9), {"alpha": 2.5}, 6),
            ("flat", (1, 2, 3, 5), {"alpha": 0}, 7),
            ("volume", (1, 2, 3, 5, 2), {"alpha": "0.7"}, 7),
        )
    ],
    *[
        one("Gelu", name, dims, dims, {}, version=version, feeds={"in0": (-4, 4)})
        for name, dims, version in (
            ("vector", (2, 9), 6),
            ("image", (1, 2, 3, 5), 7),
            ("volume", (1, 2, 3, 5, 2), 7),
            ("version5", (3, 4), 5),
        )
    ],
    one("Activation", "swish", (2, 9), (2, 9), {"type": "swish", "alpha": 1.5}),
    one("Activation", "gelu", (2, 9), (2, 9), {"type": "gelu"}),
]
