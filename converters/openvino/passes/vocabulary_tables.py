"""TensorFlow's vocabulary tables, which reach an IR as a chain of layers, become one node again.

``tf.lookup.StaticVocabularyTable`` arrives as a look-up (-1 for a miss), a hash of every key, and a Where that takes
the bucket for the misses. A table without buckets is what ai.onnx.ml's LabelEncoder says.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Value
from onnx_specops.domain import DOMAIN, find


def fuse_vocabulary_tables(graph: ir.Graph) -> int:
    """Join look-up, hash and Where into one VocabularyTable with buckets; returns how many tables there are then."""
    count = 0
    for node in list(ir.traversal.RecursiveGraphIterator(graph)):
        if node.op_type == "Where" and not node.domain and (fused := _fuse(node)) is not None:
            node.outputs[0].replace_all_uses_with(fused, replace_graph_outputs=True)
            fused.name, node.outputs[0].name = node.outputs[0].name, fused.name
            count += 1
    return count


def label_vocabulary_tables(graph: ir.Graph) -> int:
    """Say tables without buckets over a constant vocabulary as LabelEncoder; returns how many."""
    count = 0
    for node in list(ir.traversal.RecursiveGraphIterator(graph)):
        if (node.domain, node.op_type) != (DOMAIN, "VocabularyTable") or _attribute(node, "num_oov_buckets"):
            continue
        vocabulary = node.inputs[1]
        labels = None if vocabulary is None or vocabulary.const_value is None else _labels(vocabulary.const_value)
        if labels is None:
            continue
        assert node.graph is not None
        output, keys = node.outputs[0], node.inputs[0]
        if keys is not None and keys.dtype == ir.DataType.INT32:
            wide = Value(name=f"{output.name}_keys", type=ir.TensorType(ir.DataType.INT64), shape=keys.shape)
            cast = ir.Node("", "Cast", [keys], [ir.AttrInt64("to", int(ir.DataType.INT64))], outputs=[wide])
            node.graph.insert_before(node, cast)
            keys = wide
        encoder = ir.Node(
            "ai.onnx.ml",
            "LabelEncoder",
            [keys],
            [
                labels,
                ir.AttrInt64s("values_int64s", list(range(len(labels.value)))),
                ir.AttrInt64("default_int64", _attribute(node, "default_value")),
            ],
            outputs=[Value(name=f"{output.name}_ids", type=output.type, shape=output.shape)],
            name=node.name,
        )
        node.graph.insert_before(node, encoder)
        name = output.name
        output.replace_all_uses_with(encoder.outputs[0], replace_graph_outputs=True)
        node.graph.remove(node, safe=True)
        encoder.outputs[0].name = name
        count += 1
    return count


def _labels(vocabulary: ir.TensorProtocol) -> ir.Attr | None:
    """LabelEncoder's keys; ``None`` for entries that it cannot hold, or that are an error which the kernels report."""
    array = vocabulary.numpy().reshape(-1)
    if vocabulary.dtype != ir.DataType.STRING:
        entries = array.tolist()
        return ir.AttrInt64s("keys_int64s", entries) if entries and len(set(entries)) == len(entries) else None
    texts = [e.encode() if isinstance(e, str) else bytes(e) for e in array]
    if not texts or len(set(texts)) != len(texts) or not all(map(_is_text, texts)):
        return None
    return ir.AttrStrings("keys_strings", [text.decode() for text in texts])


def _is_text(entry: bytes) -> bool:
    """Whether LabelEncoder can hold the entry: UTF-8, and no NUL, at which runtimes cut strings."""
    try:
        return "\0" not in entry.decode()
    except UnicodeDecodeError:
        return False


def _fuse(where: ir.Node) -> Value | None:
    condition, found, bucket = where.inputs
    table = _table(found)
    if table is None or where.outputs[0].dtype != ir.DataType.INT64 or _attribute(table, "num_oov_buckets"):
        return None
    vocabulary = table.inputs[1]
    if vocabulary is None or vocabulary.const_value is None:
        return None
    size, miss = vocabulary.const_value.size, _attribute(table, "default_value")
    add = _producer(bucket, "Add")
    if add is None or 0 <= miss < size or not _is_hit(condition, table, miss):
        return None
    for hashed, offset in (add.inputs, reversed(add.inputs)):
        buckets = _producer(hashed, "StringToHashBucket", DOMAIN)
        if buckets is not None and _constant(offset) == size and _hashed_key(buckets) is table.inputs[0]:
            break
    else:
        return None
    attributes = {name: _attribute(buckets, name) for name in ("hasher", "hasher_key_0", "hasher_key_1")}
    fused = ir.node(
        "VocabularyTable",
        list(table.inputs),
        {"num_oov_buckets": _attribute(buckets, "num_buckets"), "default_value": miss, **attributes},
        domain=DOMAIN,
        name=f"{table.name}_with_buckets",
        outputs=[Value(name=f"{where.outputs[0].name}_fused", type=where.outputs[0].type, shape=where.outputs[0].shape)],
    )
    assert where.graph is not None
    where.graph.insert_before(where, fused)
    result = fused.outputs[0]
    assert isinstance(result, Value)
    return result


def _hashed_key(buckets: ir.Node) -> ir.Value | None:
    """What is hashed: strings, or the integers whose decimal text is."""
    cast = _producer(buckets.inputs[0], "Cast")
    if cast is not None and cast.inputs[0] is not None and cast.inputs[0].dtype in (ir.DataType.INT32, ir.DataType.INT64):
        return cast.inputs[0]
    return buckets.inputs[0]


def _is_hit(condition: ir.Value | None, table: ir.Node, miss: int) -> bool:
    """Whether the condition says that the table has found the key."""
    negation = _producer(condition, "Not")
    equal = _producer(negation.inputs[0], "Equal") if negation is not None else None
    if equal is None:
        return False
    a, b = equal.inputs
    return (_table(a) is table and _constant(b) == miss) or (_table(b) is table and _constant(a) == miss)


def _table(value: ir.Value | None) -> ir.Node | None:
    """The VocabularyTable behind a value, through casts between integers."""
    while (cast := _producer(value, "Cast")) is not None:
        if ir.DataType(cast.attributes["to"].as_int()) not in (ir.DataType.INT32, ir.DataType.INT64):
            return None
        value = cast.inputs[0]
    return _producer(value, "VocabularyTable", DOMAIN)


def _producer(value: ir.Value | None, op_type: str, domain: str = "") -> ir.Node | None:
    node = None if value is None else value.producer()
    return node if node is not None and (node.domain, node.op_type) == (domain, op_type) else None


def _constant(value: ir.Value | None) -> int | None:
    if value is None or value.const_value is None or value.const_value.size != 1:
        return None
    return int(np.reshape(value.const_value.numpy(), -1)[0])


def _attribute(node: ir.Node, name: str):
    if name in node.attributes:
        return node.attributes[name].value
    return find(node.op_type).attributes[name][1]
