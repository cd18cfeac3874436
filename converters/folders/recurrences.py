"""The parameters of recurrences and short convolutions (Mamba, gated delta rule) in an IR.

The export computes ``-exp(A_log)``. ``D``, ``dt_bias`` and the parameters of convolutions have other names in the IR, or no
names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from converters.folders.architectures import MODULE_OF_LAYER, Architecture
from converters.openvino.reader.graph import InputPort, Layer, Model, producer_before

_DECAY = re.compile(r"__module\.(?P<path>[^/]+)/aten::(?:exp/Exp|neg/Multiply)")
_PROJECTION = re.compile(r"__module\.(?P<path>[^/]+)\.out_proj/")
_CONVOLUTIONS = ("Convolution", "GroupConvolution")
_MOVES = ("Convert", "Reshape", "Transpose", "Unsqueeze", "Squeeze")


def _consumers(layer: Layer) -> Iterator[Layer]:
    """Yield the layers that read a layer's outputs."""
    return (port.layer for output in layer.outputs for port in output.consumers)


def decay(chain: list[Layer], architecture: Architecture) -> str | None:
    """Return the parameter ``A_log`` whose negated exponential a constant is; ``None`` for other constants.

    Args:
        chain: the layers that compute the constant.
        architecture: the architecture with the parameter.
    """
    for one in chain:
        if place := _DECAY.match(one.name):
            return architecture.known(f"{place['path']}.A_log")
    return None


def logarithm(value: np.ndarray) -> np.ndarray | None:
    """Return ``A_log`` for the value of ``-exp(A_log)``; ``None`` if it is not the value of such an expression."""
    value = value.astype(np.float32)
    return np.log(-value) if np.isfinite(value).all() and (value < 0).all() else None


def step_bias(layer: Layer, architecture: Architecture) -> str | None:
    """Return the parameter ``dt_bias`` of the recurrence if an Add computes the argument of its Softplus; otherwise
    ``None``.
    """
    place = MODULE_OF_LAYER.match(layer.name)
    if place is None or layer.type != "Add" or not any(one.type == "SoftPlus" for one in _consumers(layer)):
        return None
    return architecture.known(f"{place['path']}.dt_bias")


def skip_scale(layer: Layer, architecture: Architecture) -> str | None:
    """Return the parameter ``D`` by which a Multiply of a Mamba 2 layer may scale its input; ``None`` for other layers."""
    place = MODULE_OF_LAYER.match(layer.name) if layer.type == "Multiply" else None
    return None if place is None else architecture.known(f"{place['path']}.D")


def convolution_bias(layer: Layer, architecture: Architecture) -> str | None:
    """Return the bias that an Add adds to the result of a convolution; ``None`` for other layers."""
    if layer.type != "Add":
        return None
    for port in layer.inputs:
        source = port.source.layer
        if source.type in _CONVOLUTIONS and (place := MODULE_OF_LAYER.match(source.name)):
            return _bias_in(place["path"], architecture)
    return None


def convolutions_without_bias(model: Model, architecture: Architecture) -> Iterator[str]:
    """Yield the biases of convolutions without an Add after them. An IR omits biases that are all 0."""
    for layer in model.layers:
        place = MODULE_OF_LAYER.match(layer.name) if layer.type in _CONVOLUTIONS else None
        if place is None or any(one.type == "Add" for one in _consumers(layer)):
            continue
        if (bias := _bias_in(place["path"], architecture)) is not None:
            yield bias


def _bias_in(module: str, architecture: Architecture) -> str | None:
    """Return the bias of the only convolution in a module; ``None`` if there is none."""
    weight = architecture.convolution_in(module)
    return None if weight is None else architecture.known(f"{weight.removesuffix('.weight')}.bias")


def skip_scales(model: Model, architecture: Architecture) -> Iterator[tuple[str, InputPort | None]]:
    """Yield the parameter ``D`` of each Mamba layer, with the input of the layer that multiplies by it.

    A layer computes ``out_proj((scan + x * D) * gate)``. Without a multiplication, the values of ``D`` are 1, which an IR
    omits; the input is then ``None``.
    """
    for layer in model.layers:
        place = _PROJECTION.match(layer.name) if layer.type == "MatMul" else None
        name = None if place is None else architecture.known(f"{place['path']}.D")
        if name is None:
            continue
        gate = _producer(layer.inputs[0])
        sums = [one for one in map(_producer, gate.inputs) if one.type == "Add"] if gate.type == "Multiply" else []
        if len(sums) != 1:
            continue
        products = [one for one in map(_producer, sums[0].inputs) if one.type == "Multiply"]
        scales = [port for one in products for port in one.inputs if _producer(port).type == "Const"]
        if len(scales) < 2:
            yield name, scales[0] if scales else None


def _producer(port: InputPort) -> Layer:
    """Return the layer that computes a value, before layers that only move or convert its elements."""
    return producer_before(port, _MOVES)
