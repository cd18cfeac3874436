"""Attention over a cache, wherever a graph has it: from the Softmax back to queries and caches, forth to the values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from converters.passes.attention.caches import Cache
from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import Dependence, ProbeError
from converters.passes.factors import is_normal, product


class UnsupportedAttention(ValueError):
    """The attention has a form that GroupQueryAttention does not have."""


@dataclass
class Attention:
    """One attention.

    Attributes:
        softmax: its node.
        query: [batch, heads, sequence, size].
        keys, values: the caches.
        scale: the factor of the attention scores.
        softcap: what limits them; 0 for nothing.
        mask: what is added to the attention scores; ``None`` for nothing.
        is_boolean: whether it is true where a key is seen, instead.
        lowest: what stands instead of attention scores that such a one hides.
        mixed: [batch, heads, sequence, size], what becomes of the values.
        heads, groups, size: the numbers of heads, of keys that they share, and of the elements of each.
        sink: [heads], attention scores that lead to no value; ``None`` for none.
    """

    softmax: ir.Node
    query: ir.Value
    keys: Cache
    values: Cache
    scale: float
    softcap: float
    mask: ir.Value | None
    is_boolean: bool
    mixed: ir.Value
    heads: int
    groups: int
    size: int
    sink: np.ndarray | None = None
    lowest: float = 0.0


@dataclass
class _Products:
    """What lies between the attention scores of queries and keys and the Softmax.

    Attributes:
        factors: the attention scores are multiplied by, the last first.
        softcap: what a Tanh of the attention scores is multiplied by; ``None`` where there is none.
        mask, is_boolean, lowest: as in `Attention`.
        product: the node of the attention scores.
    """

    factors: list[float] = field(default_factory=list)
    softcap: float | None = None
    mask: ir.Value | None = None
    is_boolean: bool = False
    lowest: float = 0.0
    product: ir.Node | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing becomes of the attention scores after this."""
        return self.mask is None and self.softcap is None and all(factor == 1 for factor in self.factors)


class Matcher:
    """Finds the attentions of a graph.

    Args:
        inputs: the graph's inputs.
        caches: its caches.
        dependence: what depends on data.
    """

    def __init__(self, inputs: Inputs, caches: Sequence[Cache], dependence: Dependence) -> None:
        self._inputs, self._dependence = inputs, dependence
        self._by_present = {cache.present: cache for cache in caches}
        self._probe, self._later = inputs.probe(PROBE_SHAPES), inputs.probe(_LATER_SHAPES)

    def match(self, softmax: ir.Node) -> Attention | None:
        """The attention of a Softmax; ``None`` where it is none over a cache.

        Raises:
            UnsupportedAttention: it is one, of another form.
        """
        weights, with_sink = self._without_sink(softmax.outputs[0])
        mixing = _next(weights, "MatMul")
        if mixing is None or softmax.inputs[0] not in self._dependence or mixing.inputs[1] is None:
            return None
        values = self._cache(mixing.inputs[1])
        if values is None:
            return None
        axis = softmax.attributes.get_int("axis", -1)
        scores, sink = self._sink(softmax.inputs[0]) if with_sink else (softmax.inputs[0], None)
        products = self._products(scores)
        assert products.product is not None
        query, transposed = products.product.inputs[:2]
        assert query is not None and transposed is not None
        transpose = transposed.producer()
        rank = len(transposed.shape or ())
        if transpose is None or transpose.op_type != "Transpose" or rank != 4 or axis not in (-1, 3):
            raise UnsupportedAttention("its keys are not transposed for the product")
        if list(transpose.attributes.get_ints("perm", [])) != [0, 1, 3, 2] or transpose.inputs[0] is None:
            raise UnsupportedAttention("its keys are not transposed for the product")
        keys = self._cache(transpose.inputs[0])
        if keys is None:
            raise UnsupportedAttention("its keys are not those of a cache")
        own = list(reversed(products.factors))
        factors, unscaled = self._scaled(query)
        if product([*factors, *own]) is None:  # the query stays multiplied
            factors, unscaled = [], query
        query = unscaled
        scale, softcap = _scale_and_softcap([*factors, *own], products.softcap)
        mixed = self._without_nan_guard(mixing.outputs[0], products.mask)
        heads, size = self._probe.shape(query)[1::2]
        groups = self._probe.shape(keys.present)[1]
        if keys.axis != 2 or values.axis != 2 or self._probe.shape(values.present) != self._probe.shape(keys.present):
            raise UnsupportedAttention("its keys and values have different shapes")
        if heads % groups:
            raise UnsupportedAttention(f"{heads} heads cannot share {groups} keys")
        for cache, used in ((keys, transpose.inputs[0]), (values, mixing.inputs[1])):
            self._check_repeated(cache, used, heads // groups)
        return Attention(
            softmax, query, keys, values, scale, softcap, products.mask,
            products.is_boolean, mixed, heads, groups, size, sink, products.lowest,
        )  # fmt: skip

    @staticmethod
    def _without_nan_guard(mixed: ir.Value, mask: ir.Value | None) -> ir.Value:
        """What becomes of the values with 0 for the tokens that -inf in the mask lets see nothing, where that is asked for.

        The operators give it by themselves.
        """
        guard = _only(mixed, "Where", 2)
        if guard is None or mask is None or not _is_number(guard.inputs[1], 0):
            return mixed
        equal = _made_by(guard.inputs[0], "Equal")
        highest = None if equal is None else _made_by(equal.inputs[0], "ReduceMax")
        if equal is None or highest is None or highest.inputs[0] is not mask or not _is_number(equal.inputs[1], -np.inf):
            return mixed
        return guard.outputs[0]

    def _without_sink(self, weights: ir.Value) -> tuple[ir.Value, bool]:
        """What a Softmax gives without its last column, where that is left out: it leads to no value."""
        if (node := _next(weights, "Slice")) is None:
            return weights, False
        whole = np.random.default_rng(4).standard_normal((2, 2, 3, 9)).astype(np.float32)
        try:
            got = self._inputs.probe(PROBE_SHAPES, {weights: whole}).array(node.outputs[0])
        except ProbeError:
            return weights, False
        left = np.array_equal(got, whole[..., :-1])
        return (node.outputs[0], True) if left else (weights, False)

    def _sink(self, scores: ir.Value | None) -> tuple[ir.Value | None, np.ndarray]:
        """The attention scores without their last column, and what that has for each head."""
        node = None if scores is None else scores.producer()
        if node is None or node.op_type != "Concat" or len(node.inputs) != 2 or node.inputs[1] in self._dependence:
            raise UnsupportedAttention("the column of its Softmax that leads to no value depends on data")
        if node.attributes.get_int("axis", 0) not in (-1, 3) or node.inputs[1] is None:
            raise UnsupportedAttention("its Softmax has more than a column that leads to no value")
        try:
            column, later = (probe.array(node.inputs[1]) for probe in (self._probe, self._later))
        except ProbeError as error:
            raise UnsupportedAttention(f"the column of its Softmax that leads to no value is not known: {error}") from error
        if any(x.ndim != 4 or x.shape[3] != 1 or not (x == column[:1, :, :1]).all() for x in (column, later)):
            raise UnsupportedAttention("the column of its Softmax that leads to no value is not one number a head")
        return node.inputs[0], column[0, :, 0, 0]

    def _cache(self, value: ir.Value) -> Cache | None:
        """The cache that a value comes from."""
        for dominator in self._dependence.dominators(value, most=40) if value in self._dependence else []:
            if dominator in self._by_present:
                return self._by_present[dominator]
        return None

    def _check_repeated(self, cache: Cache, used: ir.Value, times: int) -> None:
        """Raises `UnsupportedAttention` where ``used`` is not the cache with each head repeated."""
        if used is cache.present and times == 1:
            return
        content = np.random.default_rng(1).standard_normal(self._probe.shape(cache.present)).astype(np.float32)
        try:
            got = self._inputs.probe(PROBE_SHAPES, {cache.present: content}).array(used)
        except ProbeError as error:
            raise UnsupportedAttention(f"what becomes of its keys or values is not known: {error}") from error
        if content.shape[1] == 1 and np.array_equal(got, content):
            return  # the product itself repeats it
        wanted = np.repeat(content, times, axis=1)
        if got.shape != wanted.shape or not np.array_equal(got, wanted):
            raise UnsupportedAttention("its keys or values are not those of the cache, each for a group of heads")

    def _products(self, value: ir.Value | None) -> _Products:
        """Back from what the Softmax takes to the scores of queries and keys."""
        found = _Products()
        while True:
            node = None if value is None else value.producer()
            if node is None or node.domain:
                raise UnsupportedAttention("the input of its Softmax is not a product with a cache")
            data = self._dependence.among(list(node.inputs))
            others = [v for v in node.inputs if v is not None and v not in data]
            if node.op_type == "MatMul" and len(data) == 2:
                found.product = node
                return found
            if len(data) != 1:
                raise UnsupportedAttention(f"{node.op_type} of two data-dependent inputs precedes its Softmax")
            value = data[0]
            if node.op_type in ("Cast", "Identity"):
                if value.dtype != node.outputs[0].dtype:
                    raise UnsupportedAttention("its attention scores are rounded")
            elif node.op_type == "Add" and found.is_plain:
                found.mask = others[0]
            elif node.op_type == "Where" and found.is_plain and node.inputs[1] is value:
                found.lowest = self._lowest(others[1])
                found.mask, found.is_boolean = others[0], True
            elif node.op_type == "Mul":
                found.factors.append(self._number(others[0]))
            elif node.op_type == "Div" and node.inputs[0] is value:
                found.factors.append(self._divisor(others[0]))
            elif node.op_type == "Tanh" and found.softcap is None:
                found.softcap, found.factors = _factor(reversed(found.factors)), []
            else:
                raise UnsupportedAttention(f"{node.op_type} precedes its Softmax")

    def _scaled(self, query: ir.Value) -> tuple[list[float], ir.Value]:
        """The factors by which a query is multiplied at once, and the query without them."""
        factors: list[float] = []
        while (node := query.producer()) is not None and node.op_type in ("Mul", "Div") and not node.domain:
            data = self._dependence.among(list(node.inputs))
            others = [v for v in node.inputs if v is not None and v not in data]
            if len(data) != 1 or len(others) != 1 or (node.op_type == "Div" and node.inputs[0] is not data[0]):
                break
            try:
                number = self._number(others[0]) if node.op_type == "Mul" else self._divisor(others[0])
            except UnsupportedAttention:
                break
            if product([number, *factors]) is None:
                break
            factors.insert(0, number)
            query = data[0]
        return factors, query

    def _number(self, value: ir.Value) -> float:
        try:
            array, later = self._probe.array(value), self._later.array(value)
        except ProbeError as error:
            raise UnsupportedAttention(f"a factor of its attention scores is not known: {error}") from error
        if array.size != 1:
            raise UnsupportedAttention("its attention scores are multiplied by several numbers")
        if not np.array_equal(array, later):
            raise UnsupportedAttention("a factor of its attention scores changes with the tokens")
        return float(array.reshape(-1)[0])

    def _divisor(self, value: ir.Value) -> float:
        """What a division by a number multiplies with."""
        number = self._number(value)
        if not is_normal(number):
            raise UnsupportedAttention(_factor_unknown(number))
        return 1 / number

    def _lowest(self, value: ir.Value) -> float:
        number = self._number(value)
        if number > MASKED:
            raise UnsupportedAttention("its mask value does not hide the masked positions")
        return number


def _factor(factors: Iterable[float]) -> float:
    """The one factor that several are; raises `UnsupportedAttention` where a node's attribute cannot be it."""
    factors = list(factors)
    if (whole := product(factors)) is None:
        raise UnsupportedAttention(_factor_unknown(float(np.prod(factors))))
    return whole


def _factor_unknown(number: float) -> str:
    return f"its attention scores are multiplied by {number:g}, which is 0 or beyond float32's range as an attribute"


def _scale_and_softcap(factors: Iterable[float], softcap: float | None) -> tuple[float, float]:
    """The attributes ``scale`` and ``softcap``, whose Tanh takes the attention scores divided by it.

    A softcap below 0 is one above 0: Tanh is odd.
    """
    scale = _factor(factors)
    if softcap is None:
        return scale, 0.0
    return _factor([scale, softcap]), abs(softcap)


MASKED = -1e4
"""Attention scores with less added lead to nothing."""

PROBE_SHAPES = ProbeShapes(batch=2, sequence=3, past=5)
"""What attentions are tried in."""

_LATER_SHAPES = ProbeShapes(batch=2, sequence=2, past=9)
"""What does not change with the number of tokens is the same here."""


def _made_by(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """The node that computes a value, if it is of a type."""
    node = None if value is None else value.producer()
    return node if node is not None and (node.op_type, node.domain) == (op_type, "") else None


def _is_number(value: ir.Value | None, number: float) -> bool:
    tensor = None if value is None else value.const_value
    return tensor is not None and tensor.size == 1 and bool((tensor.numpy() == number).all())


def _only(value: ir.Value, op_type: str, index: int) -> ir.Node | None:
    """The one node that takes the value, of a type and at a place."""
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output():
        return None
    node, at = uses[0]
    return node if (node.op_type, node.domain, at) == (op_type, "", index) else None


def _next(value: ir.Value, op_type: str) -> ir.Node | None:
    """The one node that takes the value first, casts to its own type aside."""
    while len(uses := list(value.uses())) == 1:
        node, index = uses[0]
        if node.op_type == op_type and not node.domain and index == 0:
            return node
        if node.op_type not in ("Cast", "Identity") or node.outputs[0].dtype != value.dtype:
            return None
        value = node.outputs[0]
    return None
