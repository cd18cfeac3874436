"""VocabularyTable: maps keys to the ids of a vocabulary, and unknown keys to a default or to hash buckets."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from onnx_specops.domain import Limits, NoBodyError, operator
from onnx_specops.hashing import Hasher, encode, hash_buckets, quoted


@operator(
    inputs={"keys": "T", "vocabulary": "T"},
    outputs={"ids": "tensor(int64)"},
    types={"T": ("string", "int64", "int32")},
    no_body="standard ONNX cannot hash strings, which num_oov_buckets > 1 requires",
)
def VocabularyTable(
    keys,
    vocabulary,
    *,
    num_oov_buckets: Annotated[int, Limits(0)] = 0,
    default_value: int = -1,
    hasher: Hasher = "fasthash",
    hasher_key_0: int = 0,
    hasher_key_1: int = 0,
):
    """Looks up the id of each key, which is its position in the vocabulary, or another value for unknown keys.

    The id of an unknown key is ``default_value`` if ``num_oov_buckets`` is 0, and otherwise ``len(vocabulary) +
    hash(key) % num_oov_buckets``. Strings are compared and hashed as UTF-8 bytes; integers are hashed as decimal text.
    If the vocabulary is a constant, kernels build their table once, when the session is created.

    Inputs:
        keys: any shape; strings or integers.
        vocabulary: ``[n]``, n > 0, without duplicates; the type of the keys.

    Output: int64, of the shape of ``keys``.

    Attributes:
        num_oov_buckets: the number of ids for unknown keys.
        default_value: the id of all unknown keys if there are no buckets.
        hasher: ``fasthash`` (FarmHash Fingerprint64), ``legacy`` (TensorFlow's Hash64) or ``stronghash`` (SipHash-2-4).
        hasher_key_0, hasher_key_1: the key of ``stronghash``, each word in two's complement.

    If the vocabulary has duplicates, the body uses the first one, and the kernels report an error.

    Source: TensorFlow, ``tf.lookup.StaticVocabularyTable`` and ``tf.lookup.StaticHashTable``;
    ``index_table_from_tensor`` for the other hashers.
    """
    name = "VocabularyTable"
    if vocabulary.ndim != 1:
        raise ValueError(f"{name}: vocabulary has the shape {list(vocabulary.shape)}; expected one dimension")
    count = len(vocabulary)
    if count == 0:
        raise ValueError(f"{name}: vocabulary: no entries")
    if num_oov_buckets > np.iinfo(np.int64).max - count:
        raise ValueError(
            f"{name}: num_oov_buckets: {num_oov_buckets} and the vocabulary's {count} entries exceed the range of ids"
        )
    texts = vocabulary.dtype.kind not in "iu"
    entries = encode(vocabulary) if texts else vocabulary.tolist()
    table: dict[object, int] = {}
    for position, entry in enumerate(entries):
        if (first := table.setdefault(entry, position)) != position:
            shown = quoted(entry) if texts else entry
            raise ValueError(f"{name}: vocabulary[{position}] = {shown} repeats vocabulary[{first}]")
    flat = encode(keys.reshape(-1)) if texts else keys.reshape(-1).tolist()
    ids = np.fromiter((table.get(key, -1) for key in flat), np.int64, len(flat))
    missed = np.flatnonzero(ids < 0)
    ids[missed] = default_value
    if num_oov_buckets:
        unknown = [flat[row] if texts else str(flat[row]).encode() for row in missed.tolist()]
        ids[missed] = count + hash_buckets(unknown, num_oov_buckets, hasher, (hasher_key_0, hasher_key_1))
    return ids.reshape(keys.shape)


@VocabularyTable.infer_shapes
def _(node):
    return [node.shape(0)]


@VocabularyTable.body
def _(op, keys, vocabulary, *, num_oov_buckets, default_value, hasher, hasher_key_0, hasher_key_1):
    if num_oov_buckets > 1:
        raise NoBodyError(VocabularyTable.no_body)
    # Unique over the vocabulary followed by the keys: the first occurrence of a known key is its entry.
    together = op.Concat(vocabulary, op.Reshape(keys, [-1]), axis=0)
    _, first, group = op.Unique(together, outputs=3, sorted=0)
    count = op.Shape(vocabulary)
    places = op.Gather(first, op.Slice(group, count, op.Shape(together), [0]))
    otherwise = count if num_oov_buckets else np.array([default_value], np.int64)
    return op.Reshape(op.Where(op.Less(places, count), places, otherwise), op.Shape(keys), allowzero=1)
