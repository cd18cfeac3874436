"""Computation of the logits for the last token only.

After the last attention layer of a language model, each token is computed independently, and text generation needs only the
last token. With a prompt of 2,000 tokens and a vocabulary of 128,000, the logits of all tokens take 1 GB, and their MatMul
is the largest one in the model.
"""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.attention.grouped import OTHER_NUMBERS, has_other_numbers
from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import Probe, ProbeError
from onnx_specops.assertions import required
from onnx_specops.building import Builder, Value

_PROBE_SHAPES = ProbeShapes(batch=2, sequence=3, past=5)
_END = 2**62

# Elementwise operators.
_ELEMENTWISE = {
    "Abs", "Add", "Cast", "Clip", "Cos", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Identity",
    "LeakyRelu", "Log", "Max", "Min", "Mish", "Mul", "Neg", "Pow", "Reciprocal", "Relu", "Sigmoid", "Sin", "Softplus",
    "Softsign", "Sqrt", "Sub", "Tanh", "Where",
}  # fmt: skip
_REDUCTIONS = {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare", "ReduceL2"}
# Operators that compute along an axis, with its default.
_ALONG = {"LayerNormalization": -1, "RMSNormalization": -1, "Softmax": -1, "LogSoftmax": -1, "Split": 0}


def keep_last_token(graph: ir.Graph, inputs: Inputs) -> bool:
    """Reduce the logits ``[batch, tokens, vocabulary]`` to ``[batch, 1, vocabulary]``, those of each row's last token.

    The logits are the output with that name, or the first output if there is none. Padding according to ``attention_mask``
    is not the last token.

    Args:
        graph: a language model whose caches are inputs and outputs; changed in place.
        inputs: its inputs.

    Returns:
        Whether the logits were reduced. They are not if the output has another form or other consumers.
    """
    place = next((k for k, output in enumerate(graph.outputs) if output.name == "logits"), 0)
    logits = graph.outputs[place]
    probe = inputs.probe(_PROBE_SHAPES)
    if not _has_tokens(logits, probe) or logits.producer() is None or logits.uses():
        return False
    by_token = _by_token(graph, logits, probe)
    select = _Selection(graph, inputs)
    for node in by_token:
        for index, value in enumerate(node.inputs):
            if value is not None and value.producer() not in by_token and _has_tokens(value, probe):
                node.replace_input_with(index, select.last(value, node))
        if node.op_type == "Reshape":
            node.replace_input_with(1, select.unchanged_shape)
        for value in node.outputs:
            _shorten(value)
    if not by_token:
        last = select.last(logits, None)
        last.type, last.shape = logits.type, logits.shape
        _shorten(last)
        graph.outputs[place] = last
        last.name, logits.name = logits.name, last.name
    return True


def _by_token(graph: ir.Graph, logits: ir.Value, probe: Probe) -> dict[ir.Node, None]:
    """Return the nodes that compute each token independently and only for the logits, in topological order."""
    found: dict[ir.Node, None] = {}
    for node in reversed(graph):
        if logits in node.outputs or (_users(node) and all(user in found for user in _users(node))):
            is_output = any(value.is_graph_output() and value is not logits for value in node.outputs)
            if not is_output and _is_by_token(node, probe):
                found[node] = None
    return dict.fromkeys(reversed(found))


def _users(node: ir.Node) -> list[ir.Node]:
    return [user for value in node.outputs for user in value.consumers()]


def _is_by_token(node: ir.Node, probe: Probe) -> bool:
    """Return whether each token of the results ``[batch, tokens, ...]`` depends only on the same token of the inputs."""
    given = [value for value in node.inputs if value is not None]
    if node.domain or not given or not all(_has_tokens(value, probe) for value in node.outputs):
        return False
    data, *others = given
    if node.op_type in _ELEMENTWISE:
        return all(_has_tokens(value, probe) or _is_token_independent(value, probe) for value in (data, *others))
    if not _has_tokens(data, probe):
        return False
    if node.op_type == "Reshape":  # a Reshape that keeps the shape, as in GPT-2
        return _shape(data, probe) == _shape(node.outputs[0], probe) and not node.attributes.get_int("allowzero", 0)
    if node.op_type == "MatMul":
        return _is_matrix(others[0], probe)
    if node.op_type in _REDUCTIONS:
        axes = others[0].const_value if others else None
        return axes is not None and axes.numpy().tolist() in ([-1], [2])
    if node.op_type in _ALONG:
        along = node.attributes.get_int("axis", _ALONG[node.op_type])
        return along in (-1, 2) and all(_is_token_independent(value, probe) for value in others)
    if node.op_type == "Slice" and len(others) >= 3:
        axes = others[2].const_value
        return axes is not None and axes.numpy().tolist() in ([-1], [2])
    return False


def _shape(value: ir.Value, probe: Probe) -> tuple[int, ...] | None:
    try:
        return probe.shape(value)
    except ProbeError:
        return None


def _has_tokens(value: ir.Value, probe: Probe) -> bool:
    """Return whether the value is ``[batch, tokens, ...]``."""
    shape = _shape(value, probe)
    return shape is not None and len(shape) == 3 and shape[:2] == (_PROBE_SHAPES.batch, _PROBE_SHAPES.sequence)


def _is_token_independent(value: ir.Value, probe: Probe) -> bool:
    """Return whether the value is the same for all tokens."""
    shape = _shape(value, probe)
    return shape is not None and len(shape) <= 3 and (len(shape) < 2 or shape[-2] == 1)


def _is_matrix(value: ir.Value, probe: Probe) -> bool:
    shape = _shape(value, probe)
    return shape is not None and (len(shape) == 2 or (len(shape) == 3 and shape[0] == 1))


def _shorten(value: ir.Value) -> None:
    """Set the dimension of the tokens to 1."""
    if value.shape is not None and len(value.shape) == 3:
        value.shape = ir.Shape([value.shape[0], 1, value.shape[2]])


class _Selection:
    """Selects each row's last token of values ``[batch, tokens, ...]``.

    Args:
        graph: the graph of the values.
        inputs: its inputs.
    """

    def __init__(self, graph: ir.Graph, inputs: Inputs) -> None:
        self._graph, self._inputs = graph, inputs
        self._root = Builder.of_existing(graph)
        self._made: dict[ir.Value, Value] = {}
        self._place: Value | None = None

    @property
    def unchanged_shape(self) -> Value:
        """The shape with which Reshape keeps each dimension."""
        return self._root.place(self._root.const([0, 0, 0]))

    def last(self, value: ir.Value, before: ir.Node | None) -> Value:
        """Return ``[batch, 1, ...]`` of ``[batch, tokens, ...]``, emitted before the node or at the end of the graph."""
        if value not in self._made:
            op = Builder(self._graph, root=self._root, before=before)
            op.scope = "last_token"
            if (place := self._last_positions()) is None:
                self._made[value] = op.Slice(value, [-1], [_END], [1])
            else:
                self._made[value] = op.Unsqueeze(op.Gather(op.Flatten(value, axis=2), place, axis=0), [1])
        return self._made[value]

    def _last_positions(self) -> Value | None:
        """Return the positions of the last tokens in all rows, ``[batch]``; ``None`` if each is the last of its row."""
        mask = self._inputs.mask
        if mask is None or mask.shape is None or len(mask.shape) != 2:
            return None
        if self._place is None:
            op = Builder(self._graph, root=self._root, before=next(iter(self._graph)))
            op.scope = "last_token"
            data = self._inputs.tokens
            batch, tokens = (op.Squeeze(op.Shape(data, start=axis, end=axis + 1), [0]) for axis in (0, 1))
            own = op.Slice(mask, op.Unsqueeze(op.Neg(tokens), [0]), [_END], [1])
            own = op.Cast(own, to=ir.DataType.INT64)
            last = op.ReduceMax(op.Mul(own, op.Range(0, tokens, 1)), [1], keepdims=0)
            last = required(op, OTHER_NUMBERS, has_other_numbers(op, own), last)
            self._place = op.Add(last, op.Mul(op.Range(0, batch, 1), tokens))
        return self._place
