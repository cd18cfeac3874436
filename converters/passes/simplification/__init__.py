"""Nodes that change nothing, that compute a constant, or that compute what another node does already."""

from converters.passes.simplification.biases import FuseBiases
from converters.passes.simplification.constants import FoldConstants
from converters.passes.simplification.data_movement import MergeDataMovement

__all__ = ["FoldConstants", "FuseBiases", "MergeDataMovement"]
