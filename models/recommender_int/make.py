"""Create the recommender with integer ids and without hashing, which any ONNX runtime can run without the plugin.

Run `python -m models.recommender_int.make` in the root of the checkout. This requires tensorflow. User ids are rows of the
table. Items and countries are looked up in TensorFlow's integer tables, which OpenVINO converts. Unknown items share one
row. Multinomial samples from distributions in which one class has the probability 1, so the samples do not depend on random
numbers.
"""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import openvino as ov
import tensorflow as tf
from openvino import opset13 as ops

from models import making
from models.recommender import network

USERS = 300
ITEMS = list(range(10_000, 11_500, 3))
# Telephone codes.
COUNTRIES = [43, 32, 41, 420, 49, 45, 33, 39, 352, 31, 48, 46]
SIGNATURE = {
    "country": tf.TensorSpec([None], tf.int64, "country"),
    "history": tf.TensorSpec([None], tf.int64, "history"),
    "recent": tf.TensorSpec([network.RECENT], tf.int64, "recent"),
    "candidates": tf.TensorSpec([None, None], tf.int64, "candidates"),
}


def initializer(keys: list[int]) -> tf.lookup.KeyValueTensorInitializer:
    return tf.lookup.KeyValueTensorInitializer(tf.constant(keys, tf.int64), tf.range(len(keys), dtype=tf.int64))


class Tables(tf.Module):
    """Maps integers to rows. Unknown items are the row after the last one, and unknown countries are -1."""

    def __init__(self) -> None:
        self.items = tf.lookup.StaticHashTable(initializer(ITEMS), len(ITEMS))
        self.countries = tf.lookup.StaticHashTable(initializer(COUNTRIES), -1)

    @tf.function(input_signature=list(SIGNATURE.values()))
    def look_up(
        self, country: tf.Tensor, history: tf.Tensor, recent: tf.Tensor, candidates: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        return {
            "country_ids": self.countries.lookup(country),
            "history_ids": self.items.lookup(history),
            "recent_ids": self.items.lookup(recent),
            "candidates_ids": self.items.lookup(candidates),
        }


def inputs() -> making.Arrays:
    rng = np.random.default_rng(7)

    def items(*shape: int, unknown: float = 0.2) -> np.ndarray:
        """Return ids of items, about a fifth of which are not in a table."""
        return rng.choice(ITEMS, shape, replace=False) + (rng.random(shape) < unknown)

    # All unknown items have one score, so no user gets two of them to choose from.
    candidates = items(5, 12, unknown=0)
    candidates[[0, 3, 4], [9, 2, 5]] += 1
    return {
        "user": np.array([1, 299, 0, 599, 123456], np.int64),
        "country": np.array([41, 49, 0, 48, 999], np.int64),
        "history": items(15),
        "recent": items(network.RECENT),
        "candidates": candidates,
    } | network.inputs(rng)


def main() -> None:
    values = inputs()
    tables = Tables()
    looked_up = tables.look_up(**{name: tf.constant(values[name]) for name in SIGNATURE})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "tables"
        tf.saved_model.save(tables, str(folder), signatures=tables.look_up.get_concrete_function())
        converted = ov.convert_model(folder)
    numbers = {port.get_node().get_friendly_name(): port.get_node() for port in converted.inputs}
    found = {port.any_name: port.get_node().input_value(0) for port in converted.outputs}
    for name in SIGNATURE:
        numbers[name].output(0).set_names({name})
        found[f"{name}_ids"].set_names(set())
    user = making.parameter("user", ov.Type.i64, [-1])
    # Users that are not in the table share its rows.
    user_row = ops.floor_mod(user, np.int64(USERS))
    ids = network.Ids(user_row.output(0), **{name: found[f"{name}_ids"] for name in SIGNATURE})

    ports = {name: making.parameter(name, *port) for name, port in network.PORTS.items()}
    result = network.scored(ids, ports, USERS, len(ITEMS) + 1, len(ITEMS))
    best_items, best_probabilities = network.best(ids.candidates, result.probabilities, 4)
    highest = ops.reduce_max(result.probabilities, np.array([-1]), True)
    is_best = ops.equal(result.probabilities, highest)
    certain = ops.convert(is_best, "f32")
    slate = ops.multinomial(certain, np.int32(1), "i64", False, False, 2019, 11)
    logarithm = ops.select(is_best, np.float32(0), np.float32(-1e9))
    explored = ops.multinomial(logarithm, np.array([6], np.int64), "i32", True, True, 2019, 28)
    outputs = {
        "user_ids": ids.user,
        "candidate_ids": ids.candidates,
        "scores": result.scores,
        "probabilities": result.probabilities,
        "clicks": result.clicks,
        "best_items": best_items,
        "best_probabilities": best_probabilities,
        "slate": network.picked(ids.candidates, slate),
        "explored": explored,
    }

    def check(got: making.Arrays) -> None:
        network.check(got)
        np.testing.assert_array_equal(got["slate"], got["best_items"][:, :1])
        best = np.argmax(got["probabilities"], axis=1, keepdims=True)
        np.testing.assert_array_equal(got["explored"], np.repeat(best, 6, axis=1))

    parameters = [user, *(numbers[name] for name in SIGNATURE), *ports.values()]
    want = {"user_ids": values["user"] % USERS, "candidate_ids": np.asarray(looked_up["candidates_ids"])}
    making.make(
        __file__,
        making.model("recommender_int", parameters, outputs),
        values,
        second_opinion=want,
        check=check,
    )


if __name__ == "__main__":
    main()
