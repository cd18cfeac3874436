"""Removal of nodes without effect, of constant computations, and of duplicates."""

from converters.passes.simplification.biases import FuseBiases
from converters.passes.simplification.constants import FoldConstants
from converters.passes.simplification.data_movement import MergeDataMovement

__all__ = ["FoldConstants", "FuseBiases", "MergeDataMovement"]
