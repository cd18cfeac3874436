"""The computation of GRU, LSTM and RNN, for passes that emit their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
BACKWARD = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Whether each direction begins at the last step."""

_FUNCTIONS = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh"), "RNN": ("Tanh",)}
_WITHOUT_PARAMETERS = frozenset(("Relu", "Sigmoid", "Tanh"))
_KNOWN = frozenset(("activations", "clip", "direction", "hidden_size", "linear_before_reset"))


def functions_of(node: ir.Node) -> list[Sequence[str]] | None:
    """Return the functions of each direction.

    Returns:
        The functions; ``None`` if there are others than Relu, Sigmoid and Tanh, coupled gates, or another layout.
    """
    attributes = attributes_of(node)
    directions = len(BACKWARD[attributes.get("direction", "forward")])
    every = list(attributes.get("activations") or _FUNCTIONS[node.op_type] * directions)
    if any(value for name, value in attributes.items() if name not in _KNOWN) or not _WITHOUT_PARAMETERS.issuperset(every):
        return None
    count = len(every) // directions
    return [every[k * count : (k + 1) * count] for k in range(directions)]


def lstm_states(
    op: Builder, gates: Value, cell: Value, size: int, peepholes: Sequence[Value], function: Callable[[int, Value], Value]
) -> list[Value]:
    """Emit the hidden and cell states of an LSTM after a step.

    Args:
        op: the builder.
        gates: the gates i, o, f and c before their functions, side by side along axis 1.
        cell: the cell state before the step.
        size: the number of elements of a state.
        peepholes: the factors of the cell state in the gates i, o and f; none if there are none.
        function: emits the function of an index.
    """
    i, o, f, c = op.Split(gates, [size] * 4, axis=1, outputs=4)
    if peepholes:
        i, f = (op.Add(gate, op.Mul(peepholes[k], cell)) for gate, k in ((i, 0), (f, 2)))
    kept = op.Mul(function(0, f), cell)
    cell = op.Add(kept, op.Mul(function(0, i), function(1, c)))
    if peepholes:
        o = op.Add(o, op.Mul(peepholes[1], cell))
    return [op.Mul(function(0, o), function(2, cell)), cell]
