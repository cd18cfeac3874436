"""Differences of version 10, and of the first layers of later opsets, from version 11's specification.

Each quirk is corrected or reported here. Nothing after the reader depends on it.
"""

from __future__ import annotations

from typing import Any

from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Graph, Layer, Model, OutputPort

# The versions in early files of operations that opset2 and opset6 define. OpenVINO accepts them, too.
_DEFINED_LATER = {
    ("MVN", "opset1"): "opset2",
    ("ROIPooling", "opset1"): "opset2",
    ("ReorgYolo", "opset1"): "opset2",
}
_ONCE_EXTENSIONS = ("ExperimentalDetectron", "GRUCell", "RNNCell", "Proposal")

# Names of meta data that changed in later files.
_RENAMED = {"cli_parameters": "conversion_parameters"}

_WITHOUT_OUTPUT_PADDING = ("Convolution", "GroupConvolution")


def is_early(model: Model) -> bool:
    """Return whether the file is of version 10 or older, where OpenVINO also accepts the friendly names of inputs and
    outputs.
    """
    return model.version <= 10


def modernize(layer: Layer) -> None:
    """Convert a layer and its ports from a file to the form of later files."""
    layer.version = _DEFINED_LATER.get((layer.type, layer.version), layer.version)
    if layer.version in ("experimental", "extension") and layer.type.startswith(_ONCE_EXTENSIONS):
        layer.version = "opset6"
    if layer.type in _WITHOUT_OUTPUT_PADDING and not layer.attributes.get("output_padding", "").strip("0, "):
        layer.attributes.pop("output_padding", None)
    if layer.type == "Const" and layer.attributes.keys().isdisjoint(("element_type", "shape")) and layer.outputs:
        port = layer.outputs[0]
        layer.attributes["element_type"] = port.element_type.value
        layer.attributes["shape"] = ",".join("?" if dim is None else str(dim) for dim in port.dims or ())


def run_time_information(model: Model) -> dict[str, Any]:
    """Return the model's metadata under the names of later files, as OpenVINO's reader does."""
    if model.rt_info:
        return model.rt_info
    told = {_RENAMED.get(name, name): value for name, value in model.meta.get("meta_data", {}).items()}
    if quantization := model.meta.get("quantization_parameters"):
        told["optimization"] = quantization
    return told


def input_type(model: Model, kind: ElementType) -> ElementType:
    """Return an input's element type, from its Parameter's type. In version 10, f16 becomes f32."""
    return ElementType.F32 if is_early(model) and kind is ElementType.F16 else kind


def output_type(model: Model, kind: ElementType) -> ElementType:
    """Return an output's element type, from its value's type. Version 10 has only two."""
    if not is_early(model):
        return kind
    wide = (ElementType.I32, ElementType.I64, ElementType.U32, ElementType.U64)
    return ElementType.I32 if kind in wide else ElementType.F32


def forget_sizes(model: Model) -> None:
    """Remove the dimensions, but not the rank, of values that depend on a Loop, and of all values in bodies."""
    if model.version == 10:
        _forget_sizes(model, in_body=False)


def _forget_sizes(graph: Graph, *, in_body: bool) -> None:
    # Model Optimizer, which wrote version 10, computed these shapes as if all iterations' results were already concatenated,
    # or as if there were one iteration.
    uncertain: set[OutputPort] = set()
    for layer in graph.layers:
        for body in layer.bodies.values():
            _forget_sizes(body, in_body=True)
        if layer.type in ("Parameter", "Const"):
            continue
        if in_body or layer.type == "Loop" or any(source.source in uncertain for source in layer.inputs):
            for port in layer.outputs:
                uncertain.add(port)
                if port.dims:
                    port.dims = (None,) * len(port.dims)
