"""Nodes that change nothing, that compute a constant, or that compute what another node does already."""

from converters.passes.simplification.biases import TakeBiases
from converters.passes.simplification.constants import FoldConstants
from converters.passes.simplification.moves import JoinMoves

__all__ = ["FoldConstants", "JoinMoves", "TakeBiases"]
