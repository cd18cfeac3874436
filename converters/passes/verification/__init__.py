"""Rewrites verified by evaluation: the nodes that a pass replaces, and those that replace them, run on the same inputs.

A pass states its conditions and has tests for them; a condition that nobody thought of has neither. So each replacement can
be computed: `Verifier` is a check for `onnx_specops.replacing.checked_by`. It extracts the two computations from the graph
(`regions`), chooses sizes and numbers for their common inputs (`trials`), runs both in ONNX Runtime and compares.
"""

from converters.passes.verification.regions import NotEvaluated
from converters.passes.verification.verifier import Difference, Verifier

__all__ = ["Difference", "NotEvaluated", "Verifier"]
