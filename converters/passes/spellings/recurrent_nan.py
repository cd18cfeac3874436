"""NaN in recurrent layers, for files that ONNX Runtime's CPU provider computes."""

from __future__ import annotations

from converters.passes.onnxruntime.recurrent import NaNOfSequences


class KeptNaN(NaNOfSequences):
    """Compute GRU and LSTM again with other operators, in an If, for data and states with a NaN or an infinity.

    The activations of ONNX Runtime's CPU provider (1.32) give a number for NaN.
    """


class KeptNaNOfLSTM(KeptNaN):
    """Compute LSTM again with other operators, in an If, for data and states with a NaN or an infinity.

    ONNX Runtime's CPU provider (1.32) computes it, and its activations give a number for NaN.
    """

    operators = frozenset(("LSTM",))


class AddedNaN(NaNOfSequences):
    """Make all results of GRU and LSTM NaN from the first NaN of a sequence on.

    The activations of ONNX Runtime's CPU provider (1.32) give a number for NaN. Infinities, which may give NaN, need an If,
    which waits for the device.
    """

    def __init__(self) -> None:
        super().__init__(branches=False)
