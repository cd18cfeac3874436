"""TensorFlow's tables of integer keys, which reach an IR as a comparison of every key with the whole vocabulary.

OpenVINO's frontend writes ``values[Select(any(keys == x), max(Select(keys == x, 1, 0) * [0, 1, ...]), n)]``, where the last
of the ``n + 1`` values is the default. As a VocabularyTable a look-up no longer depends on the vocabulary's size.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Value
from onnx_specops.domain import DOMAIN

_KEYS = (ir.DataType.INT32, ir.DataType.INT64)


def fuse_integer_tables(graph: ir.Graph) -> int:
    """Say look-ups of integers by comparison as VocabularyTable; returns how many."""
    count = 0
    for node in list(ir.traversal.RecursiveGraphIterator(graph)):
        if node.op_type == "Where" and not node.domain and (found := _lookup(node)) is not None:
            _replace(graph, node, *found)
            count += 1
    return count


def _lookup(where: ir.Node) -> tuple[ir.Value, np.ndarray] | None:
    """What is looked up in which vocabulary, where the Where gives the place of a key, or the vocabulary's size."""
    condition, place, miss = where.inputs
    anywhere, product = _reduced(condition), _reduced(place)
    if anywhere is None or product is None or (multiply := _producer(product, "Mul")) is None:
        return None
    for chosen, places in (multiply.inputs, multiply.inputs[::-1]):
        choice, positions = _producer(chosen, "Where"), _constant(places)
        if choice is None or positions is None or choice.inputs[0] is not anywhere:
            continue
        if _scalar(choice.inputs[1]) == 1 and _scalar(choice.inputs[2]) == 0:
            break
    else:
        return None
    found = _compared(anywhere)
    if found is None:
        return None
    keys, vocabulary = found
    size = vocabulary.shape[-1]
    assert keys.shape is not None
    # None of the constants adds dimensions of its own.
    if max(vocabulary.ndim, positions.ndim, *map(_rank, choice.inputs[1:]), _rank(miss) + 1) > len(keys.shape) + 1:
        return None
    if not size or vocabulary.size != size or positions.shape[-1:] != (size,) or _scalar(miss) != size:
        return None
    if not np.array_equal(positions.reshape(-1), np.arange(size)) or len(np.unique(vocabulary)) != size:
        return None
    return keys, vocabulary.reshape(-1)


def _compared(equal_value: ir.Value) -> tuple[ir.Value, np.ndarray] | None:
    """The keys and the vocabulary of ``vocabulary == Unsqueeze(keys, [-1])``."""
    equal = _producer(equal_value, "Equal")
    if equal is None:
        return None
    for vocabulary, column in (equal.inputs, equal.inputs[::-1]):
        unsqueeze, entries = _producer(column, "Unsqueeze"), _constant(vocabulary)
        if unsqueeze is None or entries is None or entries.ndim == 0:
            continue
        keys, axes = unsqueeze.inputs[0], _constant(unsqueeze.inputs[1])
        if keys is None or keys.dtype not in _KEYS or keys.shape is None or axes is None:
            continue
        if axes.reshape(-1).tolist() in ([-1], [len(keys.shape)]):
            return keys, entries
    return None


def _reduced(value: ir.Value | None) -> ir.Value | None:
    """What is reduced by ReduceMax along its last axis, without keeping it."""
    node = _producer(value, "ReduceMax")
    if node is None or len(node.inputs) < 2 or _int(node, "keepdims", 1):
        return None
    data, axes = node.inputs[0], _constant(node.inputs[1])
    if data is None or data.shape is None or axes is None or axes.reshape(-1).tolist() not in ([-1], [len(data.shape) - 1]):
        return None
    return data


def _replace(root: ir.Graph, where: ir.Node, keys: ir.Value, vocabulary: np.ndarray) -> None:
    """A VocabularyTable in the Where's place; in its Gather's too, where that looks up the ids themselves."""
    tensor = ir.Tensor(vocabulary, name=f"{where.name}/vocabulary")
    entries = Value(name=tensor.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(vocabulary.shape), const_value=tensor)
    root.register_initializer(entries)
    gathers = [node for node, index in where.outputs[0].uses() if index == 1 and _looks_up_ids(node, len(vocabulary))]
    _insert(where, keys, entries, len(vocabulary))
    for gather in gathers:
        values = _constant(gather.inputs[0])
        assert values is not None
        _insert(gather, keys, entries, int(values[-1]))


def _looks_up_ids(node: ir.Node, size: int) -> bool:
    """Whether the node is a Gather whose values are 0, 1, ... and a default."""
    if node.op_type != "Gather" or node.domain or _int(node, "axis", 0):
        return False
    values = _constant(node.inputs[0])
    if values is None or values.dtype.kind not in "iu" or values.shape != (size + 1,):
        return False
    return np.array_equal(values[:-1], np.arange(size))


def _insert(node: ir.Node, keys: ir.Value, entries: ir.Value, default: int) -> None:
    """A table that takes over the node's output."""
    output, graph = node.outputs[0], node.graph
    assert graph is not None and output.dtype is not None
    ids = Value(name=f"{output.name}_ids", type=ir.TensorType(ir.DataType.INT64), shape=output.shape)
    attributes = {"default_value": default}
    table = ir.node("VocabularyTable", [keys, entries], attributes, domain=DOMAIN, name=f"{node.name}/table", outputs=[ids])
    graph.insert_before(node, table)
    result = table.outputs[0]
    if output.dtype != ir.DataType.INT64:
        narrow = Value(name=f"{output.name}_cast", type=output.type, shape=output.shape)
        cast = ir.node("Cast", [result], {"to": int(output.dtype)}, name=f"{node.name}/cast", outputs=[narrow])
        graph.insert_before(node, cast)
        result = cast.outputs[0]
    output.replace_all_uses_with(result, replace_graph_outputs=True)
    result.name, output.name = output.name, result.name


def _producer(value: ir.Value | None, op_type: str) -> ir.Node | None:
    node = None if value is None else value.producer()
    return node if node is not None and (node.domain, node.op_type) == ("", op_type) else None


def _constant(value: ir.Value | None) -> np.ndarray | None:
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def _rank(value: ir.Value | None) -> int:
    array = _constant(value)
    return 0 if array is None else array.ndim


def _int(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default


def _scalar(value: ir.Value | None) -> int | None:
    """The one element of a constant."""
    array = _constant(value)
    return int(array.reshape(-1)[0]) if array is not None and array.size == 1 and array.dtype.kind in "iu" else None
