"""The passes that give a graph the form that a target needs, in order."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult
from onnx_ir.passes.common import (
    CommonSubexpressionEliminationPass,
    DeduplicateInitializersPass,
    RemoveUnusedNodesPass,
)

from converters.passes.simplification import FoldConstants, FuseBiases, MergeDataMovement
from converters.passes.spellings import LAST, SPELLINGS
from converters.targets.target import Target

_MAX_ROUNDS = 5


class Simplify(InPlacePass):
    """Fold constants, merge data movement, and remove duplicate and unused nodes until nothing changes.

    Args:
        stored: see `FoldConstants`.
    """

    def __init__(self, *, stored: bool = False) -> None:
        self.steps: Sequence[InPlacePass] = (
            FoldConstants(stored=stored),
            MergeDataMovement(),
            FuseBiases(),
            DeduplicateInitializersPass(),
            CommonSubexpressionEliminationPass(),
            RemoveUnusedNodesPass(),
        )

    def call(self, model: ir.Model) -> PassResult:
        changed = False
        for _ in range(_MAX_ROUNDS):
            modified = [bool(step(model).modified) for step in self.steps]
            changed |= any(modified)
            if not any(modified[:3]) and not modified[4]:
                break
        return PassResult(model, modified=changed)


def spelling_passes(target: Target, *, last: bool = False) -> list[InPlacePass]:
    """Return the passes for a target's spellings: those before the last `Simplify`, or those that it would revert."""
    return [SPELLINGS[name]() for name in target.spellings if (name in LAST) == last]
