"""Removal of nodes without effect, of constant computations, and of duplicates."""

from converters.passes.simplification.biases import FuseBiases
from converters.passes.simplification.constants import MAX_GROWTH, FoldConstants
from converters.passes.simplification.data_movement import MergeDataMovement
from converters.passes.simplification.duplicates import MergeDuplicates

__all__ = ["MAX_GROWTH", "FoldConstants", "FuseBiases", "MergeDataMovement", "MergeDuplicates"]
