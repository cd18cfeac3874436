"""NaN in recurrent layers, for files that ONNX Runtime's CPU provider computes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.onnxruntime.recurrent import NaNOfSequences
from converters.targets.limits import is_usual_recurrence
from onnx_specops.building import Builder, Value


class KeptNaN(NaNOfSequences):
    """Compute GRU and LSTM again with other operators, in an If, for data and states with a NaN or an infinity.

    The activations of ONNX Runtime's CPU provider (1.32) give a number for NaN.
    """


class KeptNaNOfLSTM(KeptNaN):
    """Compute LSTM again with other operators, in an If, for data and states with a NaN or an infinity.

    The activations of ONNX Runtime's CPU provider (1.32) give a number for NaN. Condition: the LSTM has lengths, a clip,
    peepholes or other activations. QNN's HTP (2.7) computes all others, and an If would move them to the CPU.
    """

    operators = frozenset(("LSTM",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        return None if is_usual_recurrence(node) else super().replacement(op, node)


class AddedNaN(NaNOfSequences):
    """Make all results of GRU and LSTM NaN from the first NaN of a sequence on.

    The activations of ONNX Runtime's CPU provider (1.32) give a number for NaN. Infinities, which may give NaN, need an If,
    which waits for the device.
    """

    def __init__(self) -> None:
        super().__init__(branches=False)
