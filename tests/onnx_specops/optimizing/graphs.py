"""Small models, and a comparison of their results before and after nodes are replaced."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import NodeProto, TensorProto, helper, numpy_helper

import onnx_specops
from onnx_specops.optimizing import optimize_in_place
from onnx_specops.runtime.library import has_library
from tests.onnx_specops.runtime.graphs import value

X = "x"


def numbers(*dims: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(dims) / 16).astype(np.float32)


def made(
    nodes: Sequence[NodeProto],
    x: Sequence[int | str | None],
    outputs: Sequence[str] = ("y",),
    inputs: Sequence[onnx.ValueInfoProto] = (),
    opset: int = 21,
    type_: int = TensorProto.FLOAT,
    weights: Mapping[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """Return a model with the input ``x``, and outputs whose types it does not state."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [value(X, type_, x), *inputs],
        [value(name, type_, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def changed(model: onnx.ModelProto, operators: Collection[str], atol: float = 1e-5, **feeds: Any) -> bool:
    """Change a model, and check that it computes the same; return whether it has one of the domain's operators."""
    before = model.SerializeToString()
    found = optimize_in_place(model)
    assert found == any(node.op_type in operators for node in model.graph.node)
    if not found:
        assert model.SerializeToString() == before
    elif has_library():
        feeds = {
            given.name: numbers(*(dim.dim_value or 3 for dim in given.type.tensor_type.shape.dim), seed=7)
            for given in model.graph.input
        } | feeds
        plain = ort.InferenceSession(before).run(None, feeds)
        options = ort.SessionOptions()
        onnx_specops.register(options, "native")
        ours = ort.InferenceSession(model.SerializeToString(), options).run(None, feeds)
        for a, b in zip(plain, ours, strict=True):
            np.testing.assert_allclose(a, b, atol=atol)
    return found
