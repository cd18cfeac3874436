"""The canonical order of attention scores: the matrix multiplication, a factor, one mask.

In some graphs, the position bias and the mask are added separately, the sum of scores and mask is divided, Where selects the
visible scores, or each head has a separate factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.attention.canonical import UnsupportedAttention
from converters.passes.attention.encoder import JoinMasks
from converters.passes.attention.prepared_masks import ABSORBING
from converters.passes.attention.spellings import Constants
from converters.passes.factors import product
from converters.passes.patterns import PatternPass, rewrite
from converters.passes.running import OperatorPass
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes
from onnx_specops.replacing import replace_value, rewriting

_NUMBERS = Constants()
_MAX_STEPS = 32


@dataclass
class _Step:
    """A step of the computation of scores.

    Attributes:
        factor: the scores are multiplied by it.
        mask: it is added.
        condition: where it is false (``inverted``: true), the score is ``lowest``.
    """

    factor: float = 1.0
    mask: Value | None = None
    condition: Value | None = None
    inverted: bool = False
    lowest: float = 0.0


@dataclass
class _Chain:
    """The steps from the matrix multiplication to the input of a Softmax, in reverse order, and the factors of heads."""

    start: Value
    steps: list[_Step] = field(default_factory=list)
    head_factors: Value | None = None


class RegularScores(OperatorPass):
    """Convert scores with several masks, with a factor after the mask, or with a factor for each head, to the canonical
    order.

    Factors of heads are a constant. They are moved to the query. Scores to which a number adds dimensions stay.
    """

    operators = frozenset(("Softmax",))

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for softmax in list(all_nodes(model.graph)):
            if softmax.domain or softmax.op_type != "Softmax" or not isinstance(softmax.graph, ir.Graph):
                continue
            given = softmax.inputs[0]
            chain = _chain(given) if isinstance(given, Value) else None
            if chain is None or given is None or _is_regular(chain):
                continue
            root = root or Builder.of_existing(model.graph)
            op = Builder.before_node(softmax, root)
            new = _emitted(op, chain)
            if new is None or (new.shape is not None and given.shape is not None and len(new.shape) != len(given.shape)):
                continue
            with rewriting("RegularScores", finite=True):
                count += replace_value(given, new)
        return PassResult(model, modified=count > 0)


def _chain(value: Value) -> _Chain | None:
    found = _Chain(value)
    while len(value.uses()) == 1 and not value.is_graph_output():
        node = value.producer()
        if node is None or node.domain or node.op_type not in ("Add", "Div", "Mul", "Where"):
            break
        data = _NUMBERS.operands(node)
        if len(data) != 1 or node.inputs.count(data[0]) != 1 or not isinstance(data[0], Value):
            break
        others = [x for x in node.inputs if x is not data[0]]
        try:
            step = _step(node, data[0], others)
        except UnsupportedAttention:
            if (factors := _head_factors(node, data[0], others[-1])) is not None:
                found.head_factors, found.start = factors, data[0]
            step = None
        if step is None:
            break
        found.steps.append(step)
        value = found.start = data[0]
    return found if found.steps or found.head_factors is not None else None


def _step(node: ir.Node, data: Value, others: Sequence[ir.Value | None]) -> _Step | None:
    """Return the step of a node; ``None`` if it is another operation.

    Raises:
        UnsupportedAttention: it multiplies them by several numbers.
    """
    other = others[-1]
    if not isinstance(other, Value):
        return None
    if node.op_type == "Add":
        return _Step(mask=other)
    if node.op_type == "Where":
        condition = node.inputs[0]
        if data is condition or not isinstance(condition, Value):
            return None
        try:
            lowest = _NUMBERS.number(other)
        except UnsupportedAttention:
            return None
        return _Step(condition=condition, inverted=data is node.inputs[2], lowest=lowest)
    number = _NUMBERS.number(other)
    if node.op_type == "Div":
        number = 1 / number if data is node.inputs[0] and number else math.inf
    return _Step(factor=number) if product([number]) is not None else None


def _head_factors(node: ir.Node, scores: Value, other: ir.Value | None) -> Value | None:
    """Return the constant factors of heads, ``[1, heads, 1, 1]`` or ``[heads, 1, 1]``, by which a node multiplies scores."""
    matmul = scores.producer()
    if node.op_type != "Mul" or matmul is None or matmul.op_type != "MatMul" or matmul.domain or len(scores.uses()) != 1:
        return None
    query = matmul.inputs[0]
    if not isinstance(other, Value) or other.const_value is None or other.is_graph_input() or not isinstance(query, Value):
        return None
    dims, of = other.dims, query.dims
    if (
        dims is None
        or of is None
        or len(of) != 4
        or len(dims) not in (3, 4)
        or dims[-2:] != [1, 1]
        or other.dtype != query.dtype
    ):
        return None
    return other if dims[-3] == of[1] and dims[:-3] in ([], [1]) else None


def _is_regular(chain: _Chain) -> bool:
    """Return whether the order is canonical: at most one mask, as the last step."""
    if chain.head_factors is not None:
        return False
    masks = [index for index, step in enumerate(chain.steps) if step.mask is not None or step.condition is not None]
    return masks in ([], [0]) and not (masks and chain.steps[0].inverted)


def _emitted(op: Builder, chain: _Chain) -> Value | None:
    steps = list(reversed(chain.steps))
    scale = product([step.factor for step in steps])
    masked = [step for step in steps if step.mask is not None or step.condition is not None]
    conditions = [step for step in masked if step.condition is not None]
    after = product([step.factor for step in steps[steps.index(conditions[-1]) :]]) if conditions else 1.0
    if scale is None or after is None:
        return None
    is_only_condition = len(masked) == 1 and bool(conditions)
    if not is_only_condition and any(step.lowest > ABSORBING for step in conditions):
        return None
    scores = chain.start
    if chain.head_factors is not None:
        matmul = scores.producer()
        assert matmul is not None
        scores = op.MatMul(op.Mul(matmul.inputs[0], chain.head_factors), matmul.inputs[1])
        if chain.steps and scores.dtype is None:
            return None
    if scale != 1:
        scores = op.Mul(scores, op.const(scale, scores.dtype))
    if is_only_condition:
        (step,) = conditions
        return _where(op, _visible(op, step), scores, step.lowest * after, scores.dtype)
    mask: Value | None = None
    for step in steps:
        if mask is not None and step.factor != 1:
            mask = op.Mul(mask, op.const(step.factor, scores.dtype))
        if step.mask is not None:
            mask = step.mask if mask is None else op.Add(mask, step.mask)
        if step.condition is not None:
            mask = _where(
                op, _visible(op, step), op.const(0, scores.dtype) if mask is None else mask, step.lowest, scores.dtype
            )
    whole: Value = scores if mask is None else op.Add(scores, mask)
    return whole


def _visible(op: Builder, step: _Step) -> Value:
    assert step.condition is not None
    inverted: Value = op.Not(step.condition) if step.inverted else step.condition
    return inverted


def _where(op: Builder, visible: Value, given: Value, lowest: float, dtype: ir.DataType | None) -> Value:
    result: Value = op.Where(visible, given, op.const(lowest, dtype))
    return result


@rewrite(
    "MatMul",
    lambda op, x, shape, v: op.MatMul(op.Softmax(op.Reshape(x, shape), _outputs=["weights"]), v, _outputs=["whole"]),
)
def weights_of_heads(op: Builder, *, x: Value, shape: Value, v: Value, weights: Value, whole: Value) -> Value | None:
    """Return the MatMul of weights and values ``[batch * heads, tokens, size]`` in four dimensions, for scores ``[batch,
    heads, queries, keys]``.
    """
    del shape
    softmax = weights.producer()
    if softmax is None or softmax.attributes.get_int("axis", -1) not in (-1, 2) or not _are_rows(weights, x):
        return None
    return _mixed(op, op.Softmax(x, axis=-1), x, v, whole)


def _are_rows(rows: Value, heads: Value) -> bool:
    """Return whether dimensions are ``[batch * heads, x, y]`` of known ``[batch, heads, x, y]``."""
    dims = heads.dims
    if dims is None or len(dims) != 4 or None in dims or 0 in dims:
        return False
    return rows.dims == [_product(dims[0], dims[1]), *dims[2:]]


def _mixed(op: Builder, weights: Value, heads: Value, v: Value, whole: Value) -> Value | None:
    """Return the MatMul of weights, with the dimensions of ``heads``, and values, with the dimensions of ``whole``."""
    dims, of = heads.dims, v.dims
    if dims is None or of is None or len(of) != 3 or None in of or 0 in of or whole.dims is None:
        return None
    if of[0] != _product(dims[0], dims[1]):
        return None
    result: Value = op.Reshape(op.MatMul(weights, op.Reshape(v, [*dims[:2], *of[1:]])), whole.dims)
    return result


@rewrite(
    "Reshape", lambda op, q, k, shape: op.Reshape(op.MatMul(q, op.Transpose(k, perm=[0, 2, 1])), shape, _outputs=["whole"])
)
def scores_of_heads(op: Builder, *, q: Value, k: Value, shape: Value, whole: Value) -> Value | None:
    """Return the MatMul of queries and keys, ``[batch * heads, queries, keys]`` before a Reshape, in four dimensions."""
    del shape
    dims, queries, keys = whole.dims, q.dims, k.dims
    if dims is None or queries is None or keys is None or None in (*dims, *queries, *keys) or 0 in dims:
        return None
    if len(dims) != 4 or len(queries) != 3 or len(keys) != 3 or not queries[0] == keys[0] == _product(dims[0], dims[1]):
        return None
    if dims[2:] != [queries[1], keys[1]] or not _leads_to_softmax(whole):
        return None
    heads = op.Transpose(op.Reshape(k, [*dims[:2], *keys[1:]]), perm=[0, 1, 3, 2])
    result: Value = op.MatMul(op.Reshape(q, [*dims[:2], *queries[1:]]), heads)
    return result


def _product(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def _leads_to_softmax(value: ir.Value) -> bool:
    for _ in range(6):
        uses = list(value.uses())
        if len(uses) != 1 or value.is_graph_output() or uses[0][0].domain:
            return False
        node = uses[0][0]
        if node.op_type == "Softmax":
            return True
        if node.op_type not in ("Add", "Div", "Mul", "Reshape", "Where"):
            return False
        value = node.outputs[0]
    return False


@rewrite(
    "MatMul",
    lambda op, x, shape, v: op.MatMul(
        op.Reshape(op.Softmax(x, _outputs=["weights"]), shape, _outputs=["rows"]), v, _outputs=["whole"]
    ),
)
def mixed_rows(op: Builder, *, x: Value, shape: Value, v: Value, weights: Value, rows: Value, whole: Value) -> Value | None:
    """Return the MatMul of weights ``[batch, heads, queries, keys]`` and values ``[batch * heads, keys, size]`` in four
    dimensions.
    """
    del x, shape
    softmax = weights.producer()
    if softmax is None or softmax.attributes.get_int("axis", -1) not in (-1, 3) or not _are_rows(rows, weights):
        return None
    return _mixed(op, weights, weights, v, whole)


def _reshaped(name: str) -> Any:
    return lambda op, a, b, shape: op.Reshape(getattr(op, name)(a, b, _outputs=["rows"]), shape, _outputs=["whole"])


def _step_of_heads(op: Builder, *, a: Value, b: Value, shape: Value, rows: Value, whole: Value) -> Value | None:
    """Return the steps of scores ``[batch * heads, queries, keys]`` before a Reshape in four dimensions."""
    del a, b, shape
    node, dims = rows.producer(), whole.dims
    if node is None or dims is None or not _are_rows(rows, whole) or not _leads_to_softmax(whole):
        return None
    if not _NUMBERS.operands(node):
        return None
    return _of_heads(op, rows, dims[:2]) if _has_known_parts(rows, _product(*dims[:2])) else None


def _parts(value: Value, rows: int | None) -> list[Value]:
    """Return the operands of a value ``[rows, x, y]`` that is computed in four dimensions; none if it is reshaped."""
    node = value.producer()
    if node is None or node.domain or len(value.uses()) != 1 or value.is_graph_output() or (value.dims or [0])[0] != rows:
        return []
    if node.op_type == "Transpose":
        is_used = tuple(node.attributes.get_ints("perm", ())) == (0, 2, 1)
    else:
        is_step = node.op_type in ("Add", "Div", "Mul")
        is_used = node.op_type == "MatMul" or (is_step and (bool(_NUMBERS.operands(node)) or _NUMBERS.has_factor(node)))
    return [x for x in node.inputs if isinstance(x, Value)] if is_used and value.rank == 3 else []


def _has_known_parts(value: Value, rows: int | None, steps: int = _MAX_STEPS) -> bool:
    """Return whether the shapes are known of a value and of those that it is computed from, in a few steps."""
    if value.dims is None or len(value.dims) > 3 or None in value.dims or not steps:
        return False
    return all(_has_known_parts(part, rows, steps - 1) for part in _parts(value, rows))


def _of_heads(op: Builder, value: Value, heads: list[Any]) -> Value:
    """Return a value ``[batch * heads, x, y]`` in four dimensions, and others as they are."""
    dims, rows, result = value.dims or [], _product(*heads), value
    parts = [_of_heads(op, part, heads) for part in _parts(value, rows)]
    node = value.producer()
    if parts and node is not None:
        perm = [0, 1, 3, 2] if node.op_type == "Transpose" else None
        result = op.node(node.op_type, *parts, perm=perm)
    elif len(dims) == 3 and dims[0] == rows:
        result = op.Reshape(value, [*heads, *dims[1:]])
    return result


added_to_heads = rewrite("Reshape", _reshaped("Add"))(_step_of_heads)
divided_heads = rewrite("Reshape", _reshaped("Div"))(_step_of_heads)
multiplied_heads = rewrite("Reshape", _reshaped("Mul"))(_step_of_heads)


@rewrite("Add", lambda op, x, shape, a, b: op.Add(op.Add(op.Reshape(x, shape, _outputs=["windows"]), a), b), commute=True)
def masks_of_windows(op: Builder, *, x: Value, shape: Value, windows: Value, a: Value, b: Value) -> Value | None:
    """Return the scores of windows, ``[batch, windows, heads, tokens, tokens]``, plus the sum of two constants."""
    del x, shape
    if a.const_value is None or b.const_value is None or a.is_graph_input() or b.is_graph_input():
        return None
    if windows.rank != 5 or a.rank != 5 or a.dims != b.dims:
        return None
    result: Value = op.Add(windows, op.Add(a, b))
    return result


class FourDimensionalHeads(PatternPass):
    """Convert matrix multiplications with batch and heads in one dimension of known size to four dimensions."""

    rewrites = (
        weights_of_heads,
        mixed_rows,
        added_to_heads,
        divided_heads,
        multiplied_heads,
        scores_of_heads,
        masks_of_windows,
    )


REGULAR = (FourDimensionalHeads, JoinMasks, RegularScores)
"""The passes, in order."""
