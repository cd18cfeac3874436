"""The passes of this package, until nothing changes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult
from onnx_ir.passes.common import DeduplicateInitializersPass, RemoveUnusedNodesPass

from converters.passes.running import Runner
from converters.passes.simplification.biases import FuseBiases
from converters.passes.simplification.concatenations import MergeConcats
from converters.passes.simplification.constants import MAX_GROWTH, FoldConstants
from converters.passes.simplification.data_movement import MergeDataMovement
from converters.passes.simplification.dimensions import MergeDimensions
from converters.passes.simplification.duplicates import MergeDuplicates
from converters.passes.simplification.expansions import MergeExpansions
from converters.passes.simplification.gathers import MergeGathers
from converters.passes.simplification.negations import MergeNegations
from converters.passes.simplification.neutral import RemoveNeutral
from converters.passes.simplification.pads import FusePads

_MAX_ROUNDS = 5
_CLEANING = (DeduplicateInitializersPass, RemoveUnusedNodesPass)
"""The passes after which no other pass finds more."""


class Simplify(InPlacePass):
    """Fold constants, merge data movement, and remove duplicate and unused nodes until nothing changes.

    Args:
        stored, limit, halves: see `FoldConstants`.
        fold: whether constants are folded, or take a sign.
        fused: whether Pads become part of convolutions, Expands part of arithmetic, and Gathers Slices, and constants take
            the sign of negations. Some spellings need the separate nodes.
    """

    def __init__(
        self,
        *,
        stored: bool = False,
        limit: int = MAX_GROWTH,
        halves: bool = True,
        fold: bool = True,
        fused: bool = False,
    ) -> None:
        self.steps: Sequence[InPlacePass] = (
            *([FoldConstants(stored=stored, limit=limit, halves=halves)] if fold else []),
            MergeDataMovement(),
            MergeDimensions(),
            RemoveNeutral(),
            *([MergeNegations()] if fold and fused else []),
            MergeConcats(),
            *([FusePads(), MergeExpansions(), MergeGathers()] if fused else []),
            FuseBiases(),
            DeduplicateInitializersPass(),
            MergeDuplicates(),
            RemoveUnusedNodesPass(),
        )

    def call(self, model: ir.Model) -> PassResult:
        changed = False
        runner = Runner(model)
        for _ in range(_MAX_ROUNDS):
            modified = [step for step in self.steps if runner.run(step)]
            changed |= bool(modified)
            if all(isinstance(step, _CLEANING) for step in modified):
                break
        return PassResult(model, modified=changed)
