"""onnx_specops.hashing and StringToHashBucket against TensorFlow's hashes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from onnx_specops.hashing import (
    encode,
    fingerprint64,
    hash_buckets,
    hash_strings,
    legacy_hash64,
    quoted,
    siphash24,
)
from tests.data import hashed_text, tensorflow
from tests.onnx_specops.ops.one_node import KERNELS, RAISED, run, strings

TENSORFLOW = tensorflow()
CASES = [pytest.param(case, id=f"{case['hasher']}-{case['key']}-{case['num_buckets']}") for case in TENSORFLOW["hashes"]]
WORDS = [
    pytest.param(case, id=f"{case['hasher']}-{case['key']}-{case['num_buckets']}") for case in TENSORFLOW["words"]["buckets"]
]


def attributes(case):
    return {
        "num_buckets": case["num_buckets"],
        "hasher": case["hasher"],
        "hasher_key_0": case["key"][0],
        "hasher_key_1": case["key"][1],
    }


@pytest.mark.parametrize("case", CASES)
def test_hash_buckets(case):
    texts = [hashed_text(length) for length in TENSORFLOW["lengths"]]
    assert hash_buckets(texts, case["num_buckets"], case["hasher"], tuple(case["key"])).tolist() == case["buckets"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", ["numpy", "native"])
def test_string_to_hash_bucket_of_any_bytes(form, case):
    # Python strings cannot pass invalid UTF-8 to a session; a constant of the model can.
    texts = strings([hashed_text(length) for length in TENSORFLOW["lengths"]])
    buckets = run(form, "StringToHashBucket", {"strings": texts}, attributes(case), constants=["strings"])
    assert buckets.tolist() == case["buckets"]


@pytest.mark.parametrize("case", WORDS)
@pytest.mark.parametrize("form", KERNELS)
def test_string_to_hash_bucket(form, case):
    texts = strings(TENSORFLOW["words"]["texts"])[:, None]
    buckets = run(form, "StringToHashBucket", {"strings": texts}, attributes(case))
    assert buckets.dtype == np.int64
    assert buckets.shape == texts.shape
    assert buckets.reshape(-1).tolist() == case["buckets"]


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_string_to_hash_bucket_shapes(form, shape):
    buckets = run(form, "StringToHashBucket", {"strings": np.full(shape, "and", object)}, {"num_buckets": 10})
    assert buckets.shape == shape
    assert (buckets == 7).all()


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize(
    "bad, message",
    [
        ({"num_buckets": 0}, "StringToHashBucket: attribute num_buckets = 0 is less than 1"),
        ({"num_buckets": 5, "hasher": "md5"}, "StringToHashBucket: attribute hasher = 'md5' is not one of fasthash, legacy"),
    ],
)
def test_string_to_hash_bucket_errors(form, bad, message):
    with pytest.raises(RAISED[form], match=re.escape(message)):
        run(form, "StringToHashBucket", {"strings": strings(["a"])}, bad)


def test_single_hashes_agree_with_many():
    texts = [b"", b"a", b"hello", b"x" * 100, b"hello"]
    assert [fingerprint64(text) for text in texts] == hash_strings(texts).tolist()
    assert [legacy_hash64(text) for text in texts] == hash_strings(texts, "legacy").tolist()
    assert [siphash24(text, (-1, 5)) for text in texts] == hash_strings(texts, "stronghash", (2**64 - 1, 5)).tolist()
    assert hash_strings([]).shape == (0,)


def test_encode():
    assert encode(["é", b"\xff", "\udcff", np.str_("a\0b"), ""]) == [b"\xc3\xa9", b"\xff", b"\xff", b"a\0b", b""]


def test_quoted():
    assert quoted(b'a"\\\n\xff') == '"a\\"\\\\\\x0a\\xff"'
    assert quoted(b"x" * 61) == '"' + "x" * 60 + '..."'
