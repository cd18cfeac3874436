"""Comparison of decoded numbers with those that the graph computes from its constants.

A pass that recognizes integers, a scale and a zero point in a chain of nodes can miss or misread a node. Here, the chain is
evaluated node by node, which reveals such an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from onnx_specops.domain import DOMAIN, find
from onnx_specops.graphs import attributes_of, computed_before

PIECE = 2**15
"""The number of elements that are compared at a time."""

MOST = 2**17
"""Larger constants are compared in pieces at equal distances, including the first and last one."""

ROUNDING = 2.0**-22
"""The relative error of a few operations in float32."""

HALF_ROUNDING = {ir.DataType.FLOAT16: 2.0**-11, ir.DataType.BFLOAT16: 2.0**-8}
"""The relative error of rounding to 16 bits, which OpenVINO's CPU plugin does not do."""

Rows = Callable[[slice], np.ndarray]


def agree(
    value: ir.Value,
    shape: Sequence[int],
    decode: Callable[[slice], tuple[np.ndarray, np.ndarray | float]],
    known: Mapping[ir.Value, Rows] | None = None,
) -> bool | None:
    """Return whether decoded numbers are those that the graph computes for ``value``; ``None`` if it is not constant.

    Args:
        value: a value of shape ``shape``, computed elementwise from constants that broadcast to it.
        shape: the shape.
        decode: returns rows of the decoded numbers, and their tolerance.
        known: returns rows of values that must not be computed.
    """
    for rows in _pieces(shape):
        original = folded(value, rows, shape, known or {})
        if original is None:
            return None
        decoded, allowed = decode(rows)
        with np.errstate(invalid="ignore"):  # non-finite numbers never agree
            if not (np.abs(original - decoded) <= allowed).all():
                return False
    return True


def folded(value: ir.Value, rows: slice, shape: Sequence[int], known: Mapping[ir.Value, Rows]) -> np.ndarray | None:
    """Return rows of the numbers that the graph computes for ``value``; ``None`` if it is not constant or not elementwise.

    Arithmetic in 16 bits is evaluated in float32, as in OpenVINO's CPU plugin. Casts are evaluated unchanged.
    """
    sources: dict[ir.Value, Sequence[ir.Value]] = {}

    def inputs_of(one: ir.Value) -> Sequence[ir.Value] | None:
        if (found := _computed_from(one, shape, known)) is not None:
            sources[one] = found
        return found

    order = computed_before(value, inputs_of)
    if order is None:
        return None
    last = {given: one for one in order for given in sources[one]}
    numbers: dict[ir.Value, np.ndarray] = {}
    for one in order:
        node = one.producer()
        if one in known:
            numbers[one] = known[one](rows)
        elif node is None:
            assert one.const_value is not None
            numbers[one] = rows_of(one.const_value.numpy(), rows, shape)
        else:
            numbers[one] = _evaluated(node, [numbers[given] for given in sources[one]])
            for given in dict.fromkeys(sources[one]):
                if last[given] is one:
                    del numbers[given]
    return numbers[value]


def _computed_from(value: ir.Value, shape: Sequence[int], known: Mapping[ir.Value, Rows]) -> Sequence[ir.Value] | None:
    """Return the values that a value is computed from; ``None`` if it is not constant or not elementwise."""
    if value in known:
        return ()
    node = value.producer()
    if node is None:
        return None if value.const_value is None or value.is_graph_input() else ()
    inputs = [given for given in node.inputs if given is not None]
    match node.domain, node.op_type:
        case "", "Cast" if value.dtype is not None:
            return inputs
        case "", "Sub" | "Mul":
            return inputs
        case "", "Reshape" | "Identity" if value.shape is not None and list(value.shape) == list(shape):
            return inputs[:1] if inputs[0] in known else None
        case _, "FakeQuantize" if node.domain == DOMAIN:
            return inputs
    return None


def _evaluated(node: ir.Node, inputs: Sequence[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        match node.op_type:
            case "Cast":
                assert node.outputs[0].dtype is not None
                return inputs[0].astype(node.outputs[0].dtype.numpy())
            case "Sub":
                return _wide(inputs[0]) - _wide(inputs[1])
            case "Mul":
                return _wide(inputs[0]) * _wide(inputs[1])
            case "Reshape" | "Identity":
                return inputs[0]
    operator = find("FakeQuantize")
    return operator.kernel(*map(_wide, inputs), **operator.node_attributes(attributes_of(node)))


def rows_of(array: np.ndarray, rows: slice, shape: Sequence[int]) -> np.ndarray:
    """Return rows of an array that broadcasts to ``shape``, in a form that broadcasts to these rows."""
    return array[rows] if array.ndim == len(shape) > 0 and array.shape[0] > 1 else array


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype.itemsize <= 2 and x.dtype.kind not in "iub" else x


def _pieces(shape: Sequence[int]) -> Iterator[slice]:
    """Yield the rows to compare."""
    if not shape:
        yield slice(0, 1)
        return
    count, size = shape[0], int(np.prod(shape[1:], dtype=np.int64))
    if not count * size:
        return
    step = max(1, PIECE // size)
    begins = range(0, count, step)
    most = max(2, MOST // (step * size))
    if len(begins) > most:
        chosen = np.unique(np.linspace(0, count - step, most).astype(np.int64)).tolist()
    else:
        chosen = list(begins)
    for begin in chosen:
        yield slice(begin, begin + step)
