"""Resizing of 8-bit integers that OpenVINO's CPU plugin computes as one with the function of floats behind it.

The plugin rounds the result of an Interpolate of i8 or u8. Where it makes one node of the Interpolate, the Convert to floats
behind it and the first functions of the floats, nothing is rounded. That is so where dimensions are open: otherwise another
part of the plugin takes Convert and functions first.
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
"""What the plugin takes from between the two."""
_FLOATS = {ElementType.F32, ElementType.F16, ElementType.BF16}


def is_fused_with_what_follows(interpolate: Layer) -> bool:
    """Whether the plugin leaves an Interpolate of 8-bit integers unrounded."""
    dims = interpolate.outputs[0].dims
    if dims is None or None not in dims or len(dims) not in (4, 5):
        return False
    convert = _next(interpolate, {"Convert"})
    if convert is None or convert.outputs[0].element_type not in _FLOATS:
        return False
    return _is_fusible(convert)


def _is_fusible(convert: Layer) -> bool:
    """Whether what follows begins with a function of one operand, or is x * a + b with numbers for the channels."""
    rank = len(convert.outputs[0].dims or ())
    chain = _Linear()
    layer = convert
    while (port := _taker(layer)) is not None:
        following = port.layer
        is_float = following.type == "Convert" and following.outputs[0].element_type in _FLOATS
        if is_float or (following.type in _MOVED and port.index == 0):
            if following.type == "Transpose" and not chain.transpose(following):
                return False
        else:
            constant = _constant(port)
            if constant is None or following.type not in ("Add", "Subtract", "Multiply", "Divide"):
                break
            if constant.size > 1 and constant.ndim != rank:  # it does not go along with a Transpose
                return False
            if not chain.take(following, port.index, constant):
                break
        layer = following
    if chain.scales or chain.moves:
        return chain.is_fusible(port)
    return port is not None and port.index == 0 and port.layer.type in _UNARY


class _Linear:
    """x * factors + terms, of successive layers with constants.

    Attributes:
        factors, terms: the constants of all of them.
        scales: whether there is a factor.
        is_moved: whether there has been a Transpose.
        is_behind: whether all factors come behind a Transpose.
        follows_it: the same, where what PrePostProcessor has put before one comes behind it, too.
    """

    def __init__(self) -> None:
        self.factors: np.ndarray = np.ones(1, np.float32)
        self.terms: np.ndarray = np.zeros(1, np.float32)
        self.scales = self.is_moved = False
        self.is_behind = self.follows_it = True

    @property
    def moves(self) -> bool:
        """Whether there is a term."""
        return bool(self.terms.any())

    def transpose(self, layer: Layer) -> bool:
        """Let the constants follow a Transpose; false where its order is not known."""
        self.is_moved = True
        constant = layer.inputs[1].source.layer.constant
        if constant is None:
            return False
        order = [int(axis) for axis in constant.numpy().reshape(-1)]
        if any(array.size > 1 and array.ndim != len(order) for array in (self.factors, self.terms)):
            return False
        self.factors, self.terms = (x.transpose(order) if x.size > 1 else x for x in (self.factors, self.terms))
        return True

    def take(self, layer: Layer, index: int, constant: np.ndarray) -> bool:
        """Add a layer whose operand ``index`` is what there is so far; false where it has none of these forms."""
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
            self.is_behind &= self.is_moved
            self.follows_it &= self.is_moved or "preprocessing" in layer.rt_info
            return True
        if layer.type == "Subtract" and index == 1:
            self.factors, self.terms, self.scales = -self.factors, constant - self.terms, True
        else:
            term = -constant if layer.type == "Subtract" else constant
            self.terms = self.terms + term if self.moves else term
        return True

    def is_fusible(self, port: InputPort | None) -> bool:
        """Whether the plugin fuses it, where ``port`` takes the result."""
        if any(sum(d > 1 for d in array.shape) > 1 for array in (self.factors, self.terms)):
            return False
        # The weights of a Convolution are multiplied instead.
        is_taken = port is not None and port.layer.type == "Convolution" and self.is_moved
        if self.scales and self.moves:
            return (self.factors.size == 1 or self.terms.size > 1) and not (is_taken and self.is_behind)
        if self.moves:
            return self.terms.size == 1
        return self.factors.size == 1 and not (is_taken and self.follows_it)


def _next(layer: Layer, types: set[str]) -> Layer | None:
    """The layer of one of the types that alone takes another's result, moved at most."""
    while (port := _taker(layer)) is not None and port.index == 0:
        if port.layer.type in types:
            return port.layer
        if port.layer.type != "Transpose":
            return None
        layer = port.layer
    return None


def _taker(layer: Layer) -> InputPort | None:
    """The one port that takes a layer's result."""
    consumers = layer.outputs[0].consumers if layer.outputs else []
    return consumers[0] if len(consumers) == 1 else None


def _constant(port: InputPort) -> np.ndarray | None:
    """The other operand of a layer of two, where it is a constant, possibly of another type of floats."""
    if len(port.layer.inputs) != 2:
        return None
    source = port.layer.inputs[1 - port.index].source.layer
    if source.type == "Convert":
        source = source.inputs[0].source.layer
    if source.constant is None or source.constant.count > _MOST:
        return None
    return source.constant.numpy().astype(np.float32)


_MOST = 4096
"""A constant with more elements is not per channel."""
