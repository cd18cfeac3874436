"""Elu and Gelu in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from tests.onnx_specops.optimizing.graphs import X, changed, made

NUMBERS = [sign * end for end in (0, 1, 20, 21, 80, 88, 88.7, 88.8, 200, 1e-30) for sign in (1, -1)]


def node(operator: str, x: str = X, y: str = "y", **stated: object) -> NodeProto:
    return helper.make_node(operator, [x], [y], **stated)


BIAS = np.ones(16, np.float32)


@pytest.mark.parametrize(
    ("nodes", "dims", "found"),
    [
        ([node("Elu")], (4, 32, 16), True),
        ([node("Elu", alpha=1.0)], (2048,), True),
        ([node("Elu")], ("batch", 32, 16), True),
        ([node("Elu", alpha=0.5)], (4, 32, 16), False),
        ([node("Elu")], (2047,), False),
        ([node("Elu")], (), False),
        ([node("Gelu")], (4, 32, 16), True),
        ([node("Gelu", approximate="none")], ("batch", 32, 16), True),
        ([node("Gelu", approximate="tanh")], (4, 32, 16), False),
        ([node("Gelu")], (2047,), False),
        ([helper.make_node("Add", [X, "b"], ["s"]), node("Gelu", "s")], (4, 32, 16), False),
        ([helper.make_node("Add", ["b", X], ["s"]), node("Gelu", "s")], (4, 32, 16), False),
        ([helper.make_node("Add", [X, X], ["s"]), node("Gelu", "s")], (4, 32, 16), True),
        ([helper.make_node("Add", [X, "b"], ["s"]), node("Elu", "s")], (4, 32, 16), True),
        ([node("Relu")], (4, 32, 16), False),
    ],
)
def test_conditions(nodes: list[NodeProto], dims: Sequence[int | str], found: bool) -> None:
    array = (4 * np.random.default_rng(0).standard_normal([3 if isinstance(dim, str) else dim for dim in dims])).astype(
        np.float32
    )
    if array.ndim:
        array.reshape(-1)[: len(NUMBERS)] = NUMBERS
    assert changed(made(nodes, dims, weights={"b": BIAS}), ["Elementwise"], x=array) is found


@pytest.mark.parametrize("type_", [TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_other_types_stay(type_: int) -> None:
    kind = np.float16 if type_ == TensorProto.FLOAT16 else np.float64
    x = np.ones((4, 32, 16), kind)
    assert not changed(made([node("Elu")], (4, 32, 16), type_=type_), ["Elementwise"], x=x)


def test_unknown_ranks_stay() -> None:
    nodes = [helper.make_node("Reshape", [X, "shape"], ["r"]), node("Elu", "r")]
    model = made(nodes, (4, 32, 16))
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [None])
    model.graph.input.append(shape)
    assert not changed(model, ["Elementwise"], shape=np.array([64, 32]))
