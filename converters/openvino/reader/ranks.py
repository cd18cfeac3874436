"""Ranks that the ports of an IR do not state.

A port without dimensions is a scalar or a value of unknown rank, which OpenVINO writes in the same way. Only the data of
Parameter and Const layers distinguish the two, so the ranks of the other ports are derived from these layers.
"""

from __future__ import annotations

from converters.openvino.reader.graph import Body, Dims, Graph, InputPort, Layer, Model, OutputPort
from converters.openvino.reader.shapes import PartialShape

# The rank of the first output is the length of these inputs, which contain a shape (or repeats).
_RANK_FROM_LENGTH = {
    "Reshape": (1,),
    "Broadcast": (1,),
    "Tile": (1,),
    "StridedSlice": (1,),
    "RandomUniform": (0,),
    "DynamicReshape": (1,),
}

# The rank depends on the last dimension of the indices.
_RANK_FROM_LAST_DIM = {"GatherND": 1}

# The rank depends on the axes in the inputs after the first.
_RANK_FROM_AXES = {"Squeeze", "Unsqueeze"}

# Layers that never return a scalar. Without dimensions, their rank is unknown.
_NEVER_SCALAR = {"Eye"}


def infer_ranks(model: Model) -> None:
    """Set `OutputPort.dims` to ``None`` if the rank is unknown."""
    _infer(model)


def _infer(graph: Graph) -> None:
    for layer in graph.layers:
        for body in layer.bodies.values():
            _infer(body)
        if layer.type in ("Parameter", "Const"):
            continue
        for port in layer.outputs:
            if port.dims == () and not _is_scalar(layer, port):
                port.dims = None


def _is_scalar(layer: Layer, port: OutputPort) -> bool:
    """Return whether an output without dimensions is a scalar, and not of unknown rank."""
    if layer.bodies:
        return all(_ends_scalar(body, port) for body in layer.bodies.values())
    if "variable_shape" in layer.attributes:
        return _parsed(layer.attributes["variable_shape"]) == ()
    kind = layer.type
    if kind in _NEVER_SCALAR or not layer.version.startswith("opset"):
        return False
    if any(source.dims is None for source in layer.inputs):
        return False
    if kind in _RANK_FROM_LENGTH:
        places = _RANK_FROM_LENGTH[kind]
        return all(None not in (source.dims or ()) for source in layer.inputs if source.index in places)
    if kind in _RANK_FROM_LAST_DIM:
        indices = layer.inputs[_RANK_FROM_LAST_DIM[kind]].dims if len(layer.inputs) > 1 else None
        return indices is not None and indices != () and indices[-1] is not None
    if kind in _RANK_FROM_AXES or (kind.startswith("Reduce") and not _is_true(layer, "keep_dims")):
        if not all(_is_constant(source) for source in layer.inputs[1:]):
            return False
        if kind == "Squeeze" and (_is_true(layer, "allow_axis_skip") or all(x.dims == (0,) for x in layer.inputs[1:])):
            # It removes only dimensions that are 1.
            return None not in (layer.inputs[0].dims or ())
    return True


def _ends_scalar(body: Body, port: OutputPort) -> bool:
    for entry in body.outputs:
        if entry.external is port:
            return entry.axis is None and entry.result.inputs[0].dims == ()
    return False


def _is_true(layer: Layer, attribute: str) -> bool:
    return layer.attributes.get(attribute, "false").lower() in ("true", "1")


def _is_constant(port: InputPort) -> bool:
    """Return whether the value is a constant, or a Convert of one."""
    layer = port.source.layer
    while layer.type == "Convert":
        layer = layer.inputs[0].source.layer
    return layer.constant is not None


def _parsed(text: str) -> Dims | None:
    try:
        return PartialShape.parse(text).dims
    except ValueError:  # the rule that reads the attribute reports it
        return None
