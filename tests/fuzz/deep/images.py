"""Steps on images ``[1, 8, 16, 16]``: convolutions, pooling, resizing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.fuzz.deep.net import Net, Port
from tests.fuzz.deep.repeated import Family, Step, binary, concat, convert, fake_quantize, i64, split, transpose

_SHAPE = (1, 8, 16, 16)
_SIDES = {"pads_begin": "1,1", "pads_end": "1,1", "strides": "1,1", "auto_pad": "explicit"}
_WINDOW = {**_SIDES, "dilations": "1,1"}


def _start(net: Net) -> tuple[Port, ...]:
    return (net.parameter(*_SHAPE),)


def _end(net: Net, y: Port) -> Sequence[Port]:
    mean = net.layer("ReduceMean", y, i64(net, 2, 3), data={"keep_dims": True}, shape=(1, 8, 1, 1))
    return [y, net.layer("Sigmoid", mean)]


def _filters(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)


def _convolution(net: Net, x: Port) -> Port:
    y = net.layer("Convolution", x, net.const(_filters(8, 8, 3, 3)), data=_WINDOW)
    return net.layer("ReLU", binary(net, "Add", y, np.ones((1, 8, 1, 1))))


def _residual(net: Net, x: Port) -> Port:
    return binary(net, "Add", _convolution(net, x), x)


def _gated(net: Net, x: Port) -> Port:
    y = net.layer("Convolution", x, net.const(_filters(8, 8, 3, 3)), data=_WINDOW)
    return binary(net, "Multiply", y, net.layer("Sigmoid", y))


def _excited(net: Net, x: Port) -> Port:
    mean = net.layer("ReduceMean", x, i64(net, 2, 3), data={"keep_dims": True}, shape=(1, 8, 1, 1))
    plain = {**_WINDOW, "pads_begin": "0,0", "pads_end": "0,0"}
    gate = net.layer("Convolution", mean, net.const(_filters(8, 8, 1, 1)), data=plain)
    return binary(net, "Multiply", x, net.layer("Sigmoid", gate))


def _depthwise(net: Net, x: Port) -> Port:
    return net.layer("ReLU", net.layer("GroupConvolution", x, net.const(_filters(8, 1, 1, 3, 3)), data=_WINDOW))


def _depthwise_by_a_product(net: Net, x: Port) -> Port:
    """A depthwise convolution whose filters are computed."""
    filters = net.layer("Sigmoid", net.const(_filters(8, 1, 1, 3, 3)))
    return net.layer("GroupConvolution", binary(net, "Add", x, x), filters, data=_WINDOW)


def _deconvolution(net: Net, x: Port) -> Port:
    return net.layer(
        "ConvolutionBackpropData", x, net.const(_filters(8, 8, 3, 3)), data={**_WINDOW, "output_padding": "0,0"}
    )


def _computed_filters(net: Net, x: Port) -> Port:
    """A convolution whose filters depend on the image."""
    mean = net.layer("ReduceMean", x, i64(net, 0, 1, 2, 3), data={"keep_dims": True}, shape=(1, 1, 1, 1))
    return net.layer("Convolution", x, binary(net, "Multiply", mean, _filters(8, 8, 3, 3)), data=_WINDOW)


def _normalized(net: Net, x: Port) -> Port:
    y = net.layer("Convolution", x, net.const(_filters(8, 8, 3, 3)), data=_WINDOW)
    return net.layer("BatchNormInference", y, *(net.const(np.ones(8)) for _ in range(4)), data={"epsilon": 1e-3}, version=5)


def _quantized(net: Net, x: Port) -> Port:
    filters = fake_quantize(net, net.const(_filters(8, 8, 3, 3)), levels=255)
    y = net.layer("Convolution", fake_quantize(net, x), filters, data=_WINDOW)
    return net.layer("ReLU", binary(net, "Add", y, np.ones((1, 8, 1, 1))))


def _quantized_residual(net: Net, x: Port) -> Port:
    return fake_quantize(net, binary(net, "Add", _quantized(net, x), x), 0, 4)


def _stored_bytes(net: Net, x: Port) -> Port:
    codes = convert(net, net.const(np.ones((8, 8, 3, 3)), np.int8), "f32")
    filters = binary(net, "Multiply", codes, np.full((8, 1, 1, 1), 0.01))
    return net.layer("ReLU", net.layer("Convolution", fake_quantize(net, x), filters, data=_WINDOW))


def _pool(type: str) -> Step:
    data = {**_SIDES, "kernel": "3,3", "rounding_type": "floor", "exclude-pad": True}
    return lambda net, x: net.layer(type, binary(net, "Add", x, x), data=data)


def _quantized_pool(net: Net, x: Port) -> Port:
    return fake_quantize(net, _pool("MaxPool")(net, x))


def _resized(mode: str) -> Step:
    def step(net: Net, x: Port) -> Port:
        data = {
            "mode": mode, "shape_calculation_mode": "sizes", "coordinate_transformation_mode": "half_pixel",
            "nearest_mode": "floor", "antialias": False, "pads_begin": "0", "pads_end": "0", "cube_coeff": -0.75,
        }  # fmt: skip
        for size in (32, 16):
            x = net.layer(
                "Interpolate", x, i64(net, size, size), net.const([1.0, 1.0]), i64(net, 2, 3), data=data,
                shape=(1, 8, size, size), version=4,
            )  # fmt: skip
        return x

    return step


def _shuffled(net: Net, x: Port) -> Port:
    return net.layer("ShuffleChannels", binary(net, "Add", x, x), data={"axis": 1, "group": 2})


def _space(net: Net, x: Port) -> Port:
    y = net.layer("SpaceToDepth", x, data={"mode": "blocks_first", "block_size": 2}, shape=(1, 32, 8, 8))
    return net.layer("DepthToSpace", binary(net, "Add", y, y), data={"mode": "blocks_first", "block_size": 2}, shape=_SHAPE)


def _dense(net: Net, x: Port) -> Port:
    first, second = split(net, x, 1, 2)
    return concat(net, 1, binary(net, "Add", first, second), net.layer("ReLU", first))


def _last_channels(net: Net, x: Port) -> Port:
    y = transpose(net, x, 0, 2, 3, 1)
    return transpose(net, binary(net, "Multiply", binary(net, "Add", y, y), np.ones(8)), 0, 3, 1, 2)


def _response(net: Net, x: Port) -> Port:
    data = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": 5}
    return net.layer("LRN", binary(net, "Add", x, x), i64(net, 1), data=data)


def _sampled(net: Net, x: Port) -> Port:
    flow = net.layer("Tanh", net.const(_filters(1, 16, 16, 2)))
    data = {"align_corners": False, "mode": "bilinear", "padding_mode": "zeros"}
    return net.layer("GridSample", binary(net, "Add", x, x), flow, data=data, version=9)


IMAGES = Family(
    _start,
    {
        "convolution": _convolution,
        "residual": _residual,
        "gated convolution": _gated,
        "excitation": _excited,
        "depthwise": _depthwise,
        "depthwise with computed filters": _depthwise_by_a_product,
        "deconvolution": _deconvolution,
        "filters of the image": _computed_filters,
        "convolution and batch norm": _normalized,
        "quantized convolution": _quantized,
        "quantized residual": _quantized_residual,
        "stored bytes": _stored_bytes,
        "maximum pool": _pool("MaxPool"),
        "average pool": _pool("AvgPool"),
        "quantized pool": _quantized_pool,
        "nearest": _resized("nearest"),
        "linear": _resized("linear_onnx"),
        "cubic": _resized("cubic"),
        "shuffle": _shuffled,
        "space to depth": _space,
        "dense block": _dense,
        "channels last": _last_channels,
        "local response": _response,
        "grid sample": _sampled,
    },
    _end,
)
