"""NaN in recurrent layers, for files that ONNX Runtime's CPU provider computes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.onnxruntime.recurrent import NaNOfSequences
from converters.targets.limits import is_usual_recurrence
from onnx_specops.building import Builder, Value


class KeptNaN(NaNOfSequences):
    """Compute GRU and LSTM with other operators, in an If, if the data or states contain a NaN or an infinity.

    The activation functions of ONNX Runtime's CPU provider (1.32) return a number for NaN.
    """


class KeptNaNOfLSTM(KeptNaN):
    """Compute LSTM with other operators, in an If, if the data or states contain a NaN or an infinity.

    The activation functions of ONNX Runtime's CPU provider (1.32) return a number for NaN. Condition: the LSTM has lengths,
    a clip, peepholes or other activations. QNN's HTP (2.7) computes all others, and an If would move them to the CPU.
    """

    operators = frozenset(("LSTM",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        return None if is_usual_recurrence(node) else super().replacement(op, node)


class KeptNaNOfFloat16(KeptNaN):
    """Compute GRU and LSTM with other operators, in an If, if the data or states contain a NaN or an infinity.

    The activation functions of ONNX Runtime's CPU provider (1.32) return a number for NaN. Condition: float16. WebGPU (0.4)
    computes GRU and LSTM of float32, for whose NaN and infinities its language has no rule, and an If would move them to the
    CPU.
    """

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        return super().replacement(op, node) if x is not None and x.dtype == ir.DataType.FLOAT16 else None


class AddedNaN(NaNOfSequences):
    """Set all results of GRU and LSTM after the first NaN of a sequence to NaN.

    The activation functions of ONNX Runtime's CPU provider (1.32) return a number for NaN. Infinities, which may also lead
    to NaN, are not handled, because this requires an If, which waits for the device.
    """

    def __init__(self) -> None:
        super().__init__(branches=False)
