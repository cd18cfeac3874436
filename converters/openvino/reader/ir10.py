"""What files of version 10, and the first layers of later opsets, say otherwise than version 11's specification.

Each quirk is put right, or told, here once; nothing after the reader knows of it.
"""

from __future__ import annotations

from converters.openvino.reader.graph import Graph, Layer, Model, OutputPort

# Versions that early files give for what opset2 and opset6 define (OpenVINO reads them so too).
_DEFINED_LATER = {
    ("MVN", "opset1"): "opset2",
    ("ROIPooling", "opset1"): "opset2",
    ("ReorgYolo", "opset1"): "opset2",
}
_ONCE_EXTENSIONS = ("ExperimentalDetectron", "GRUCell", "RNNCell", "Proposal")

_WITHOUT_OUTPUT_PADDING = ("Convolution", "GroupConvolution")


def is_early(model: Model) -> bool:
    """Whether the file is of version 10, where OpenVINO knows inputs and outputs by their friendly names too."""
    return model.version == 10


def modernize(layer: Layer) -> None:
    """Brings a layer as it stands in a file, with its ports, into the form that later files have."""
    layer.version = _DEFINED_LATER.get((layer.type, layer.version), layer.version)
    if layer.version in ("experimental", "extension") and layer.type.startswith(_ONCE_EXTENSIONS):
        layer.version = "opset6"
    if layer.type in _WITHOUT_OUTPUT_PADDING and not layer.attributes.get("output_padding", "").strip("0, "):
        layer.attributes.pop("output_padding", None)
    if layer.type == "Const" and layer.attributes.keys().isdisjoint(("element_type", "shape")) and layer.outputs:
        port = layer.outputs[0]
        layer.attributes["element_type"] = port.element_type.value
        layer.attributes["shape"] = ",".join("?" if dim is None else str(dim) for dim in port.dims or ())


def forget_sizes(model: Model) -> None:
    """Keeps the rank only of what depends on a Loop, and of everything that is computed in bodies.

    Model Optimizer, which wrote version 10, computed the shapes there as if all iterations' results were
    joined already, or as if there were one iteration.
    """
    if is_early(model):
        _forget_sizes(model, in_body=False)


def _forget_sizes(graph: Graph, *, in_body: bool) -> None:
    doubtful: set[OutputPort] = set()
    for layer in graph.layers:
        for body in layer.bodies.values():
            _forget_sizes(body, in_body=True)
        if layer.type in ("Parameter", "Const"):
            continue
        if in_body or layer.type == "Loop" or any(source.source in doubtful for source in layer.inputs):
            for port in layer.outputs:
                doubtful.add(port)
                if port.dims:
                    port.dims = (None,) * len(port.dims)
