"""Activations whose exponentials do not overflow, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from converters.passes.finish import finish_for
from converters.passes.spellings import SPELLINGS
from converters.targets import TARGETS
from tests.converters.passes.graphs import floats, graph, operators, rewritten

BIG = np.array([[-3e6, -200, -50, -1, 0, 0.5], [3, 20, 60, 120, 4e3, 1e10]], np.float32)

EXPANDED = ["Exp", "Log", "ReduceMax", "ReduceSum", "Sub", "Sub"]


@pytest.mark.parametrize(
    ("name", "emit", "found"),
    [
        ("stable Softplus", lambda op, x: op.Softplus(x), ["Abs", "Add", "Max", "Neg", "Softplus"]),
        ("stable Softplus", lambda op, x: op.Softplus(op.Neg(x)), ["Abs", "Add", "Max", "Neg", "Neg", "Softplus"]),
        ("stable Softplus", lambda op, x: op.Softsign(x), ["Softsign"]),
        ("clipped Tanh", lambda op, x: op.Tanh(x), ["Clip", "Tanh"]),
        ("clipped Tanh", lambda op, x: op.Tanh(op.Clip(x, np.float32(-90), np.float32(90))), ["Clip", "Clip", "Tanh"]),
        ("clipped Tanh", lambda op, x: op.Atan(x), ["Atan"]),
        ("expanded LogSoftmax", lambda op, x: op.LogSoftmax(x), EXPANDED),
        ("expanded LogSoftmax", lambda op, x: op.LogSoftmax(x, axis=0), EXPANDED),
        ("expanded LogSoftmax", lambda op, x: op.Log(op.Softmax(x)), ["Log", "Softmax"]),
        ("odd Asinh", lambda op, x: op.Asinh(x), ["Abs", "Asinh", "Mul", "Sign"]),
        ("odd Asinh", lambda op, x: op.Asin(op.Tanh(x)), ["Asin", "Tanh"]),
        ("last Softmax axis", lambda op, x: op.Softmax(x, axis=0), ["Softmax", "Transpose", "Transpose"]),
        ("last Softmax axis", lambda op, x: op.Softmax(x, axis=-2), ["Softmax", "Transpose", "Transpose"]),
        ("last Softmax axis", lambda op, x: op.Softmax(x, axis=1), ["Softmax"]),
        ("last Softmax axis", lambda op, x: op.Softmax(x), ["Softmax"]),
    ],
)  # fmt: skip
def test_large_numbers(name: str, emit: Any, found: list[str]) -> None:
    assert rewritten(emit, floats("x", 2, 6), by=[SPELLINGS[name]()], numbers=[BIG]) == found


def test_softplus_of_mish_is_stable() -> None:
    """Mish becomes Softplus in an older opset, after the other spellings."""
    model = graph(lambda op, x: op.Mish(x), floats("x", 2, 6))
    finish_for(model, TARGETS["mnn"])
    assert operators(model).count("Abs") == 1
