"""Fusion of the gated delta rule (Qwen3-Next, Qwen3.5), which an IR computes by a loop over tokens, into one node.

A Loop that optimum-intel exports reads queries, keys, values, decays and rates of all tokens, updates the state token by
token, and writes the outputs into a tensor. The body is recognized by evaluation on small inputs, so the order and form of
its nodes do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, permutations

import numpy as np
import onnx_ir as ir

from converters.passes.token_loops import (
    EVALUATED,
    LINEAR,
    MAX_ELEMENTS,
    FuseTokenLoops,
    Runs,
    TokenLoop,
    captured,
    close,
    varies,
)
from onnx_specops.building import Builder
from onnx_specops.graphs import attributes_of, computed_before, constant_array, constant_list, producer_of

_SCALES = (1.0, 1e4, 1e-4)
"""The magnitudes of states and values that are tried. The rule is linear in both."""

_BY_ELEMENT = frozenset(("Add", "Div", "Identity", "Mul", "Neg", "Reciprocal", "Sqrt", "Sub"))
"""Operators that compute each element separately."""

_MAX_VALUES = 64
"""The largest number of values between a repetition of heads and an input of the rule."""


@dataclass
class _Rule(TokenLoop):
    """A loop over tokens, with the letters ``k`` and ``v`` for the rows and columns of a state.

    Attributes:
        order: the dimensions of its inputs and outputs: ``bht`` or ``bth``.
        query, key, value, decay, beta: its inputs.
    """

    order: str
    query: ir.Value
    key: ir.Value
    value: ir.Value
    decay: ir.Value
    beta: ir.Value

    def fits(self) -> bool:
        """Return whether all values have the dimensions of the rule in all runs, and the loop runs once for each token."""
        return (
            self.has_fixed_state()
            and self.has_shape(self.state, *"bhkv")
            and all(self.has_shape(value, *self.order, "k") for value in (self.query, self.key))
            and all(self.has_shape(value, *self.order, "v") for value in (self.value, self.written))
            and all(self.has_shape(value, *self.order) for value in (self.decay, self.beta))
            and self.runs_once()
        )


class FuseGatedDeltaRule(FuseTokenLoops):
    """Replace loops over tokens that compute the gated delta rule by `onnx_specops.GatedDeltaRule`.

    Conditions: the loop carries the state and the outputs, and runs once for each token. Its body multiplies the state by
    the exponential of a number for each head. It adds the outer product of the key and the update. The update is the rate
    times the difference between the value and the product of the key and the decayed state. It writes the product of the
    query and the new state at the token's place. No operator of the body has limits. All have the same batch and tokens in
    runs of several tokens.
    """

    operators = LINEAR | {"Exp", "Neg", "Sub"}  # analytic functions: two that agree at some numbers agree at all

    def recognized(self, loop: ir.Node, runs: Runs) -> _Rule | None:
        return next((found for found in _candidates(loop, runs) if found.fits() and _computes(found)), None)

    def replaced(self, graph: ir.Graph, found: _Rule, root: Builder) -> bool:
        _replace(graph, found, root)
        return True


def _candidates(loop: ir.Node, runs: Runs) -> Iterator[_Rule]:
    """Yield the loop with the roles that the values it reads may have, by their ranks."""
    read = captured(loop.attributes["body"].as_graph())
    wide, narrow = ([value for value in read if len(runs.shapes(value)[0]) == rank] for rank in (4, 3))
    if len(read) != 5 or len(wide) != 3 or len(narrow) != 2:
        return
    for place in (0, 1):
        state = loop.inputs[2 + place]
        if state is None or any(len(shape) != 4 for shape in runs.shapes(state)):
            continue
        for order in ("bht", "bth"):
            axis = order.index("t")
            if not varies(narrow[0], axis, runs):
                continue
            shapes = zip(runs.shapes(state), runs.shapes(narrow[0]), strict=True)
            sizes = [dict(zip("bhkvt", (*own, gates[axis]), strict=True)) for own, gates in shapes]
            for query, key, value in permutations(wide):
                for decay, beta in permutations(narrow):
                    yield _Rule(loop, place, sizes, runs, order, query, key, value, decay, beta)


def _computes(rule: _Rule) -> bool:
    """Return whether a body computes the rule's state and output of a token."""
    for sizes in rule.sizes[:EVALUATED]:
        if math.prod(sizes[letter] for letter in "bhkv") > MAX_ELEMENTS:
            return False
    places = [(sizes, t) for sizes in rule.sizes[:EVALUATED] for t in sorted({0, sizes["t"] - 1})]
    # If the model has a fixed number of tokens, there are more or fewer places than scales.
    count = max(len(places), len(_SCALES))
    tried = zip(islice(cycle(places), count), islice(cycle(_SCALES), count), strict=True)
    return all(_agrees(rule, sizes, t, scale) for (sizes, t), scale in tried)


def _agrees(rule: _Rule, sizes: Mapping[str, int], t: int, scale: float) -> bool:
    """Return whether the body computes the rule's state and output of token ``t``."""
    draw = np.random.default_rng(t)
    by_token = "bth".index("t")

    def numbers(dims: str, scale: float = 1.0) -> np.ndarray:
        return (scale * draw.uniform(-1, 1, [sizes[letter] for letter in dims])).astype(np.float32)

    def ordered(array: np.ndarray) -> np.ndarray:
        return array.swapaxes(1, 2) if rule.order == "bht" else array

    query, key, value = numbers("bthk"), numbers("bthk"), numbers("bthv", scale)
    decay, beta = numbers("bth", 2.0), numbers("bth")
    state, written = numbers("bhkv", scale), numbers("bthv", scale)
    named = {rule.query: query, rule.key: key, rule.value: value, rule.decay: decay, rule.beta: beta}
    found = rule.step(t, state, ordered(written), {name: ordered(array) for name, array in named.items()})
    q, k, v, g, b = (array.take(t, by_token) for array in (query, key, value, decay, beta))
    after = state * np.exp(g)[..., None, None]
    error = v - (after * k[..., None]).sum(-2)
    after = after + k[..., None] * (b[..., None] * error)[:, :, None]
    written = written.copy()
    written[:, t] = (after * q[..., None]).sum(-2)
    return close(found[0], after) and close(found[1], ordered(written))


def _replace(graph: ir.Graph, rule: _Rule, root: Builder) -> None:
    op = Builder(graph, root=root, before=rule.node)
    op.scope = rule.node.name or "delta_rule"
    order = [0, 2, 1, 3] if rule.order == "bht" else None
    query, key, value = (_ordered(op, given, order) for given in (rule.query, rule.key, rule.value))
    decay, beta = (_ordered(op, given, order and order[:3]) for given in (rule.decay, rule.beta))
    groups = [_of_groups(rule, op, given) for given in (query, key)]
    if groups[0][1] == groups[1][1]:
        (query, _), (key, _) = groups
    y, present = op.specops.GatedDeltaRule(query, key, value, rule.state, decay, beta, outputs=2)
    rule.replace(op.Transpose(y, perm=order) if order else y, present)


def _ordered(op: Builder, value: ir.Value, order: Sequence[int] | None) -> ir.Value:
    """Return a transposed value. A Transpose before a product with a number is moved after it, where it has no effect."""
    if order is None:
        return value
    products: list[ir.Node] = []
    while (node := value.producer()) is not None and not node.domain and node.op_type in ("Div", "Mul"):
        if not _is_number(node.inputs[1]) or node.inputs[0] is None:
            break
        products.append(node)
        value = node.inputs[0]
    transpose = producer_of(value, "Transpose")
    if (
        transpose is not None
        and list(transpose.attributes.get_ints("perm", ())) == order
        and transpose.inputs[0] is not None
    ):
        value = transpose.inputs[0]
    else:
        value = op.Transpose(value, perm=list(order))
    for node in reversed(products):
        value = op.node(node.op_type, value, node.inputs[1])
    return value


def _is_number(value: ir.Value | None) -> bool:
    array = constant_array(value)
    return array is not None and array.size == 1 and array.ndim <= 1


def _of_groups(rule: _Rule, op: Builder, value: ir.Value) -> tuple[ir.Value, int]:
    """Return the value before groups of heads were repeated, and the number of groups.

    The nodes between the repetition and the value may compute each element separately, or sums of each head.
    """
    heads = rule.sizes[0]["h"]
    made: dict[ir.Value, ir.Value] = {}
    groups: set[int] = set()

    def inputs_of(value: ir.Value) -> Sequence[ir.Value] | None:
        if _is_number(value):
            made[value] = value
            return ()
        if rule.has_shape(value, *"bthk"):
            source, count = rule.grouped(value, "k")
            if source is not value:
                groups.add(count)
                made[value] = source
                return ()
        node = value.producer()
        if node is None or not _is_by_head(node):
            return None
        return [one for one in node.inputs[: None if node.op_type in _BY_ELEMENT else 1] if one is not None]

    order = computed_before(value, inputs_of, _MAX_VALUES)
    if order is None or len(groups) != 1:
        return value, heads
    for one in order:
        if one not in made and (node := one.producer()) is not None:
            given = [made.get(source, source) for source in node.inputs if source is not None]
            made[one] = op.node(node.op_type, *given, **attributes_of(node))
    return made[value], groups.pop()


def _is_by_head(node: ir.Node) -> bool:
    """Return whether a node computes each element separately, or the sum of each head."""
    if node.domain or any(value is None for value in node.inputs):
        return False
    if node.op_type == "ReduceSum":
        axes = constant_list(node.inputs[1]) if len(node.inputs) > 1 else None
        return axes in ([3], [-1]) and node.attributes.get_int("keepdims", 1) == 1
    return node.op_type in _BY_ELEMENT
