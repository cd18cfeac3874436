"""Resizing of 8-bit integers that OpenVINO's CPU plugin fuses with the float functions that follow.

The plugin rounds the result of an Interpolate of i8 or u8, unless it fuses the Interpolate, the following Convert to floats
and the first float functions. This occurs with dynamic dimensions. With static dimensions, another pass of the plugin fuses
the Convert and the functions first.
"""

from __future__ import annotations

import numpy as np

from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import InputPort, Layer

_UNARY = {
    "Abs", "Clamp", "Elu", "Gelu", "HSigmoid", "HSwish", "Mish", "Negative", "ReLU", "Round", "Sigmoid", "SoftPlus", "Sqrt",
    "Swish", "Tanh",
}  # fmt: skip
_MOVED = {"Transpose", "Reshape", "Squeeze", "Unsqueeze"}
"""The operations between the two that the plugin moves."""
_FLOATS = {ElementType.F32, ElementType.F16, ElementType.BF16}


def is_fused_with_next_layers(interpolate: Layer) -> bool:
    """Return whether the plugin does not round the result of an Interpolate of 8-bit integers with dynamic dimensions."""
    dims = interpolate.outputs[0].dims
    if dims is None or len(dims) not in (4, 5):
        return False
    convert = _next(interpolate, {"Convert"})
    if convert is None or convert.outputs[0].element_type not in _FLOATS:
        return False
    return _is_fusible(convert)


def _is_fusible(convert: Layer) -> bool:
    """Return whether the next operation is a function of one operand, or x * a + b with numbers for the channels."""
    rank = len(convert.outputs[0].dims or ())
    chain = _Linear()
    layer = convert
    while (port := _only_consumer(layer)) is not None:
        following = port.layer
        is_float = following.type == "Convert" and following.outputs[0].element_type in _FLOATS
        if is_float or (following.type in _MOVED and port.index == 0):
            if following.type == "Transpose" and not chain.transpose(following):
                return False
        else:
            constant = _constant(port)
            if constant is None or following.type not in ("Add", "Subtract", "Multiply", "Divide"):
                break
            if constant.size > 1 and constant.ndim != rank:  # it cannot be moved past a Transpose
                return False
            if not chain.add_layer(following, port.index, constant):
                break
        layer = following
    if chain.scales or chain.moves:
        return chain.is_fusible(port)
    return port is not None and port.index == 0 and port.layer.type in _UNARY


class _Linear:
    """x * factors + terms, for successive layers with constants.

    Attributes:
        factors, terms: the constants of all layers.
        scales: whether there is a factor.
        is_moved: whether there was a Transpose.
        is_after_transpose: whether all factors come after a Transpose.
        follows_it: the same, but layers that PrePostProcessor inserts before a Transpose count as well.
    """

    def __init__(self) -> None:
        self.factors: np.ndarray = np.ones(1, np.float32)
        self.terms: np.ndarray = np.zeros(1, np.float32)
        self.scales = self.is_moved = False
        self.is_after_transpose = self.follows_it = True

    @property
    def moves(self) -> bool:
        """Whether there is a term."""
        return bool(self.terms.any())

    def transpose(self, layer: Layer) -> bool:
        """Permute the constants by a Transpose; return false if its order is unknown."""
        self.is_moved = True
        constant = layer.inputs[1].source.layer.constant
        if constant is None:
            return False
        order = [int(axis) for axis in constant.numpy().reshape(-1)]
        if any(array.size > 1 and array.ndim != len(order) for array in (self.factors, self.terms)):
            return False
        self.factors, self.terms = (x.transpose(order) if x.size > 1 else x for x in (self.factors, self.terms))
        return True

    def add_layer(self, layer: Layer, index: int, constant: np.ndarray) -> bool:
        """Add a layer with the current result as operand ``index``; return false if the layer has another form."""
        if layer.type in ("Multiply", "Divide"):
            if layer.type == "Divide" and index == 1:
                return False
            if (constant == 1).all():
                return True
            with np.errstate(all="ignore"):
                factor = constant if layer.type == "Multiply" else 1 / constant
            self.factors = self.factors * factor
            self.terms = self.terms * factor if self.moves else self.terms
            self.scales = True
            self.is_after_transpose &= self.is_moved
            self.follows_it &= self.is_moved or "preprocessing" in layer.rt_info
            return True
        if layer.type == "Subtract" and index == 1:
            self.factors, self.terms, self.scales = -self.factors, constant - self.terms, True
        else:
            term = -constant if layer.type == "Subtract" else constant
            self.terms = self.terms + term if self.moves else term
        return True

    def is_fusible(self, port: InputPort | None) -> bool:
        """Return whether the plugin fuses the layers if ``port`` uses the result."""
        if any(sum(d > 1 for d in array.shape) > 1 for array in (self.factors, self.terms)):
            return False
        # The plugin multiplies the weights of a Convolution instead.
        is_taken = port is not None and port.layer.type == "Convolution" and self.is_moved
        if self.scales and self.moves:
            return (self.factors.size == 1 or self.terms.size > 1) and not (is_taken and self.is_after_transpose)
        if self.moves:
            return self.terms.size == 1
        return self.factors.size == 1 and not (is_taken and self.follows_it)


def _next(layer: Layer, types: set[str]) -> Layer | None:
    """Return the only consumer of a layer's result, possibly after data movement, if it has one of the types."""
    while (port := _only_consumer(layer)) is not None and port.index == 0:
        if port.layer.type in types:
            return port.layer
        if port.layer.type != "Transpose":
            return None
        layer = port.layer
    return None


def _only_consumer(layer: Layer) -> InputPort | None:
    """Return the only port that uses a layer's result."""
    consumers = layer.outputs[0].consumers if layer.outputs else []
    return consumers[0] if len(consumers) == 1 else None


def _constant(port: InputPort) -> np.ndarray | None:
    """Return the other operand of a binary layer if it is constant, possibly of another float type."""
    if len(port.layer.inputs) != 2:
        return None
    source = port.layer.inputs[1 - port.index].source.layer
    if source.type == "Convert":
        source = source.inputs[0].source.layer
    if source.constant is None or source.constant.count > _MAX_CHANNELS:
        return None
    return source.constant.numpy().astype(np.float32)


_MAX_CHANNELS = 4096
"""Larger constants are not per channel."""
