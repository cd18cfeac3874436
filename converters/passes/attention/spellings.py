"""Patterns of attention: recognition from the Softmax back to queries and keys, and forward to the values.

Add a new pattern here. All lowerings receive the same canonical form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import onnx_ir as ir

from converters.passes.attention.canonical import MASKED, Attention, UnsupportedAttention
from converters.passes.factors import is_normal, product
from onnx_specops.graphs import producer_of


class Evaluation(Protocol):
    """Knowledge about the values of a graph."""

    def operands(self, node: ir.Node) -> Sequence[ir.Value]:
        """Return the inputs of a node from which attention scores are computed, each once. The MatMul of queries and keys
        has two.
        """
        ...

    def number(self, value: ir.Value) -> float:
        """Return the only element of a value. Raise `UnsupportedAttention` if it has several, or varies between runs."""
        ...

    def drops_last(self, weights: ir.Value, node: ir.Node) -> bool:
        """Return whether a Slice drops only the last column of the attention weights."""
        ...

    def has_factor(self, node: ir.Node) -> bool:
        """Return whether a Mul or Div of the query may become part of the scale."""
        ...


class Constants:
    """Knowledge of constants only."""

    def operands(self, node: ir.Node) -> Sequence[ir.Value]:
        inputs = [value for value in node.inputs if value is not None]
        if _is_product(node):
            return inputs
        steps = {value: steps for value in inputs if (steps := _steps_to_product(value)) is not None}
        return [min(steps, key=steps.__getitem__)] if steps else []

    def number(self, value: ir.Value) -> float:
        tensor = value.const_value
        if tensor is None or tensor.size != 1 or value.is_graph_input():
            raise UnsupportedAttention("its attention scores are multiplied by several numbers or by an unknown number")
        return float(tensor.numpy().item())

    def drops_last(self, weights: ir.Value, node: ir.Node) -> bool:
        given = [None if value is None or value.const_value is None else value.const_value.numpy().tolist()
                 for value in node.inputs[1:]]  # fmt: skip
        return given[:2] == [[0], [-1]] and given[2:] in ([[-1]], [[3]], [[-1], [1]], [[3], [1]])

    def has_factor(self, node: ir.Node) -> bool:
        """Return whether only the attention uses the node."""
        output = node.outputs[0]
        others = [value for value in node.inputs if value is not None and value.const_value is None]
        return (
            len(output.uses()) == 1 and len(others) == 1 and others[0].shape is not None and others[0].shape == output.shape
        )


_MAX_STEPS = 8
_ARITHMETIC = {"Add", "Cast", "Div", "Identity", "Mul", "Tanh", "Where"}


def _is_product(node: ir.Node) -> bool:
    """Return whether a node is a MatMul with a transposed matrix, which may be multiplied by numbers."""
    if (node.op_type, node.domain) != ("MatMul", "") or node.inputs[1] is None:
        return False
    return producer_of(_factors_of(node.inputs[1], Constants())[1][-1], "Transpose") is not None


def _steps_to_product(value: ir.Value) -> int | None:
    """Return the number of arithmetic nodes between a value and the MatMul of queries and keys; ``None`` if it is far."""
    front = {value}
    for steps in range(_MAX_STEPS):
        nodes = [node for value in front if (node := value.producer()) is not None]
        if any(_is_product(node) for node in nodes):
            return steps
        front = {
            x for node in nodes if node.op_type in _ARITHMETIC and not node.domain for x in node.inputs if x is not None
        }
    return None


@dataclass
class _Scores:
    """The computation between the MatMul of queries and keys and the Softmax.

    Attributes:
        factors: the factors of the scores, last first.
        softcap: the factor of a Tanh; ``None`` if there is none.
        mask, is_boolean, lowest, scores, inner: see `Attention`.
        product: the MatMul node.
    """

    scores: ir.Value
    product: ir.Node | None = None
    factors: list[float] = field(default_factory=list)
    softcap: float | None = None
    mask: ir.Value | None = None
    is_boolean: bool = False
    lowest: float = 0.0
    inner: list[ir.Value] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Whether the scores so far are the input of the Softmax."""
        return self.mask is None and self.softcap is None and all(factor == 1 for factor in self.factors)


def product_with_values(softmax: ir.Node, evaluation: Evaluation) -> ir.Node | None:
    """Return the MatMul of a Softmax and values; ``None`` if there is none."""
    return _next(_without_sink(softmax, evaluation)[0], "MatMul")


def read(softmax: ir.Node, evaluation: Evaluation, *, ranks: Sequence[int] = (4,)) -> Attention:
    """Return the attention of a Softmax for which `product_with_values` found a MatMul.

    Args:
        softmax: the Softmax.
        evaluation: the knowledge about the graph's values.
        ranks: the ranks of keys. Those of rank 3 have batch and heads in one dimension, see `Attention`.

    Raises:
        UnsupportedAttention: the canonical form does not support it.
    """
    weights, has_sink = _without_sink(softmax, evaluation)
    mixing = _next(weights, "MatMul")
    assert mixing is not None
    values, given = mixing.inputs[1], softmax.inputs[0]
    assert values is not None and given is not None
    scores, sink = _sink(given) if has_sink else (given, None)
    found = _scores(scores, evaluation)
    assert found.product is not None
    query, transposed = found.product.inputs[:2]
    assert query is not None and transposed is not None
    key_factors, scaled_keys = _factors_of(transposed, evaluation)
    transpose, axis = producer_of(scaled_keys[-1], "Transpose"), softmax.attributes.get_int("axis", -1)
    rank = len(transposed.shape or ())
    if transpose is None or rank not in ranks or axis not in (-1, rank - 1):
        raise UnsupportedAttention("its keys are not transposed before the matrix multiplication")
    key = transpose.inputs[0]
    perm = tuple(transpose.attributes.get_ints("perm", ()))
    if len(perm) != rank or key is None:
        raise UnsupportedAttention("its keys are not transposed before the matrix multiplication")
    own = [*key_factors, *reversed(found.factors)]
    factors, (*_, unscaled) = _factors_of(query, evaluation)
    if product([*factors, *own]) is None:  # keep the factors of the query
        factors, unscaled = [], query
    scale, softcap = _scale_and_softcap([*factors, *own], found.softcap)
    output = mixing.outputs[0]
    return Attention(
        softmax=softmax,
        query=unscaled,
        key=key,
        order=(*perm[:-2], perm[-1], perm[-2]),
        value=values,
        scale=scale,
        softcap=softcap,
        mask=found.mask,
        is_boolean=found.is_boolean,
        lowest=found.lowest,
        sink=sink,
        product=found.product.outputs[0],
        scores=found.scores,
        inner=[*scaled_keys, *found.inner, softmax.outputs[0]],
        output=output,
        guarded=_guarded(output, found.mask),
    )


def _without_sink(softmax: ir.Node, evaluation: Evaluation) -> tuple[ir.Value, bool]:
    """Return the attention weights without a sink column, and whether there is one."""
    weights = softmax.outputs[0]
    node = _next(weights, "Slice")
    if node is None or not evaluation.drops_last(weights, node):
        return weights, False
    return node.outputs[0], True


def _sink(scores: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the scores without their last column, and that column."""
    node = scores.producer()
    if node is None or (node.op_type, node.domain) != ("Concat", "") or len(node.inputs) != 2:
        raise UnsupportedAttention("its attention sink depends on data")
    others, column = node.inputs
    if node.attributes.get_int("axis", 0) not in (-1, 3) or others is None or column is None:
        raise UnsupportedAttention("the Concat before its Softmax does not append an attention sink")
    return others, column


def _scores(value: ir.Value, evaluation: Evaluation) -> _Scores:
    """Follow the input of the Softmax back to the MatMul of queries and keys."""
    found = _Scores(value)
    while True:
        node = value.producer()
        if node is None or node.domain:
            raise UnsupportedAttention("the input of its Softmax is not a matrix multiplication of queries and keys")
        data = evaluation.operands(node)
        others = [v for v in node.inputs if v is not None and v not in data]
        found.inner.append(value)
        if node.op_type == "MatMul" and len(data) == 2:
            found.product = node
            return found
        if not data:
            raise UnsupportedAttention("the input of its Softmax is not a matrix multiplication of queries and keys")
        if len(data) != 1 or node.inputs.count(data[0]) > 1:
            raise UnsupportedAttention(f"{node.op_type} of two data-dependent inputs precedes its Softmax")
        value = data[0]
        if node.op_type in ("Cast", "Identity"):
            if value.dtype != node.outputs[0].dtype:
                raise UnsupportedAttention("its attention scores are rounded")
        elif node.op_type == "Add" and found.is_plain:
            found.mask, found.scores = others[0], value
        elif node.op_type == "Where" and found.is_plain and node.inputs[1] is value:
            found.lowest = _lowest(others[1], evaluation)
            found.mask, found.is_boolean, found.scores = others[0], True, value
        elif node.op_type == "Mul":
            found.factors.append(evaluation.number(others[0]))
        elif node.op_type == "Div" and node.inputs[0] is value:
            found.factors.append(_reciprocal(others[0], evaluation))
        elif node.op_type == "Tanh" and found.softcap is None:
            found.softcap, found.factors = _factor(reversed(found.factors)), []
        else:
            raise UnsupportedAttention(f"{node.op_type} precedes its Softmax")


def _factors_of(value: ir.Value, evaluation: Evaluation) -> tuple[list[float], list[ir.Value]]:
    """Return the factors of a query or of transposed keys, and the values from it to the one without factors."""
    factors: list[float] = []
    values = [value]
    while (node := values[-1].producer()) is not None and node.op_type in ("Mul", "Div") and not node.domain:
        pairs = [tuple(node.inputs)] if node.op_type == "Div" else [tuple(node.inputs), tuple(node.inputs)[::-1]]
        for unscaled, other in pairs:
            if unscaled is None or other is None or not evaluation.has_factor(node):
                continue
            try:
                number = evaluation.number(other) if node.op_type == "Mul" else _reciprocal(other, evaluation)
            except UnsupportedAttention:
                continue
            if product([number, *factors]) is not None:
                factors.insert(0, number)
                values.append(unscaled)
                break
        else:
            break
    return factors, values


def _reciprocal(value: ir.Value, evaluation: Evaluation) -> float:
    """Return the factor that is equal to a division by a number."""
    number = evaluation.number(value)
    if not is_normal(number):
        raise UnsupportedAttention(_factor_unknown(number))
    return 1 / number


def _lowest(value: ir.Value, evaluation: Evaluation) -> float:
    number = evaluation.number(value)
    if number > MASKED:
        raise UnsupportedAttention("its mask value does not hide the masked positions")
    return number


def _factor(factors: Iterable[float]) -> float:
    """Return the product of factors. Raise `UnsupportedAttention` if an attribute cannot represent it."""
    factors = list(factors)
    if (whole := product(factors)) is None:
        raise UnsupportedAttention(_factor_unknown(float(np.prod(factors))))
    return whole


def _factor_unknown(number: float) -> str:
    return f"its attention scores are multiplied by {number:g}, which is 0 or beyond float32's range as an attribute"


def _scale_and_softcap(factors: Iterable[float], softcap: float | None) -> tuple[float, float]:
    """Return the attributes ``scale`` and ``softcap``. The Tanh takes the scores divided by ``softcap``.

    A negative softcap is equal to a positive one, because Tanh is odd.
    """
    scale = _factor(factors)
    if softcap is None:
        return scale, 0.0
    return _factor([scale, softcap]), abs(softcap)


def _guarded(output: ir.Value, mask: ir.Value | None) -> ir.Value:
    """Return the output with 0 for queries without visible keys under a mask of -inf, if the graph computes it; otherwise
    the output.
    """
    guard = _only(output, "Where", 2)
    if guard is None or mask is None or not _is_number(guard.inputs[1], 0):
        return output
    equal = producer_of(guard.inputs[0], "Equal")
    highest = None if equal is None else producer_of(equal.inputs[0], "ReduceMax")
    if equal is None or highest is None or highest.inputs[0] is not mask or not _is_number(equal.inputs[1], -np.inf):
        return output
    axes = highest.inputs[1].const_value if len(highest.inputs) > 1 and highest.inputs[1] is not None else None
    last = -1 if mask.shape is None else len(mask.shape) - 1
    if axes is None or axes.numpy().tolist() not in ([-1], [last]) or not highest.attributes.get_int("keepdims", 1):
        return output
    return guard.outputs[0]


def _is_number(value: ir.Value | None, number: float) -> bool:
    tensor = None if value is None else value.const_value
    return tensor is not None and tensor.size == 1 and bool((tensor.numpy() == number).all())


def _only(value: ir.Value, op_type: str, index: int) -> ir.Node | None:
    """Return the only consumer of a value, if it has the given type and takes the value as the given input."""
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output():
        return None
    node, at = uses[0]
    return node if (node.op_type, node.domain, at) == (op_type, "", index) else None


def _next(value: ir.Value, op_type: str) -> ir.Node | None:
    """Return the only consumer of a value as its first input, after casts to the value's own type."""
    while len(uses := list(value.uses())) == 1:
        node, index = uses[0]
        if node.op_type == op_type and not node.domain and index == 0:
            return node
        if node.op_type not in ("Cast", "Identity") or node.outputs[0].dtype != value.dtype:
            return None
        value = node.outputs[0]
    return None
