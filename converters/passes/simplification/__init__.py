"""Removal of nodes without effect, of constant computations, and of duplicates."""

from converters.passes.simplification.biases import FuseBiases
from converters.passes.simplification.concatenations import MergeConcats
from converters.passes.simplification.constants import FoldConstants
from converters.passes.simplification.data_movement import MergeDataMovement
from converters.passes.simplification.dimensions import MergeDimensions
from converters.passes.simplification.duplicates import MergeDuplicates
from converters.passes.simplification.expansions import MergeExpansions
from converters.passes.simplification.gathers import MergeGathers
from converters.passes.simplification.negations import MergeNegations
from converters.passes.simplification.neutral import RemoveNeutral
from converters.passes.simplification.pads import FusePads
from converters.passes.simplification.simplify import Simplify

__all__ = [
    "FoldConstants",
    "FuseBiases",
    "FusePads",
    "MergeConcats",
    "MergeDataMovement",
    "MergeDimensions",
    "MergeDuplicates",
    "MergeExpansions",
    "MergeGathers",
    "MergeNegations",
    "RemoveNeutral",
    "Simplify",
]
