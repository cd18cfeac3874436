"""A graph in a target's spelling."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.spellings import SPELLINGS
from tests.converters.passes.graphs import floats, graph, run

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def spelled(name: str, emit, array: np.ndarray = X, *dims: int | None) -> ir.Model:
    """Return the graph in a spelling that changes no result."""
    before = run(graph(emit, floats("x", *(dims or array.shape))), array)
    model = graph(emit, floats("x", *(dims or array.shape)))
    SPELLINGS[name]()(model)
    for old, new in zip(before, run(model, array), strict=True):
        np.testing.assert_array_equal(new, old, strict=True)
    return model
