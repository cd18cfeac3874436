"""StringToHashBucket: buckets of strings by their hash."""

from __future__ import annotations

from typing import Annotated

from onnx_specops.domain import Limits, operator
from onnx_specops.hashing import Hasher, encode, hash_buckets


@operator(
    inputs={"strings": "tensor(string)"},
    outputs={"buckets": "tensor(int64)"},
    no_body="standard ONNX cannot hash strings",
)
def StringToHashBucket(
    strings,
    *,
    num_buckets: Annotated[int, Limits(1)],
    hasher: Hasher = "fasthash",
    hasher_key_0: int = 0,
    hasher_key_1: int = 0,
):
    """Computes the hash bucket of each string: ``hash(string) % num_buckets``, with an unsigned hash.

    Inputs:
        strings: any shape; hashed as UTF-8 bytes.

    Output: int64 in ``[0, num_buckets)``, of the shape of ``strings``.

    Attributes:
        num_buckets: the number of buckets.
        hasher: ``fasthash`` (FarmHash Fingerprint64), ``legacy`` (TensorFlow's Hash64) or ``stronghash`` (SipHash-2-4).
        hasher_key_0, hasher_key_1: the key of ``stronghash``, each word in two's complement.

    Source: TensorFlow, ``tf.strings.to_hash_bucket_fast``, ``to_hash_bucket`` and ``to_hash_bucket_strong``.
    """
    buckets = hash_buckets(encode(strings.reshape(-1)), num_buckets, hasher, (hasher_key_0, hasher_key_1))
    return buckets.reshape(strings.shape)


@StringToHashBucket.infer_shapes
def _(node):
    return [node.shape(0)]
