"""NaN in recurrent layers, for files that ONNX Runtime's CPU provider computes."""

from __future__ import annotations

from converters.passes.onnxruntime.recurrent import NaNOfSequences


class KeptNaN(NaNOfSequences):
    """Add NaN to the results of GRU and LSTM from the first NaN of a sequence on.

    The activations of ONNX Runtime's CPU provider (1.32) give a number for NaN.
    """

    def __init__(self) -> None:
        super().__init__(products=False)
