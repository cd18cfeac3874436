"""The network of both recommenders after the lookup of ids: embeddings, bags, feature crosses, a dense tower, and scores.

`models/recommender` looks up strings in vocabularies with buckets for unknown strings, and `models/recommender_int` looks
up integers in vocabularies without buckets. The weights are random numbers with a fixed seed. The shapes and layers are
those of a real recommender. B is the number of users in the batch, and C the number of candidates per user. Both are
dynamic.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from models import making

DIM = 32
HEADS = 4
COUNTRIES = 12
TAGS = 40
RECENT = 24
PROFILE_TAGS = 16

# Inputs that are not ids. OpenVINO's CPU plugin requires a fixed number of weighted indices, so
# recent items and tags are in pools of fixed size, padded with weight 0.
PORTS: dict[str, tuple[ov.Type, list[int]]] = {
    "history_offsets": (ov.Type.i64, [-1]),
    "recent_offsets": (ov.Type.i32, [-1]),
    "recent_weights": (ov.Type.f32, [RECENT]),
    "tags": (ov.Type.i64, [PROFILE_TAGS]),
    "tag_offsets": (ov.Type.i64, [-1]),
    "tag_weights": (ov.Type.f32, [PROFILE_TAGS]),
    "context": (ov.Type.f32, [-1, 6]),
    "shown": (ov.Type.i32, [-1, -1]),
    "ratings": (ov.Type.f32, [-1, -1]),
    "seen": (ov.Type.i64, [-1, -1]),
}


class Ids(NamedTuple):
    """The ids, all int64: rows of the embedding tables. Unknown countries are -1."""

    user: ov.Output  # [B]
    country: ov.Output  # [B]
    history: ov.Output  # [number of items in all histories]
    recent: ov.Output  # [RECENT]
    candidates: ov.Output  # [B, C]


class Weights:
    """Random constants of the model, generated one after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, *shape: int, scale: float = 1.0) -> ov.Node:
        return ops.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))


Activation = Callable[[ov.Node], ov.Node]


def dense(weights: Weights, x: ov.Node, width: int, activation: Activation | None = None) -> ov.Node:
    """Add a fully connected layer. Its weight is [width, inputs], as in training frameworks."""
    inputs = x.get_output_partial_shape(0)[-1].get_length()
    y = ops.add(ops.matmul(x, weights(width, inputs, scale=inputs**-0.5), False, True), weights(width, scale=0.1))
    return activation(y) if activation else y


def layer_norm(weights: Weights, x: ov.Node) -> ov.Node:
    """Add a layer normalization, decomposed into its operations."""
    last = np.array([-1], np.int64)
    centred = ops.subtract(x, ops.reduce_mean(x, last, True))
    variance = ops.reduce_mean(ops.power(centred, np.float32(2)), last, True)
    normal = ops.divide(centred, ops.sqrt(ops.add(variance, np.float32(1e-5))))
    width = x.get_output_partial_shape(0)[-1].get_length()
    scale = ops.add(weights(width, scale=0.1), np.float32(1))
    return ops.add(ops.multiply(normal, scale), weights(width, scale=0.1))


def rows(table: ov.Node, ids: ov.Output | ov.Node) -> ov.Node:
    return ops.gather(table, ids, np.int32(0))


def filled_like(x: ov.Node | ov.Output, value: float) -> ov.Node:
    return ops.broadcast(np.float32(value), ops.shape_of(x))


def mean_history(table: ov.Node, ids: ov.Output, offsets: ov.Node) -> ov.Node:
    """Return the mean of each user's items [B, DIM], or row 0 for a user without items."""
    total = ops.embedding_bag_offsets_sum(table, ids, offsets, ops.constant(np.int64(0)))
    # The end of each bag is the next one's beginning, and the number of items for the last.
    later = ops.strided_slice(offsets, np.array([1]), np.array([0]), np.array([1]), [0], [1])
    ends = ops.concat([later, ops.shape_of(ids)], 0)
    lengths = ops.maximum(ops.subtract(ends, offsets), np.int64(1))
    return ops.divide(total, ops.unsqueeze(ops.convert(lengths, "f32"), np.int32(1)))


def situation(weights: Weights, context: ov.Node) -> ov.Node:
    """Embed the hour, the age and four arbitrary numbers: [B, 6] -> [B, DIM]."""
    hour, age, rest = ops.variadic_split(context, np.int32(1), np.array([1, 1, 4])).outputs()
    angle = ops.multiply(hour, np.float32(2 * np.pi / 24))
    features = [
        ops.sin(angle),
        ops.cos(angle),
        ops.log(ops.add(ops.clamp(age, 0.0, 120.0), np.float32(1))),
        ops.divide(ops.subtract(rest, weights(4)), np.array([1.5, 2.0, 0.5, 1.0], np.float32)),
    ]
    hidden = dense(weights, ops.concat(features, 1), 2 * DIM, ops.relu)
    normal = ops.mvn(hidden, np.array([-1]), True, 1e-6, "inside_sqrt")
    return dense(weights, normal, DIM, ops.hswish)


def homeland(weights: Weights, country: ov.Output) -> ov.Node:
    """Return the row of the country [B, DIM]. Unknown countries share the last row."""
    unknown = ops.less(country, np.int64(0))
    known = ops.select(unknown, np.int64(COUNTRIES), country)
    one_hot = ops.one_hot(known, np.int64(COUNTRIES + 1), np.float32(1), np.float32(0), -1)
    return ops.matmul(one_hot, weights(COUNTRIES + 1, DIM, scale=0.5), False, False)


def crosses(fields: list[ov.Node]) -> tuple[ov.Node, ov.Node]:
    """Return the concatenated fields [B, fields * DIM] and the dot product of each pair of fields [B, pairs]."""
    stack = ops.concat([ops.unsqueeze(field, np.int32(1)) for field in fields], 1)
    products = ops.reshape(ops.matmul(stack, stack, False, True), np.array([0, -1]), True)
    count = len(fields)
    pairs = np.array([a * count + b for a in range(count) for b in range(a + 1, count)])
    flat = ops.reshape(stack, np.array([0, count * DIM]), True)
    return flat, ops.multiply(ops.gather(products, pairs, np.int32(1)), np.float32(DIM**-0.5))


def taste(weights: Weights, fields: list[ov.Node]) -> ov.Node:
    """Add the dense tower, which computes the current interests of each user [B, DIM]."""
    flat, pairs = crosses(fields)
    x = dense(weights, ops.concat([flat, pairs], -1), 4 * DIM, ops.swish)
    x = layer_norm(weights, x)
    y = dense(weights, x, 2 * DIM, lambda z: ops.gelu(z, "erf"))
    gate = dense(weights, x, 2 * DIM, ops.sigmoid)
    x = ops.add(ops.multiply(gate, y), dense(weights, x, 2 * DIM))
    return dense(weights, x, DIM, ops.tanh)


def interest(weights: Weights, items: int, ids: Ids, offsets: ov.Node) -> ov.Node:
    """Return the similarity of each candidate to the closest of the user's HEADS interests [B, C]."""
    width = DIM // HEADS
    heads = ops.embedding_bag_offsets_sum(weights(items, HEADS, width), ids.history, offsets)
    length = ops.reduce_l2(heads, np.array([-1]), True)
    heads = ops.divide(heads, ops.maximum(length, np.float32(1e-6)))
    fits = ops.matmul(heads, rows(weights(items, width), ids.candidates), False, True)
    return ops.reduce_max(fits, np.array([1]), False)


def adjusted(scores: ov.Node, ids: Ids, known_items: int, ports: dict[str, ov.Node]) -> ov.Node:
    """Adjust the scores [B, C] for the items that were shown, their ratings, and new items."""
    shown, ratings = ports["shown"], ports["ratings"]
    none = filled_like(scores, 0.0)
    times = ops.scatter_elements_update(none, shown, filled_like(shown, 1.0), np.int32(1), "sum")
    rating = ops.scatter_elements_update(filled_like(scores, 3.0), shown, ratings, np.int32(-1), "mean", False)
    scores = ops.subtract(scores, ops.multiply(ops.log(ops.add(times, np.float32(1))), np.float32(0.3)))
    scores = ops.add(scores, ops.multiply(ops.subtract(rating, np.float32(3)), np.float32(0.2)))
    unknown = ops.greater_equal(ids.candidates, np.int64(known_items))
    # No mean of a few half stars comes near 2.05, so no rounding can change what is dull.
    dull = ops.less(rating, np.float32(2.05))
    penalty = ops.select(ops.logical_or(unknown, dull), np.float32(0.5), np.float32(0))
    return ops.subtract(scores, penalty)


def without_seen(scores: ov.Node, seen: ov.Node) -> ov.Node:
    """Set the scores [B, C] at the positions `seen` to -1e9. -1 selects an additional column, which is removed
    afterwards.
    """
    wide = ops.pad(scores, np.array([0, 0]), np.array([0, 1]), "constant", np.float32(0))
    wide = ops.scatter_elements_update(wide, seen, filled_like(seen, -1e9), np.array([1]), "none")
    return ops.strided_slice(wide, np.array([0, 0]), np.array([0, -1]), np.array([1, 1]), [1, 1], [1, 0])


class Scored(NamedTuple):
    """The network's outputs, [B, C]."""

    scores: ov.Node
    probabilities: ov.Node
    clicks: ov.Node


def scored(ids: Ids, ports: dict[str, ov.Node], users: int, items: int, known_items: int) -> Scored:
    """Return the scores, their softmax, and the probability of a click for each candidate.

    `users` and `items` are the numbers of rows of the tables. Item ids from `known_items` on are hash buckets or unknown
    items.
    """
    weights = Weights(seed=2019)
    table = weights(items, DIM, scale=0.6)
    history_offsets = ports["history_offsets"]
    recent = ops.embedding_bag_offsets_sum(
        table,
        ops.convert(ids.recent, "i32"),
        ports["recent_offsets"],
        ops.constant(np.int32(-1)),
        ports["recent_weights"],
    )
    tags = ops.embedding_bag_offsets_sum(
        weights(TAGS, DIM, scale=0.5),
        ports["tags"],
        ports["tag_offsets"],
        ops.constant(np.int64(3)),
        ports["tag_weights"],
    )
    fields = [
        rows(weights(users, DIM, scale=0.6), ids.user),
        mean_history(table, ids.history, history_offsets),
        recent,
        tags,
        situation(weights, ports["context"]),
        homeland(weights, ids.country),
    ]
    wish = ops.unsqueeze(taste(weights, fields), np.int32(2))
    scores = ops.squeeze(ops.matmul(rows(table, ids.candidates), wish, False, False), np.int32(2))
    scores = ops.add(scores, rows(weights(items, scale=0.3), ids.candidates))
    scores = ops.add(scores, interest(weights, items, ids, history_offsets))
    scores = without_seen(adjusted(scores, ids, known_items, ports), ports["seen"])
    return Scored(scores, ops.softmax(scores, -1), ops.sigmoid(ops.subtract(scores, np.float32(1))))


def picked(ids: ov.Output | ov.Node, slots: ov.Output | ov.Node) -> ov.Node:
    """Return the ids [B, n] of the candidates in the slots [B, n]."""
    return ops.gather_elements(ids, slots, 1)


def best(ids: ov.Output, probabilities: ov.Node, count: int) -> tuple[ov.Node, ov.Output]:
    """Return the ids and the probabilities [B, count] of the most likely candidates."""
    top = ops.topk(probabilities, np.int64(count), -1, "max", "value", "i64")
    return picked(ids, top.output(1)), top.output(0)


def inputs(rng: np.random.Generator) -> making.Arrays:
    """Return the inputs for five users. The third has no history, the fourth no recent items, and the second no tags."""
    shown = np.array([[0, 3, 3, 7], [1, 1, 1, 2], [9, 8, 7, 6], [5, 4, 5, 0], [2, 10, 11, 10]], np.int32)
    recent_weights = rng.integers(1, 9, RECENT) / 8
    recent_weights[20:] = 0
    tag_weights = rng.integers(1, 5, PROFILE_TAGS) / 4
    tag_weights[14:] = 0
    return {
        "history_offsets": np.array([0, 4, 9, 9, 11], np.int64),
        "recent_offsets": np.array([0, 7, 12, 15, 15], np.int32),
        "recent_weights": recent_weights.astype(np.float32),
        "tags": rng.integers(0, TAGS, PROFILE_TAGS).astype(np.int64),
        "tag_offsets": np.array([0, 3, 3, 7, 10], np.int64),
        "tag_weights": tag_weights.astype(np.float32),
        "context": np.concatenate(
            [rng.integers(0, 24, (5, 1)), rng.integers(18, 80, (5, 1)), rng.normal(size=(5, 4))], axis=1
        ).astype(np.float32),
        "shown": shown,
        "ratings": (rng.integers(2, 11, shown.shape) / 2).astype(np.float32),
        "seen": np.array([[4, -1], [0, 6], [-1, -1], [11, 2], [7, 7]], np.int64),
    }


def check(outputs: making.Arrays) -> None:
    """Check that float32 rounding cannot change the best candidates."""
    ordered = -np.sort(-outputs["scores"], axis=1)
    count = outputs["best_items"].shape[1]
    if (ordered[:, :count] - ordered[:, 1 : count + 1]).min() < 1e-3:
        raise ValueError("two of the best candidates are too close together")
