"""Replacements by workarounds are checked, unless ONNX Runtime computes the original incorrectly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.verification import Verifier
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.replacing import checked_by
from tests.converters.passes.graphs import floats, graph, operators


class _Limited(Workaround):
    """Replace Relu by a Clip, which differs above 6."""

    operators = frozenset(("Relu",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        return [op.Clip(node.inputs[0], np.float32(0), np.float32(6))]


class _Incorrect(_Limited):
    equal = False


class _Masked(Workaround):
    """Replace Relu by a product with a mask, which differs for infinities."""

    operators = frozenset(("Relu",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        return [op.Mul(x, op.Cast(op.Greater(x, np.float32(0)), to=ir.DataType.FLOAT))]


class _MaskedInfinities(_Masked):
    finite = False


@pytest.mark.parametrize(
    ("workaround", "found", "differences"),
    [
        (_Limited, ["Relu"], ["_Limited"]),
        (_Incorrect, ["Clip"], []),
        (_Masked, ["Cast", "Greater", "Mul"], []),
        (_MaskedInfinities, ["Relu"], ["_MaskedInfinities"]),
    ],
)
def test_replacements_are_checked(workaround: type[Workaround], found: list[str], differences: list[str]) -> None:
    model, verifier = graph(lambda op, x: op.Relu(x), floats("x", 2, 3)), Verifier()
    with checked_by(verifier):
        workaround()(model)
    RemoveUnusedNodesPass()(model)
    assert operators(model) == found
    assert [difference.rewrite for difference in verifier.differences] == differences
