"""Attention in the form that OpenCV fuses, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.fused_attention import BiasedAttention, fused_attentions
from converters.passes.spellings.order import SortByDepth
from converters.passes.spellings.reshapes import StatedDimensions
from tests.converters.passes.graphs import floats, graph, rewritten

WEIGHTS = [np.random.default_rng(seed).standard_normal((8, 8)).astype(np.float32) for seed in range(3)]
BIAS = np.arange(8, dtype=np.float32)


def _attention(
    op: Any,
    x: Any,
    mask: Any,
    *,
    biases: Any = (1, 1, 1),
    first: bool = False,
    shared: bool = False,
    shape: Any = (2, 3, 4, 2),
) -> Any:
    heads = []
    for index, (weights, biased) in enumerate(zip(WEIGHTS, biases, strict=True)):
        product = op.MatMul(x, weights)
        product = op.Add(product, BIAS) if biased else product
        perm = [0, 2, 3, 1] if index == 1 else [0, 2, 1, 3]
        heads.append(op.Transpose(op.Reshape(product, op.const(np.array(shape))), perm=perm))
    scores = op.Div(op.MatMul(heads[0], heads[1]), np.float32(1.5))
    scores = op.Add(mask, scores) if first else op.Add(scores, mask)
    result = op.Transpose(op.MatMul(op.Softmax(scores, axis=-1), heads[2]), perm=[0, 2, 1, 3])
    return (result, heads[0]) if shared else result


INPUTS = ("x", 2, 3, 8), ("mask", 2, 1, 1, 3)


def _inputs() -> list[Any]:
    return [floats(*given) for given in INPUTS]


@pytest.mark.parametrize(
    ("options", "added"),
    [
        ({"biases": (1, 1, 1)}, 0),
        ({"biases": (0, 0, 0)}, 3),
        ({"biases": (1, 0, 1)}, 1),
        ({"biases": (0, 1, 1), "first": True}, 1),
        ({"biases": (0, 0, 0), "shared": True}, 0),  # another node uses the queries
    ],
)
def test_biases(options: dict[str, Any], added: int) -> None:
    before = sum(options["biases"]) + 1
    found = rewritten(lambda op, x, mask: _attention(op, x, mask, **options), *_inputs(), by=[BiasedAttention()])
    assert found.count("Add") == before + added


@pytest.mark.parametrize("first", [False, True])
def test_masks_are_the_second_operand(first: bool) -> None:
    model = graph(lambda op, x, mask: _attention(op, x, mask, first=first), *_inputs())
    BiasedAttention()(model)
    added = next(node for node in model.graph if node.op_type == "Softmax").inputs[0]
    assert added is not None and (node := added.producer()) is not None and node.inputs[1] is model.graph.inputs[1]


@pytest.mark.parametrize(
    ("emit", "count"),
    [
        (lambda op, x, mask: _attention(op, x, mask), 1),
        (lambda op, x, mask: _attention(op, x, mask, shared=True), 0),
        (lambda op, x, mask: op.Softmax(op.Add(mask, op.MatMul(x, WEIGHTS[0])), axis=-1), 0),
    ],
)
def test_what_is_fused(emit: Any, count: int) -> None:
    inputs = floats("x", 2, 3, 8), floats("mask", 2, 1, 1, 1)
    assert len(list(fused_attentions(graph(emit, *inputs).graph))) == count


def test_masks_are_computed_before_projections() -> None:
    """A mask that is computed by more nodes than the queries."""

    def emit(op: Any, x: Any, mask: Any) -> Any:
        return _attention(op, x, op.Neg(op.Abs(op.Sin(mask))))

    model = graph(emit, *_inputs())
    SortByDepth()(model)
    order = [node.op_type for node in model.graph]
    assert order.index("Neg") < order.index("MatMul")
    assert rewritten(emit, *_inputs(), by=[SortByDepth()]).count("MatMul") == len(WEIGHTS) + 2


@pytest.mark.parametrize(
    ("shape", "dims", "stated"),
    [
        ((2, 3, -1, 2), (2, 3, 8), [2, 3, 4, 2]),
        ((-1, 3, 4, 2), (None, 3, 8), [-1, 3, 4, 2]),  # unknown
        ((0, 3, 4, 2), (2, 3, 8), [0, 3, 4, 2]),
        ((-1, 8), (2, 3, 8), [6, 8]),
        ((-1, 8), (2, 0, 8), [-1, 8]),  # 0 would copy the 2
    ],
)
def test_stated_dimensions(shape: tuple[int, ...], dims: tuple[int | None, ...], stated: list[int]) -> None:
    model = graph(lambda op, x: op.Reshape(x, op.const(np.array(shape))), floats("x", *dims))
    StatedDimensions()(model)
    given = model.graph[0].inputs[1]
    assert given is not None and isinstance(given.const_value, ir.TensorProtocol)
    assert given.const_value.numpy().tolist() == stated
