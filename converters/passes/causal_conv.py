"""Fusion of the short convolutions of hybrids, whose state is the last values before a run, into one node.

optimum-intel transposes the values of the tokens, joins them with the state, convolves each channel, and slices the last
tokens. The next state is a Slice of the joined values. `onnx_specops.CausalConv` does not require a Transpose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.attention.probing import ProbeError, of_all_sizes
from converters.passes.running import OperatorPass
from converters.passes.token_loops import EVALUATED, Runs, varies
from onnx_specops.building import Builder
from onnx_specops.replacing import replace_value

_ORDER = [0, 2, 1]


@dataclass(frozen=True)
class _Convolution:
    """A convolution of a state and new values.

    Attributes:
        x: the values, ``[batch, tokens, channels]``.
        weight: ``[channels, 1, K]``.
        bias: ``[1, channels, 1]``, if there is one.
        past: the state.
        outputs: the Slices with the outputs of all tokens.
        presents: the Slices with the next state.
    """

    x: ir.Value
    weight: ir.Value
    bias: ir.Value | None
    past: ir.Value
    outputs: list[ir.Value]
    presents: list[ir.Value]


class FuseCausalConv(OperatorPass):
    """Replace convolutions of each channel over a state and the values of a run by `onnx_specops.CausalConv`.

    Conditions: the channels are convolved separately, with stride and dilation 1 and without padding. The input is a
    concatenation of a state and transposed values along the last dimension. Only the last outputs, as many as tokens, and
    the last values of the input, as many as the state has, are used, in runs of several tokens.
    """

    operators = frozenset(("Conv",))

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        runs: Runs | None = None
        modified = False
        for node in list(model.graph):
            if node.op_type != "Conv" or node.domain or (parts := _parts(node)) is None:
                continue
            runs = runs or Runs(model.graph)
            try:
                found = _convolution(node, *parts, runs)
            except ProbeError:
                continue
            if found is not None:
                root = root or Builder.of_existing(model.graph)
                _replace(Builder.before_node(node, root), found)
                modified = True
        if modified:
            model.graph.sort()  # the next state may have been used before the convolution
        return PassResult(model, modified=modified)


def _parts(conv: ir.Node) -> tuple[ir.Value, ir.Value, ir.Value] | None:
    """Return the state, the new values before and after their Transpose, of a convolution of separate channels."""
    joined, weight = conv.inputs[:2]
    if len(conv.inputs) != 2 or joined is None or weight is None or weight.dtype != ir.DataType.FLOAT:
        return None
    shape = () if weight.shape is None else tuple(weight.shape)
    attributes = conv.attributes
    if len(shape) != 3 or shape[1] != 1 or not all(isinstance(size, int) for size in shape):
        return None
    plain = (
        attributes.get_int("group", 1) == shape[0]
        and list(attributes.get_ints("strides", (1,))) == [1]
        and list(attributes.get_ints("dilations", (1,))) == [1]
        and list(attributes.get_ints("pads", (0, 0))) == [0, 0]
        and attributes.get_string("auto_pad", "NOTSET") in ("NOTSET", "VALID")
    )
    concat = joined.producer()
    if not plain or concat is None or concat.op_type != "Concat" or concat.domain or len(concat.inputs) != 2:
        return None
    past, new = concat.inputs
    transpose = None if new is None else new.producer()
    if past is None or new is None or transpose is None:
        return None
    x = transpose.inputs[0]
    if x is None or x.dtype != ir.DataType.FLOAT or not _is_transpose(transpose):
        return None
    return None if concat.attributes.get_int("axis", 0) not in (-1, 2) else (past, x, new)


def _convolution(conv: ir.Node, past: ir.Value, x: ir.Value, new: ir.Value, runs: Runs) -> _Convolution | None:
    """Return a convolution over the tokens before each token. Raise `ProbeError` if a shape cannot be determined."""
    joined, weight = conv.inputs
    assert joined is not None and weight is not None and weight.shape is not None
    channels, _, kernel = (int(size) for size in weight.shape if isinstance(size, int))
    result, bias = _biased(conv, channels)
    states, values = runs.shapes(past), runs.shapes(new)
    if any(len(shape) != 3 or shape[1] != channels for shape in (*states, *values)):
        return None
    if not varies(new, 2, runs) or not varies(past, 2, runs):
        return None
    lengths = {shape[2] for shape in states}
    if len(lengths) != 1 or min(lengths) < kernel - 1 or any(a[0] != b[0] for a, b in zip(states, values, strict=True)):
        return None
    outputs = [node.outputs[0] for node, _ in result.uses()]
    presents = [node.outputs[0] for node, _ in joined.uses() if node is not conv]
    if joined.is_graph_output() or result.is_graph_output() or not outputs:
        return None
    tokens = [shape[2] for shape in values]
    if not all(_is_last(value, result, tokens, runs) for value in outputs):
        return None
    if not all(_is_last(value, joined, [*lengths] * len(states), runs) for value in presents):
        return None
    return _Convolution(x, weight, bias, past, outputs, presents)


def _is_last(value: ir.Value, source: ir.Value, counts: list[int], runs: Runs) -> bool:
    """Return whether a value is a Slice with the last elements of another one, as many as ``counts`` in each run."""
    node = value.producer()
    if node is None or node.domain or node.op_type != "Slice" or node.inputs[0] is not source:
        return False
    for run, (shape, got, count) in enumerate(zip(runs.shapes(source), runs.shapes(value), counts, strict=True)):
        if got != (*shape[:2], count):
            return False
        if run < EVALUATED:
            array = of_all_sizes(shape)
            if not np.array_equal(runs.probe(run, [value], {source: array}).array(value), array[..., shape[2] - count :]):
                return False
    return True


def _biased(conv: ir.Node, channels: int) -> tuple[ir.Value, ir.Value | None]:
    """Return the result of a convolution with its bias, and the bias ``[1, channels, 1]``, if there is one."""
    result = conv.outputs[0]
    uses = list(result.uses())
    if len(uses) == 1 and (uses[0].node.op_type, uses[0].node.domain) == ("Add", "") and not result.is_graph_output():
        bias = uses[0].node.inputs[1 - uses[0].idx]
        if bias is not None and bias.shape is not None and list(bias.shape) == [1, channels, 1]:
            return uses[0].node.outputs[0], bias
    return result, None


def _replace(op: Builder, found: _Convolution) -> None:
    op.scope = "causal_conv"
    weight = op.Transpose(op.Squeeze(found.weight, [1]), perm=[1, 0])
    y, present = op.specops.CausalConv(found.x, weight, found.past, outputs=2)
    if found.bias is not None:
        y = op.Add(y, op.Reshape(found.bias, [-1]))
    for value in found.presents:
        replace_value(value, present, equal=False)
    for value in found.outputs:
        _replace_transposed(op, value, y)


def _replace_transposed(op: Builder, old: ir.Value, new: ir.Value) -> None:
    """Replace a value that has the tokens last. A SiLU and a Transpose after it become the SiLU only."""
    activated = _silu(old)
    users = [node for node, _ in (activated or old).uses()]
    if users and not (activated or old).is_graph_output() and all(map(_is_transpose, users)):
        y = op.Mul(new, op.Sigmoid(new)) if activated is not None else new
        for node in users:
            replace_value(node.outputs[0], y, equal=False)
    else:
        replace_value(old, op.Transpose(new, perm=_ORDER), equal=False)


def _silu(value: ir.Value) -> ir.Value | None:
    """Return the product of a value and its Sigmoid, if nothing else uses the value."""
    users = {node.op_type: node for node, _ in value.uses() if not node.domain}
    if set(users) != {"Mul", "Sigmoid"} or len(list(value.uses())) != 2 or value.is_graph_output():
        return None
    gate, product = users["Sigmoid"].outputs[0], users["Mul"]
    others = len(list(gate.uses())) != 1 or gate.is_graph_output()
    return None if others or set(product.inputs) != {value, gate} else product.outputs[0]


def _is_transpose(node: ir.Node) -> bool:
    return node.op_type == "Transpose" and not node.domain and list(node.attributes.get_ints("perm", ())) == _ORDER
