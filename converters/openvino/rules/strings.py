"""Strings: packing and unpacking, vocabularies, hash buckets.

OpenVINO unpacks a tensor of strings into begins, ends and symbols before its string operations. ONNX's operators take
strings. `strings_of` recovers the strings, so that the unpacking is removed if nothing else needs it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._texts import tokens_of
from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN


def strings_of(op: Builder, begins: Value, ends: Value, symbols: Value) -> Value:
    """Return the strings of three values: the strings that were unpacked, a constant, or new ones."""
    if begins.constant is not None and ends.constant is not None and symbols.constant is not None:
        tokens = np.empty(begins.constant.size, object)
        tokens[:] = tokens_of((begins, ends, symbols), "strings")
        return op.const(tokens.reshape(begins.constant.shape), ir.DataType.STRING)
    producer = begins.producer()
    if (
        producer is not None
        and (producer.domain, producer.op_type) == (DOMAIN, "StringTensorUnpack")
        and all(value is output for value, output in zip((begins, ends, symbols), producer.outputs, strict=True))
        and isinstance(producer.inputs[0], Value)
    ):
        return producer.inputs[0]
    return op.specops.StringTensorPack(begins, ends, symbols)


@rule(
    "StringTensorUnpack",
    since="opset15",
    departs=[Departure(where="no strings", cpu="fails", specification="gives empty outputs", follows="specification")],
)
def string_tensor_unpack(op: Builder, data: Value):
    """StringTensorUnpack-15."""
    return op.specops.StringTensorUnpack(data)


@rule("StringTensorUnpack", since="extension")
def string_tensor_unpack_extension(op: Builder, data: Value, *, mode: Literal["begins_ends"] = "begins_ends"):
    """StringTensorUnpack of openvino_tokenizers, an older version that also accepts bytes: the number of strings, their ends
    and symbols.
    """
    if data.dtype != ir.DataType.UINT8:
        return op.specops.StringTensorUnpack(data)
    if data.constant is None:
        raise Unsupported("it unpacks bytes that are computed at run time", "convert a model whose inputs are strings")
    packed = data.constant.tobytes()
    count = int(np.frombuffer(packed, "<i4", 1)[0]) if len(packed) >= 8 else -1
    if count < 0 or len(packed) < 8 + 4 * count:
        raise Malformed("its bytes are not packed strings")
    edges, symbols = np.frombuffer(packed, "<i4", count + 1, 4), np.frombuffer(packed, np.uint8, offset=8 + 4 * count)
    if edges[0] < 0 or edges[-1] > len(symbols) or (np.diff(edges) < 0).any():
        raise Malformed("its bytes are not packed strings")
    return op.const(edges[:-1].astype(np.int32)), op.const(edges[1:].astype(np.int32)), op.const(symbols.copy())


@rule(
    "StringTensorPack",
    since="opset15",
    departs=[Departure(where="constants only", cpu="fails", specification="packs them", follows="specification")],
)
@rule("StringTensorPack", since="extension")
def string_tensor_pack(
    op: Builder, begins: Value, ends: Value, symbols: Value, *, mode: Literal["begins_ends"] = "begins_ends"
):
    """StringTensorPack-15. The older version of openvino_tokenizers has the attribute ``mode``."""
    return strings_of(op, begins, ends, symbols)


@rule(
    "NumericToString",
    since="openvino_tokenizers",
    departs=[
        Departure(
            where="u32 as text", cpu="treats them as i32", reference="writes them as unsigned integers", follows="reference"
        ),
        Departure(where="booleans as text", cpu="writes 1 and 0", reference="writes true and false", follows="cpu"),
    ],
)
def numeric_to_string(op: Builder, data: Value):
    """NumericToString of openvino_tokenizers: numbers as text, with six digits for floats."""
    if data.dtype == ir.DataType.BOOL:
        data = op.Cast(data, to=ir.DataType.INT32)
    if data.dtype is not None and data.dtype.is_floating_point():
        is_exact = data.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
        return op.specops.NumericToString(data if is_exact else op.Cast(data, to=ir.DataType.FLOAT))
    return op.Cast(data, to=ir.DataType.STRING)


@rule("ContribStringJoin", since="extension")
def contrib_string_join(op: Builder, begins: Value, ends: Value, symbols: Value, separator: Value, axis: Value):
    """ContribStringJoin of openvino_tokenizers: strings joined along an axis."""
    return op.specops.StringJoin(begins, ends, symbols, op.Reshape(separator, [-1]), op.Cast(axis, to=ir.DataType.INT64))


@rule("ContribStringSplit", since="extension")
def contrib_string_split(op: Builder, begins: Value, ends: Value, symbols: Value, delimiter: Value, skip_empty: Value):
    """ContribStringSplit of openvino_tokenizers: strings split at a delimiter, as a sparse tensor."""
    skips = op.Cast(skip_empty, to=ir.DataType.BOOL)
    return op.specops.StringSplit(begins, ends, symbols, op.Reshape(delimiter, [-1]), skips)


@rule("StringToHashBucket", since="extension")
def string_to_hash_bucket(op: Builder, begins: Value, ends: Value, symbols: Value, *, num_buckets: int):
    """StringToHashBucket of openvino_tokenizers: FarmHash Fingerprint64 modulo ``num_buckets``."""
    if num_buckets < 1:
        raise Malformed(f"num_buckets={num_buckets} is less than 1")
    return op.specops.StringToHashBucket(strings_of(op, begins, ends, symbols), num_buckets=num_buckets)


@rule("VocabEncoder", since="extension")
def vocab_encoder(
    op: Builder,
    begins: Value,
    ends: Value,
    symbols: Value,
    vocab_begins: Value,
    vocab_ends: Value,
    vocab_symbols: Value,
    values: Value,
    default: Value,
):
    """VocabEncoder of openvino_tokenizers: the value of the key's first occurrence in the vocabulary, or the default."""
    keys = strings_of(op, begins, ends, symbols)
    vocabulary = strings_of(op, vocab_begins, vocab_ends, vocab_symbols)
    default = op.Gather(op.Reshape(default, [-1]), 0)
    if (entries := vocabulary.constant) is not None:
        first: dict[object, int] = {}
        for position, entry in enumerate(entries.reshape(-1)):
            first.setdefault(entry, position)
        if not first:
            return op.Expand(default, op.Shape(keys))
        if len(first) != entries.size or entries.ndim != 1:
            kept = np.array(list(first.values()))
            vocabulary = op.const(entries.reshape(-1)[kept])
            known = values.constant
            values = op.Gather(op.Reshape(values, [-1]), kept) if known is None else op.const(known.reshape(-1)[kept])
    else:
        vocabulary, kept, *_ = op.Unique(op.Reshape(vocabulary, [-1]), sorted=0, outputs=4)  # the first occurrences
        values = op.Gather(op.Reshape(values, [-1]), kept)
    if values.constant is not None and default.constant is not None and _is_range(values.constant):
        found = op.specops.VocabularyTable(keys, vocabulary, default_value=int(default.constant.reshape(-1)[0]))
        return found if values.dtype == found.dtype else op.Cast(found, to=values.dtype)
    found = op.specops.VocabularyTable(keys, vocabulary)
    return op.Where(op.GreaterOrEqual(found, 0), op.Gather(values, op.Max(found, 0)), default)


def _is_range(values: np.ndarray) -> bool:
    return np.array_equal(values.reshape(-1), np.arange(values.size))
