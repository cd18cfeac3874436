"""LRN by sums, for files that ONNX Runtime's CPU provider computes."""

from __future__ import annotations

from converters.passes.onnxruntime.local_response import LRNByShiftedSums


class SumsForLRN(LRNByShiftedSums):
    """Convert LRN to sums of shifted squares.

    ONNX Runtime's CPU provider (1.32) computes a running sum, which adds the next square and subtracts the previous one.
    After a value of 1e4 or more, its results are wrong.
    """
