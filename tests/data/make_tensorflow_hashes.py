"""Write tensorflow_hashes.json: the results of TensorFlow's string hashes and lookup tables.

Run it where TensorFlow is installed: ``python -m tests.data.make_tensorflow_hashes``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import lookup_ops

from tests.data import hashed_text

OUTPUT = Path(__file__).with_name("tensorflow_hashes.json")
LENGTHS = [*range(201), 255, 256, 257, 511, 512, 513, 1000]
WIDEST = 2**63 - 1
KEYS = [(0, 0), (1, 2), (-1, 5), (81985529216486895, -81985529216486896), (-(2**63), 2**63 - 1)]
HASHERS: list[tuple[str, tuple[int, int]]] = [("fasthash", (0, 0)), ("legacy", (0, 0))]
HASHERS += [("stronghash", key) for key in KEYS]

SEED_KEYS = ["emerson", "lake", "and", "palmer", "dad", "mom", "hello"]
SEED_VOCABULARY = ["emerson", "lake", "palmer"]
ODD_KEYS = ["", "a", "é", "e\u0301", "日本語", "🦆", " ", "A", "a" * 300, "nothing like it"]
ODD_VOCABULARY = ["é", "", "日本語", "a" * 300]
NUL_KEYS = ["", "a", "a\0", "a\0b", "\0", "\0\0"]
NUL_VOCABULARY = ["a\0b", "a", "\0"]
INTEGERS = [0, 1, -1, 5, -5, 7, 10, -10, 2**31 - 1, -(2**31)]
WIDE_INTEGERS = [*INTEGERS, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]


def buckets(texts: Any, count: int, hasher: str, key: tuple[int, int]) -> list[int]:
    if hasher == "fasthash":
        return tf.strings.to_hash_bucket_fast(texts, count).numpy().tolist()
    if hasher == "legacy":
        return tf.strings.to_hash_bucket(texts, count).numpy().tolist()
    return tf.strings.to_hash_bucket_strong(texts, count, list(key)).numpy().tolist()


def initializer(vocabulary: list[Any]) -> tf.lookup.KeyValueTensorInitializer:
    keys = tf.constant(vocabulary, tf.int64 if vocabulary and isinstance(vocabulary[0], int) else tf.string)
    return tf.lookup.KeyValueTensorInitializer(keys, tf.range(len(vocabulary), dtype=tf.int64))


def lookup(
    keys: list[Any],
    vocabulary: list[Any],
    count: int,
    default: int,
    hasher: str,
    key: tuple[int, int],
    type_: str,
) -> list[int]:
    """Return the ids of TensorFlow's table for keys of ``type_``."""
    if count == 0:
        table = tf.lookup.StaticHashTable(initializer(vocabulary), default)
        return table.lookup(tf.constant(keys, tf.int64 if type_ == "int32" else type_)).numpy().tolist()
    if hasher == "fasthash":
        dtype = tf.dtypes.as_dtype(type_)
        table = tf.lookup.StaticVocabularyTable(initializer(vocabulary), count, lookup_key_dtype=dtype)
        return table.lookup(tf.constant(keys, dtype)).numpy().tolist()
    spec = lookup_ops.StrongHashSpec(list(key))
    if hasher == "legacy":
        spec = lookup_ops.HasherSpec("legacy", None)
    inner = lookup_ops.StaticHashTableV1(initializer(vocabulary), -1)
    table = lookup_ops.IdTableWithHashBuckets(inner, count, hasher_spec=spec, key_dtype=tf.dtypes.as_dtype(type_))
    return table.lookup(tf.constant(keys, tf.dtypes.as_dtype(type_))).numpy().tolist()


def error(call: Callable[[], Any]) -> str:
    try:
        call()
    except (tf.errors.OpError, ValueError) as raised:
        return type(raised).__name__
    return ""


def tables() -> list[dict[str, Any]]:
    cases = []
    for keys, vocabulary, type_ in [
        (SEED_KEYS, SEED_VOCABULARY, "string"),
        (ODD_KEYS, ODD_VOCABULARY, "string"),
        (NUL_KEYS, NUL_VOCABULARY, "string"),
        (WIDE_INTEGERS, [5, -5, 2**53 + 1, -(2**63)], "int64"),
        (INTEGERS, [5, -5, 0], "int32"),
    ]:
        for count in (0, 1, 10, 1000, 2**40):
            for hasher, key in HASHERS[:4] if count else HASHERS[:1]:
                for default in (-1, 42) if count == 0 else (-1,):
                    ids = lookup(keys, vocabulary, count, default, hasher, key, type_)
                    cases.append(
                        {
                            "type": type_,
                            "keys": keys,
                            "vocabulary": vocabulary,
                            "num_oov_buckets": count,
                            "default_value": default,
                            "hasher": hasher,
                            "hasher_key": key,
                            "ids": ids,
                        }
                    )
    return cases


def main() -> None:
    texts = [hashed_text(length) for length in LENGTHS]
    result = {
        "tensorflow": tf.__version__,
        "lengths": LENGTHS,
        "hashes": [
            {
                "hasher": hasher,
                "key": key,
                "num_buckets": count,
                "buckets": buckets(texts, count, hasher, key),
            }
            for count in (WIDEST, 10)
            for hasher, key in HASHERS
        ],
        "words": {
            "texts": SEED_KEYS + ODD_KEYS,
            "buckets": [
                {"hasher": hasher, "key": key, "num_buckets": count}
                | {"buckets": buckets(SEED_KEYS + ODD_KEYS, count, hasher, key)}
                for count in (1, 10, WIDEST)
                for hasher, key in HASHERS
            ],
        },
        "tables": tables(),
        "errors": {
            "duplicate entry": error(lambda: lookup(["a"], ["a", "b", "a"], 1, -1, "fasthash", (0, 0), "string")),
            "empty vocabulary": error(lambda: lookup(["a"], [], 1, -1, "fasthash", (0, 0), "string")),
            "no buckets": error(lambda: buckets(["a"], 0, "fasthash", (0, 0))),
        },
    }
    OUTPUT.write_text(json.dumps(result, separators=(",", ":")).replace("},{", "},\n{") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
