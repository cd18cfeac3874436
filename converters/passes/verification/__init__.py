"""Verification of rewrites by evaluation: run the replaced nodes and their replacements on the same inputs.

A pass states its conditions and has tests for them, but a condition may be missing. `Verifier` is a check for
`onnx_specops.replacing.checked_by` that evaluates each replacement. It extracts both computations from the graph
(`regions`), selects shapes and numbers for their common inputs (`trials`), runs both in ONNX Runtime and compares the
results.
"""

from converters.passes.verification.regions import NotEvaluated
from converters.passes.verification.verifier import Difference, Verifier

__all__ = ["Difference", "NotEvaluated", "Verifier"]
