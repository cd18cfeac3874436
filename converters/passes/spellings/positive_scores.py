"""NonMaxSuppression of scores that are not negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array

_SELECTED = """
    Expand Flatten Gather GatherElements GatherND Identity MaxPool ReduceMax ReduceMean ReduceMin Reshape Slice Split Squeeze
    Tile TopK Transpose Unsqueeze
"""
_SELECTING = frozenset(_SELECTED.split())
"""Operators whose first result is not negative if their first input is not."""

_JOINING = frozenset(("Add", "Concat", "Min", "Mul", "Where"))
"""Operators whose result is not negative if none of their inputs is, except for the condition of Where."""

_NONNEGATIVE = frozenset(("Abs", "Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus", "Sqrt"))

_MAX_VALUES = 64
"""The number of values that are examined."""


class PositiveScores(Workaround):
    """Replace a negative or absent ``score_threshold`` of NonMaxSuppression by 0 if no score is negative.

    Smaller scores than the smallest normal float32 are replaced by that number, because scores of 0 are not above the
    threshold. OpenCV (5.0.0) rejects negative thresholds, and uses 0 if the threshold is absent. Condition: the scores are
    selected from the results of functions such as Softmax, which are not negative.
    """

    operators = frozenset(("NonMaxSuppression",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        boxes, scores, most, overlap, threshold = (*node.inputs, None, None, None)[:5]
        if threshold is not None:
            number = constant_array(threshold)
            if number is None or not number.size or not (number < 0).all():
                return None
        if not is_nonnegative(scores):
            return None
        least = op.const(np.full(1, np.finfo(np.float32).tiny))
        zero = op.const(np.zeros(1, np.float32))
        return [op.NonMaxSuppression(boxes, op.Max(scores, least), most, overlap, zero, **attributes_of(node))]


def is_nonnegative(value: ir.Value | None) -> bool:
    """Return whether no element of a value is negative, as far as the operators that compute it show."""
    pending, seen = [value], set[ir.Value]()
    while pending:
        one = pending.pop()
        if one is None or len(seen) > _MAX_VALUES:
            return False
        if one in seen:
            continue
        seen.add(one)
        array, node = constant_array(one), one.producer()
        if array is not None:
            if not (array >= 0).all():
                return False
        elif node is None or node.domain or (one is not node.outputs[0] and node.op_type != "Split"):
            return False
        elif node.op_type in _SELECTING:
            pending.append(node.inputs[0])
        elif node.op_type in _JOINING:
            pending += node.inputs[1:] if node.op_type == "Where" else node.inputs
        elif node.op_type not in _NONNEGATIVE:
            return False
    return True
