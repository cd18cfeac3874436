"""Attributes without effect that a program requires or misinterprets, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.passes.spellings.spelled import spelled


@pytest.mark.parametrize(("beta", "left"), [(0.5, False), (0.4, True)])
def test_defaults(beta: float, left: bool) -> None:
    (node,) = spelled("no defaults", lambda op, x: op.HardSigmoid(x, alpha=0.3, beta=beta)).graph
    assert ("beta" in node.attributes) == left and "alpha" in node.attributes


@pytest.mark.parametrize(("mode", "stated"), [(None, "constant"), ("constant", "constant"), ("edge", "edge")])
def test_modes_of_padding(mode: str | None, stated: str) -> None:
    attributes = {} if mode is None else {"mode": mode}
    (node,) = spelled("stated modes", lambda op, x: op.Pad(x, [0, 1, 0, 1], **attributes)).graph
    assert node.attributes.get_string("mode") == stated


@pytest.mark.parametrize(
    ("attributes", "kept"), [({}, False), ({"pads": [0, 0, 1, 1]}, True), ({"auto_pad": "SAME_UPPER"}, True)]
)
def test_counted_padding(attributes: dict, kept: bool) -> None:
    def emit(op, x):
        return op.AveragePool(x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=0, count_include_pad=1, **attributes)

    (node,) = spelled("no defaults", emit, np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)).graph
    assert ("count_include_pad" in node.attributes) is kept
