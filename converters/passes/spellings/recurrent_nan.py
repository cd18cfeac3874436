"""NaN in recurrent layers, for files that ONNX Runtime's CPU provider computes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.onnxruntime.recurrent import NaNOfSequences
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array


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
        return None if _is_on_device(node) else super().replacement(op, node)


def _is_on_device(node: ir.Node) -> bool:
    """Return whether an LSTM is of whole sequences, without a clip or peepholes, and with the default functions."""
    x, lengths = (*node.inputs, *[None] * 8)[:5:4]
    if lengths is not None:
        array = constant_array(lengths)
        steps = None if x is None or x.shape is None else x.shape[0]
        if array is None or not isinstance(steps, int) or not (array == steps).all():
            return False
    functions = list(node.attributes.get_strings("activations", ()) or ())
    has_peepholes = len(node.inputs) > _PEEPHOLES and node.inputs[_PEEPHOLES] is not None
    is_default = functions == _FUNCTIONS * (len(functions) // len(_FUNCTIONS))
    return is_default and not has_peepholes and not {"clip", "input_forget"} & set(node.attributes)


_FUNCTIONS = ["Sigmoid", "Tanh", "Tanh"]
_PEEPHOLES = 7
"""The index of the input."""


class AddedNaN(NaNOfSequences):
    """Make all results of GRU and LSTM NaN from the first NaN of a sequence on.

    The activations of ONNX Runtime's CPU provider (1.32) give a number for NaN. Infinities, which may give NaN, need an If,
    which waits for the device.
    """

    def __init__(self) -> None:
        super().__init__(branches=False)
