"""Constant shapes that prevent new input shapes, and that OpenVINO's ``Model.reshape`` replaces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.openvino.reader.constants import Constant
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Graph, InputPort, Layer, OutputPort


def relax(graph: Graph) -> None:
    """Replace the constant patterns of Reshapes that depend on inputs by patterns for any input shape.

    As in OpenVINO, these are:

    - Reshapes to one dimension. The pattern becomes [-1].
    - Reshapes to two dimensions whose only consumer is an operand of a MatMul. Between them may be a Transpose of the two
      dimensions that has no other consumer. The dimension over which the MatMul sums becomes that of the other operand, and
      the second one -1. The other operand must not depend on inputs, and must have two or more dimensions.

    If the shapes are those of the file, the new patterns give the same results.

    Args:
        graph: the graph of an IR, with the dimensions of the file; changed in place.
    """
    depends: set[Layer] = set()
    for layer in graph.layers:
        if layer.type in ("Parameter", "ReadValue") or any(port.source.layer in depends for port in layer.inputs):
            depends.add(layer)
    patterns = {layer: _relaxed(layer, depends) for layer in graph.layers if layer.type == "Reshape" and layer in depends}
    number = max((layer.id for layer in graph.layers), default=0)
    layers: list[Layer] = []
    unused: set[Layer] = set()
    for layer in graph.layers:
        if (pattern := patterns.get(layer)) is not None:
            number += 1
            old = layer.inputs[1].source
            layers.append(_set_pattern(layer, pattern, number))
            if not old.consumers:
                unused.add(old.layer)
        layers.append(layer)
    graph.layers[:] = [layer for layer in layers if layer not in unused]


def _relaxed(reshape: Layer, depends: set[Layer]) -> list[int] | None:
    """Return the new pattern of a Reshape; ``None`` if it keeps its own."""
    constant = reshape.inputs[1].source.layer.constant if len(reshape.inputs) == 2 else None
    if constant is None or len(constant.shape) != 1:
        return None
    if constant.count == 1:
        return [-1]
    if constant.count != 2:
        return None
    consumer, swapped = _only_consumer(reshape), False
    if consumer is not None and consumer.layer.type == "Transpose" and consumer.index == 0:
        order = consumer.layer.inputs[1].source.layer.constant
        if order is None or order.numpy().tolist() != [1, 0]:
            return None
        consumer, swapped = _only_consumer(consumer.layer), True
    if consumer is None or consumer.layer.type != "MatMul" or len(consumer.layer.inputs) != 2:
        return None
    other = consumer.layer.inputs[1 - consumer.index].source
    if other.layer in depends or other.dims is None or len(other.dims) < 2:
        return None
    # MatMul sums over the columns of the first operand and the rows of the second one.
    rows = (consumer.index == 1) ^ _transposes(consumer) ^ swapped
    other_rows = (consumer.index == 0) ^ _transposes(consumer.layer.inputs[1 - consumer.index])
    summed = other.dims[-2 if other_rows else -1]
    if summed is None:
        return None
    return [summed, -1] if rows else [-1, summed]


def _only_consumer(layer: Layer) -> InputPort | None:
    consumers = layer.outputs[0].consumers
    return consumers[0] if len(consumers) == 1 else None


def _transposes(operand: InputPort) -> bool:
    """Return whether a MatMul transposes its operand."""
    stated = operand.layer.attributes.get("transpose_b" if operand.index else "transpose_a", "")
    return stated.strip().lower() in ("true", "1")


def _set_pattern(reshape: Layer, pattern: Sequence[int], number: int) -> Layer:
    """Replace the pattern of a Reshape by a new constant with the id ``number``. Other consumers of the old one keep it."""
    port = reshape.inputs[1]
    old = port.source
    raw = memoryview(np.array(pattern, np.int64).tobytes())
    layer = Layer(
        number,
        old.layer.name,
        "Const",
        old.layer.version,
        {"element_type": "i64", "shape": str(len(pattern)), "offset": "0", "size": str(len(raw))},
        [],
        [],
        {},
        old.layer.line,
        constant=Constant(ElementType.I64, (len(pattern),), None, len(raw), raw),
    )
    layer.outputs.append(OutputPort(layer, 0, 0, ElementType.I64, (len(pattern),), consumers=[port]))
    port.source = layer.outputs[0]
    old.consumers.remove(port)
    return layer
