"""Create the recommender with string ids: vocabularies with buckets, bags, a dense tower, and sampling.

Run `python -m models.recommender.make` in the root of the checkout. This requires tensorflow and openvino-tokenizers. The
vocabularies are TensorFlow tables that OpenVINO converts. The rest of the graph is built with OpenVINO's operations.
"""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import openvino as ov
import openvino_tokenizers  # noqa: F401  (adds the layers of strings to OpenVINO)
import tensorflow as tf
from openvino import opset13 as ops

from models import making
from models.recommender import network

USERS = [f"user-{number:04}" for number in range(0, 900, 3)]
ITEMS = [f"film/{number:05}" for number in range(0, 5000, 10)]
COUNTRIES = ["AT", "BE", "CH", "CZ", "DE", "DK", "FR", "IT", "LU", "NL", "PL", "SE"]
USER_BUCKETS = 20
ITEM_BUCKETS = 12
SIGNATURE = {
    "user": tf.TensorSpec([None], tf.string, "user"),
    "country": tf.TensorSpec([None], tf.string, "country"),
    "history": tf.TensorSpec([None], tf.string, "history"),
    "recent": tf.TensorSpec([network.RECENT], tf.string, "recent"),
    "candidates": tf.TensorSpec([None, None], tf.string, "candidates"),
}

# num_samples, convert_type, with_replacement, log_probs, global_seed, op_seed
SLATE = (3, "i64", False, False, 2019, 11)
EXPLORED = (6, "i32", True, True, 2019, 28)


def initializer(words: list[str]) -> tf.lookup.KeyValueTensorInitializer:
    return tf.lookup.KeyValueTensorInitializer(tf.constant(words), tf.range(len(words), dtype=tf.int64))


class Vocabularies(tf.Module):
    """Maps strings to rows of the tables. Unknown users and items share buckets, and unknown countries are -1."""

    def __init__(self) -> None:
        self.users = tf.lookup.StaticVocabularyTable(initializer(USERS), USER_BUCKETS)
        self.items = tf.lookup.StaticVocabularyTable(initializer(ITEMS), ITEM_BUCKETS)
        self.countries = tf.lookup.StaticHashTable(initializer(COUNTRIES), -1)

    @tf.function(input_signature=list(SIGNATURE.values()))
    def look_up(
        self,
        user: tf.Tensor,
        country: tf.Tensor,
        history: tf.Tensor,
        recent: tf.Tensor,
        candidates: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        return {
            "user_ids": self.users.lookup(user),
            "country_ids": self.countries.lookup(country),
            "history_ids": self.items.lookup(history),
            "recent_ids": self.items.lookup(recent),
            "candidates_ids": self.items.lookup(candidates),
        }


def inputs() -> making.Arrays:
    rng = np.random.default_rng(7)

    def films(*shape: int) -> np.ndarray:
        """Return names of films, about a fifth of which are not in a vocabulary."""
        numbers = rng.choice(500, shape, replace=False) * 10 + (rng.random(shape) < 0.2)
        return np.vectorize("film/{:05}".format)(numbers)

    return {
        "user": np.array(["user-0003", "user-0896", "nobody", "user-0897", "użytkownik"]),
        "country": np.array(["CH", "DE", "", "PL", "XX"]),
        "history": films(15),
        "recent": films(network.RECENT),
        "candidates": films(5, 12),
    } | network.inputs(rng)


def main() -> None:
    values = inputs()
    tables = Vocabularies()
    looked_up = tables.look_up(**{name: tf.constant(values[name]) for name in SIGNATURE})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "vocabularies"
        tf.saved_model.save(tables, str(folder), signatures=tables.look_up.get_concrete_function())
        converted = ov.convert_model(folder)
    strings = {port.get_node().get_friendly_name(): port.get_node() for port in converted.inputs}
    found = {port.any_name: port.get_node().input_value(0) for port in converted.outputs}
    ids = network.Ids(**{name: found[f"{name}_ids"] for name in SIGNATURE})
    for name in SIGNATURE:
        strings[name].output(0).set_names({name})
        found[f"{name}_ids"].set_names(set())

    ports = {name: making.parameter(name, *port) for name, port in network.PORTS.items()}
    users, items = len(USERS) + USER_BUCKETS, len(ITEMS) + ITEM_BUCKETS
    result = network.scored(ids, ports, users, items, len(ITEMS))
    best_items, best_probabilities = network.best(ids.candidates, result.probabilities, 4)
    slate = ops.multinomial(result.probabilities, np.int32(SLATE[0]), *SLATE[1:])
    explored = ops.multinomial(result.scores, np.array([EXPLORED[0]], np.int64), *EXPLORED[1:])
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
        making.assert_draws_are_stable(making.sampler(*SLATE), got["probabilities"])
        making.assert_draws_are_stable(making.sampler(*EXPLORED), got["probabilities"])

    graph = making.model("recommender", [*(strings[name] for name in SIGNATURE), *ports.values()], outputs)
    want = {
        "user_ids": np.asarray(looked_up["user_ids"]),
        "candidate_ids": np.asarray(looked_up["candidates_ids"]),
    }
    making.make(__file__, graph, values, second_opinion=want, check=check)


if __name__ == "__main__":
    main()
