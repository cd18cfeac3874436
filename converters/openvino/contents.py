"""The content of an IR: its inputs and outputs, its weights by element type, and the precision of its values."""

from __future__ import annotations

from collections import Counter

from converters.inspection import Contents, LargeConstant, Tensor, WeightsOfType
from converters.openvino.information import information, layout
from converters.openvino.reader.constants import Constant
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import InputPort, Layer, Model, OutputPort
from converters.openvino.walk import all_layers

LARGEST = 20
"""The maximum number of listed constants."""


def contents(source: Model) -> Contents:
    """Return the content of an IR."""
    layers = list(all_layers(source))
    constants: dict[tuple[object, ElementType], tuple[Layer, Constant]] = {}
    for layer in layers:
        if layer.constant is not None:
            found = layer.constant
            place: object = id(layer) if found.offset is None else (found.offset, found.size)
            constants.setdefault((place, found.element_type), (layer, found))
    by_type: dict[str, list[tuple[int, int]]] = {}
    for _, found in constants.values():
        by_type.setdefault(str(found.element_type), []).append((found.count, found.size))
    weights = [
        WeightsOfType(name, len(sizes), sum(count for count, _ in sizes), sum(size for _, size in sizes))
        for name, sizes in by_type.items()
    ]
    largest = sorted(constants.values(), key=lambda entry: entry[1].size, reverse=True)[:LARGEST]
    precisions = Counter(
        str(port.element_type) for layer in layers if layer.type not in ("Const", "Result") for port in layer.outputs
    )
    return Contents(
        source.version,
        len(layers),
        [_tensor(names, layer.outputs[0]) for layer, names in zip(source.parameters, source.input_names, strict=True)],
        [
            _tensor(names, layer.inputs[0].source, layer.inputs[0])
            for layer, names in zip(source.results, source.output_names, strict=True)
        ],
        sorted(weights, key=lambda kind: kind.bytes, reverse=True),
        dict(precisions.most_common()),
        [
            LargeConstant(
                layer.name,
                str(found.element_type),
                found.shape,
                found.size,
                sorted({port.layer.type for port in layer.outputs[0].consumers}),
            )
            for layer, found in largest
        ],
        information(source),
    )


def _tensor(names: tuple[str, ...], port: OutputPort, *result: InputPort) -> Tensor:
    return Tensor(names[0], str(port.element_type), port.dims, layout(*result, port))
