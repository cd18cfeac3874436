"""Create the example with TensorFlow's vocabulary tables, converted by OpenVINO: string and integer keys, buckets and
defaults.

Run `python -m models.vocabulary_table.make` in the root of the checkout. This requires tensorflow and openvino-tokenizers.
The second oracle is TensorFlow.

OpenVINO has no layer for a table. String keys become StringTensorUnpack, VocabEncoder and StringToHashBucket. Integer keys
are compared with the complete vocabulary (Equal, ReduceLogicalOr, ReduceMax, Gather), and NumericToString formats them as
decimal numbers before they are hashed. OpenVINO does not convert the legacy and strong hashers.
"""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import openvino as ov
import openvino_tokenizers  # noqa: F401  (adds the layers of strings to OpenVINO)
import tensorflow as tf

from models import making

VOCABULARY = ["emerson", "lake", "palmer"]
SIGNATURE = {
    "keys": tf.TensorSpec([None], tf.string, "keys"),
    "pages": tf.TensorSpec([None, None], tf.string, "pages"),
    "numbers": tf.TensorSpec([None], tf.int64, "numbers"),
    "numbers_i32": tf.TensorSpec([None, None], tf.int32, "numbers_i32"),
}
INPUTS = {
    "keys": np.array(["emerson", "lake", "and", "palmer", "dad", "mom", "hello"]),
    "pages": np.array(
        [
            ["naïve", "Lake", "lake", ""],
            [
                "日本語",
                "a text that is longer than sixty-four bytes, for which the hash takes another way",
                "x",
                "😀",
            ],
        ]
    ),
    "numbers": np.array([10, 7, 30, -5, 1234567, 20, 0], np.int64),
    "numbers_i32": np.array([[3, 1], [4, 1], [-5, 9]], np.int32),
}


def initializer(keys: tf.Tensor, values: tf.Tensor) -> tf.lookup.KeyValueTensorInitializer:
    return tf.lookup.KeyValueTensorInitializer(keys, values)


class Tables(tf.Module):
    """The tables that OpenVINO converts."""

    def __init__(self) -> None:
        ids = tf.range(3, dtype=tf.int64)
        numbers = tf.constant([10, 20, 30], tf.int64)
        words = initializer(tf.constant(VOCABULARY), ids)
        pages = initializer(tf.constant(["", "naïve", "x", "lake", "日本語"]), tf.range(5, dtype=tf.int64))
        self.words = tf.lookup.StaticVocabularyTable(words, 10)
        self.pages = tf.lookup.StaticVocabularyTable(pages, 1000)
        self.known = tf.lookup.StaticHashTable(words, -1)
        self.years = tf.lookup.StaticHashTable(
            initializer(tf.constant(VOCABULARY), tf.constant([1970, 1944, 1950], tf.int64)), 42
        )
        self.numbers = tf.lookup.StaticVocabularyTable(initializer(numbers, ids), 5)
        self.known_numbers = tf.lookup.StaticHashTable(initializer(numbers, ids), -1)
        self.squares = tf.lookup.StaticHashTable(
            initializer(tf.constant([1, 3, 4], tf.int32), tf.constant([1, 9, 16], tf.int32)), -7
        )

    @tf.function(input_signature=list(SIGNATURE.values()))
    def look_up(self, keys: tf.Tensor, pages: tf.Tensor, numbers: tf.Tensor, numbers_i32: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "ids": self.words.lookup(keys),
            "page_ids": self.pages.lookup(pages),
            "known_ids": self.known.lookup(keys),
            "years": self.years.lookup(keys),
            "buckets": tf.strings.to_hash_bucket_fast(pages, 1 << 20),
            "number_ids": self.numbers.lookup(numbers),
            "known_number_ids": self.known_numbers.lookup(numbers),
            "squares": self.squares.lookup(numbers_i32),
        }


def main() -> None:
    tables = Tables()
    want = tables.look_up(**{name: tf.constant(value) for name, value in INPUTS.items()})
    want = {name: np.asarray(value) for name, value in want.items()}
    np.testing.assert_array_equal(want["ids"], [0, 1, 10, 2, 9, 3, 9])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "vocabulary_table"
        tf.saved_model.save(tables, str(folder), signatures=tables.look_up.get_concrete_function())
        converted = ov.convert_model(folder)
    ports = {port.get_node().get_friendly_name(): port.get_node() for port in converted.inputs}
    for name in SIGNATURE:
        ports[name].output(0).set_names({name})
    outputs = {port.any_name: port.get_node().input_value(0) for port in converted.outputs}
    graph = making.model("vocabulary_table", [ports[name] for name in SIGNATURE], {name: outputs[name] for name in want})
    making.make(__file__, graph, INPUTS, second_opinion=want)


if __name__ == "__main__":
    main()
