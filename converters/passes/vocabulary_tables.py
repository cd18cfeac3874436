"""Fusion of TensorFlow's vocabulary tables, which an IR has as chains of layers.

``tf.lookup.StaticVocabularyTable`` of strings is a lookup (-1 for a miss), a hash of every key, and a Where that selects the
bucket for misses. A table of integers is a comparison of every key with the whole vocabulary. A table without buckets is
equivalent to ai.onnx.ml's LabelEncoder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript.rewriter.pattern import OrValue

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.domain import DOMAIN, find
from onnx_specops.graphs import constant_array

_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)


# -- strings: a lookup, and a hash for misses ---------------------------------------------------------------------------


def _cast_at_most_twice(op: Any, x: Any, name: str) -> Any:
    # Without a tag, onnxscript (0.7.2) cannot try the inputs of commutative operators in both orders.
    return OrValue([op.Cast(op.Cast(x)), op.Cast(x), x], name=name, tag_var=f"{name}_casts")


def look_up_or_bucket(op, keys, vocabulary, hashed, miss, size):
    table = op.VocabularyTable(keys, vocabulary, _domain=DOMAIN, _outputs=["table"])
    bucket = op.StringToHashBucket(hashed, _domain=DOMAIN, _outputs=["bucket"])
    missed = op.Equal(_cast_at_most_twice(op, table, "tested"), miss)
    return op.Where(op.Not(missed), _cast_at_most_twice(op, table, "found"), op.Add(bucket, size))


@rewrite("Where", look_up_or_bucket, commute=True, exclusive=False)
def with_buckets(op: Builder, *, keys, vocabulary, hashed, miss, size, table, bucket, tested, found, **_):
    """Fuse the buckets into the table."""
    default = _attribute(table, "default_value")
    constant = _tensor(vocabulary)
    entries = None if constant is None else constant.size
    if entries is None or found.dtype != ir.DataType.INT64 or _attribute(table, "num_oov_buckets"):
        return None
    if 0 <= default < entries or _integer(miss) != default or _integer(size) != entries:
        return None
    if not _is_key(hashed, keys) or not all(_holds_ids(value, table) for value in (tested, found)):
        return None
    hashing = {name: _attribute(bucket, name) for name in ("hasher", "hasher_key_0", "hasher_key_1")}
    buckets = _attribute(bucket, "num_buckets")
    return op.specops.VocabularyTable(keys, vocabulary, num_oov_buckets=buckets, default_value=default, **hashing)


def _is_key(hashed: ir.Value, keys: ir.Value) -> bool:
    """Return whether the keys themselves are hashed: strings, or the decimal text of integers."""
    cast = hashed.producer()
    if cast is not None and (cast.domain, cast.op_type) == ("", "Cast") and keys.dtype in _INTEGERS:
        return cast.inputs[0] is keys
    return hashed is keys


def _holds_ids(value: ir.Value, table: ir.Value) -> bool:
    """Return whether only integers are between the table and the value."""
    while value is not table:
        node = value.producer()
        if value.dtype not in _INTEGERS or node is None or node.inputs[0] is None:
            return False
        value = node.inputs[0]
    return True


# -- integers: every key compared with every entry ------------------------------------------------------------------------


def found_by_comparison(op, keys, column, vocabulary, one, zero, places, condition_axes, place_axes, miss):
    equal = op.Equal(vocabulary, op.Unsqueeze(keys, column))
    place = op.ReduceMax(op.Mul(op.Where(equal, one, zero), places), place_axes, keepdims=0)
    return op.Where(op.ReduceMax(equal, condition_axes, keepdims=0), place, miss)


@rewrite("Where", found_by_comparison, commute=True, exclusive=False)
def table_of_integers(
    op: Builder, *, keys, column, vocabulary, one, zero, places, condition_axes, place_axes, miss
) -> Value | None:
    """Replace the comparisons by a lookup whose time does not depend on the vocabulary's size."""
    entries, positions = constant_array(vocabulary), constant_array(places)
    if entries is None or positions is None or not entries.ndim or keys.dtype not in _INTEGERS or keys.shape is None:
        return None
    rank, size = len(keys.shape), entries.shape[-1]
    if _axes(column) not in ([-1], [rank]) or not {_axis(condition_axes, rank), _axis(place_axes, rank)} <= {rank}:
        return None
    # No constant adds dimensions.
    if max(entries.ndim, positions.ndim, *(_rank(value) for value in (one, zero)), _rank(miss) + 1) > rank + 1:
        return None
    if [_integer(value) for value in (one, zero, miss)] != [1, 0, size] or not size or entries.size != size:
        return None
    if positions.shape[-1:] != (size,) or not np.array_equal(positions.reshape(-1), np.arange(size)):
        return None
    if len(np.unique(entries)) != size:
        return None
    named = constant_value(entries.reshape(-1), name=f"{op.scope}/vocabulary")
    ids = op.specops.VocabularyTable(keys, named, default_value=size)
    return ids if miss.dtype == ir.DataType.INT64 else op.Cast(ids, to=miss.dtype)


def values_of_ids(op, values, keys, vocabulary):
    table = op.VocabularyTable(keys, vocabulary, _domain=DOMAIN, _outputs=["table"])
    return op.Gather(values, OrValue([op.Cast(table), table], name="ids"), _outputs=["result"])


@rewrite("Gather", values_of_ids, exclusive=False)
def other_default(op: Builder, *, values, keys, vocabulary, table, ids, result) -> Value | None:
    """Remove the Gather from the table if it only returns the ids, with another number for a miss."""
    numbers, entries = constant_array(values), _tensor(vocabulary)
    if numbers is None or entries is None or numbers.dtype.kind not in "iu" or numbers.shape != (entries.size + 1,):
        return None
    axis = result.producer().attributes.get_int("axis", 0)
    if axis or _attribute(table, "num_oov_buckets") or _attribute(table, "default_value") != entries.size:
        return None
    if not np.array_equal(numbers[:-1], np.arange(entries.size)) or not _holds_ids(ids, table):
        return None
    found = op.specops.VocabularyTable(keys, vocabulary, default_value=int(numbers[-1]))
    return found if values.dtype == ir.DataType.INT64 else op.Cast(found, to=values.dtype)


# -- tables without buckets -----------------------------------------------------------------------------------------------


def table(op, keys, vocabulary):
    return op.VocabularyTable(keys, vocabulary, _domain=DOMAIN, _outputs=["ids"])


@rewrite("VocabularyTable", table, domain=DOMAIN)
def as_label_encoder(op: Builder, *, keys, vocabulary, ids) -> Value | None:
    """Convert a constant vocabulary without buckets to standard ONNX."""
    constant = _tensor(vocabulary)
    if _attribute(ids, "num_oov_buckets") or constant is None:
        return None
    labels = _labels(constant)
    if labels is None:
        return None
    if keys.dtype == ir.DataType.INT32:
        keys = op.Cast(keys, to=ir.DataType.INT64)
    values = list(range(constant.size))
    return op.ml.LabelEncoder(keys, **labels, values_int64s=values, default_int64=_attribute(ids, "default_value"))


def _labels(vocabulary: ir.TensorProtocol) -> dict[str, Any] | None:
    """Return the keys of LabelEncoder; ``None`` for entries that it does not support, or for which the kernels report an
    error.
    """
    array = vocabulary.numpy().reshape(-1)
    if vocabulary.dtype != ir.DataType.STRING:
        entries = array.tolist()
        return {"keys_int64s": entries} if entries and len(set(entries)) == len(entries) else None
    texts = [e.encode() if isinstance(e, str) else bytes(e) for e in array]
    if not texts or len(set(texts)) != len(texts) or not all(map(_is_text, texts)):
        return None
    return {"keys_strings": [text.decode() for text in texts]}


def _is_text(entry: bytes) -> bool:
    """Return whether LabelEncoder supports the entry: UTF-8 without NUL, at which runtimes cut strings."""
    try:
        return "\0" not in entry.decode()
    except UnicodeDecodeError:
        return False


# -- the passes -----------------------------------------------------------------------------------------------------------


class FuseVocabularyTables(PatternPass):
    """Fuse TensorFlow's tables into VocabularyTable."""

    rewrites = (with_buckets, table_of_integers, other_default)


class LabelVocabularyTables(PatternPass):
    """Convert the tables without buckets to LabelEncoder, after `FuseVocabularyTables`."""

    rewrites = (as_label_encoder,)


def _attribute(value: ir.Value, name: str) -> Any:
    """Return an attribute of the domain's node that computes the value."""
    node = value.producer()
    assert node is not None
    return node.attributes[name].value if name in node.attributes else find(node.op_type).attributes[name].default


def _tensor(value: ir.Value | None) -> ir.TensorProtocol | None:
    """Return a constant that no caller can replace."""
    return None if value is None or value.is_graph_input() else value.const_value


def _integer(value: ir.Value) -> int | None:
    """Return the only element of an integer constant."""
    array = constant_array(value)
    return int(array.reshape(-1)[0]) if array is not None and array.size == 1 and array.dtype.kind in "iu" else None


def _rank(value: ir.Value) -> int:
    array = constant_array(value)
    return 0 if array is None else array.ndim


def _axes(value: ir.Value) -> list[int] | None:
    array = constant_array(value)
    return None if array is None else array.reshape(-1).tolist()


def _axis(value: ir.Value, last: int) -> int | None:
    """Return a constant axis, with ``last`` for -1."""
    axes = _axes(value)
    return None if axes is None or len(axes) != 1 else last if axes[0] == -1 else axes[0]
