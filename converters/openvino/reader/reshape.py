"""New shapes for a model's inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from converters.errors import ConversionError, Fault, Problem
from converters.openvino.reader.graph import Dims, Graph, Layer, Model
from converters.openvino.reader.relaxed import relax
from converters.openvino.reader.tensor_names import input_aliases
from converters.suggestions import did_you_mean


def reshape(model: Model, shapes: Mapping[str, Sequence[int]]) -> None:
    """Set the dimensions of inputs, and remove all dimensions in the file that may depend on them; see also `relax`.

    Args:
        model: the model; changed in place.
        shapes: the dimensions by tensor name or friendly name of an input. -1 is a dynamic dimension.

    Raises:
        ConversionError: an input does not exist or has another rank.
    """
    if not shapes:
        return
    relax(model)
    problems = []
    for name, dims in shapes.items():
        layer = _find(model, name)
        if layer is None:
            known = ", ".join(names[0] for names in model.input_names) or "none"
            meant = did_you_mean(name, [alias for layer in model.parameters for alias in input_aliases(layer)])
            problems.append(
                Problem(f"there is no input named {name}; the inputs are {known}", str(model.path), remedy=meant)
            )
            continue
        port = layer.outputs[0]
        if port.dims is not None and len(port.dims) != len(dims):
            message = f"the shape {list(dims)} has {len(dims)} dimensions, the input {len(port.dims)}"
            problems.append(
                Problem(message, str(model.path), layer.line, layer.name, layer.type, layer.id, fault=Fault.MALFORMED)
            )
            continue
        port.dims = tuple(None if dim == -1 else dim for dim in dims)
        layer.attributes["shape"] = ",".join(map(str, dims))
    if problems:
        raise ConversionError.of(problems)
    for layer in _others(model):
        for port in layer.outputs:
            port.dims = _unknown(port.dims)


def _find(model: Model, name: str) -> Layer | None:
    return next((layer for layer in model.parameters if name in input_aliases(layer)), None)


def _others(graph: Graph) -> Iterator[Layer]:
    """Yield all layers except constants and the model's own Parameters. Layers of bodies may depend on changed values."""
    for layer in graph.layers:
        if layer.type not in ("Parameter", "Const"):
            yield layer
        for body in layer.bodies.values():
            yield from body.parameters
            yield from _others(body)


def _unknown(dims: Dims | None) -> Dims | None:
    return None if dims is None else (None,) * len(dims)
