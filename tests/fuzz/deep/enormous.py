"""Constants and values of enormous sizes, which the files describe in a few bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.deep.net import Net, Port
from tests.fuzz.deep.repeated import DOUBLED, Step, binary, concat, convert, i64, matmul, number, transpose

Maker = Callable[[], tuple[bytes, bytes]]
_MILLION, _MANY, _MOST = 2**20, 2**40, 2**62


def _row(net: Net) -> Port:
    return net.const(np.arange(4))


def _grown(step: Callable[[Net, Port], Port], count: int) -> Step:
    def repeated(net: Net, x: Port) -> Port:
        for _ in range(count):
            x = step(net, x)
        return x

    return repeated


def _joined(net: Net, x: Port) -> Port:
    return concat(net, 0, x, x)


def _tiled(net: Net, x: Port) -> Port:
    return net.layer("Tile", x, i64(net, 2), shape=[2 * x.shape[0]])


def _outer(net: Net, x: Port) -> Port:
    """The product of a column and a row, as a row."""
    n = min(x.shape[0], 2**31)
    columns = net.layer("Unsqueeze", x, i64(net, 1), shape=[n, 1])
    rows = net.layer("Unsqueeze", x, i64(net, 0), shape=[1, n])
    whole = binary(net, "Multiply", columns, rows)
    return net.layer("Reshape", whole, i64(net, -1), data={"special_zero": False}, shape=[min(n * n, 2**62)])


def _padded(net: Net, x: Port) -> Port:
    data, n = {"pad_mode": "constant"}, x.shape[0]
    return net.layer("Pad", x, i64(net, 0), i64(net, n), net.const(0), data=data, shape=[2 * n])


def _broadcast(net: Net, size: int) -> Port:
    return net.layer("Broadcast", net.const(1), i64(net, size), data={"mode": "numpy"}, shape=[size], version=3)


def _range(net: Net, size: int) -> Port:
    given = (number(net, k) for k in (0, size, 1))
    return net.layer("Range", *given, data={"output_type": "f32"}, shape=[size], kind="f32", version=4)


def _one_hot(net: Net, size: int) -> Port:
    given = (i64(net, 0, 1), number(net, size), net.const(1), net.const(0))
    return net.layer("OneHot", *given, data={"axis": -1}, shape=[2, size], kind="f32")


def _pad(net: Net, size: int) -> Port:
    data = {"pad_mode": "constant"}
    return net.layer("Pad", _row(net), i64(net, 0), i64(net, size), net.const(0), data=data, shape=[size + 4])


def _tile(net: Net, size: int) -> Port:
    return net.layer("Tile", _row(net), i64(net, size), shape=[4 * size])


def _eye(net: Net, size: int) -> Port:
    given = (number(net, size), number(net, size), number(net, 0))
    return net.layer("Eye", *given, data={"output_type": "f32"}, shape=[size, size], kind="f32", version=9)


def _random(net: Net, size: int) -> Port:
    data = {"output_type": "f32", "global_seed": 1, "op_seed": 2}
    return net.layer(
        "RandomUniform", i64(net, size), net.const(0), net.const(1), data=data, shape=[size], kind="f32", version=8
    )


def _resized(net: Net, size: int) -> Port:
    data = {"mode": "nearest", "shape_calculation_mode": "sizes", "pads_begin": "0", "pads_end": "0"}
    x = net.const(np.ones((1, 1, 2, 2)))
    given = (i64(net, size, 2), net.const([1.0, 1.0]), i64(net, 2, 3))
    return net.layer("Interpolate", x, *given, data=data, shape=[1, 1, size, 2], version=4)


def _priors(net: Net, size: int) -> Port:
    data = {"width": "16", "height": "16", "clip": False, "step": 16, "offset": 0.5, "variance": "0.1"}
    data |= {"step_w": 16, "step_h": 16}
    return net.layer(
        "PriorBoxClustered", i64(net, size, size), i64(net, 10, 10), data=data, shape=[2, 4 * size * size], kind="f32"
    )


def _window(net: Net, size: int) -> Port:
    """A pool whose padding is enormous."""
    data: dict[str, Any] = {"kernel": "2,2", "strides": "1,1", "pads_begin": f"{size},1", "pads_end": "1,1"}
    data |= {"rounding_type": "floor", "auto_pad": "explicit", "exclude-pad": False}
    return net.layer("AvgPool", net.parameter(1, 1, 8, 8), data=data, shape=[1, 1, size + 8, 9])


def _kernel(net: Net, size: int) -> Port:
    data: dict[str, Any] = {"kernel": f"{size},{size}", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    data |= {"rounding_type": "floor", "auto_pad": "same_upper", "exclude-pad": False}
    return net.layer("AvgPool", net.parameter(1, 1, 8, 8), data=data)


def _signal(net: Net, size: int) -> Port:
    return net.layer("RDFT", net.parameter(1, 8), i64(net, 1), i64(net, size), shape=[1, size // 2 + 1, 2], version=9)


def _largest(net: Net, size: int) -> Port:
    data = {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i64"}
    shapes, kinds = [[size]] * 2, ["f32", "i64"]
    found: list[Port] = net.layer(
        "TopK", net.parameter(-1), number(net, size), data=data, shapes=shapes, kinds=kinds, version=3
    )
    return found[0]


def _input(net: Net, size: int) -> Port:
    return net.layer("ReLU", net.parameter(size, size))


def _input_product(net: Net, size: int) -> Port:
    x = net.parameter(1, size)
    return matmul(net, net.layer("Softmax", x, data={"axis": 1}, version=8), net.layer("Transpose", x, i64(net, 1, 0),
                  shape=[size, 1]))  # fmt: skip


def _reshaped(net: Net, size: int) -> Port:
    return net.layer("Reshape", net.parameter(-1), i64(net, size, -1), data={"special_zero": False}, shape=[size, -1])


def _extended(net: Net, size: int) -> Port:
    """A value whose size grows with each step."""
    x = net.parameter(4)
    return _grown(_joined, min(size.bit_length(), 60))(net, x)


def _split(net: Net, size: int) -> Port:
    return net.layer("Split", net.parameter(8), number(net, 0), data={"num_splits": size}, shapes=[[1]] * 8)[0]


def _boxes(net: Net, size: int) -> Port:
    given = (net.parameter(1, 4, 4), net.parameter(1, 1, 4), number(net, size), net.const(0.5), net.const(0.5))
    data = {"box_encoding": "corner", "sort_result_descending": True, "output_type": "i64"}
    shapes, kinds = [[-1, 3], [-1, 3], [1]], ["i64", "f32", "i64"]
    found: list[Port] = net.layer("NonMaxSuppression", *given, data=data, shapes=shapes, kinds=kinds, version=5)
    return found[1]


def _grid(net: Net, size: int) -> Port:
    data = {"pooled_h": size, "pooled_w": size, "sampling_ratio": size, "spatial_scale": 1.0, "mode": "avg"}
    given = (net.parameter(1, 1, 8, 8), net.parameter(2, 4), net.parameter(2, kind="i64"))
    return net.layer("ROIAlign", *given, data=data, shape=[2, 1, size, size], version=3)


def _images(net: Net, size: int) -> Port:
    data = {"sizes": f"{size},{size}", "strides": "1,1", "rates": "1,1", "auto_pad": "same_upper"}
    return net.layer("ExtractImagePatches", net.parameter(1, 1, 8, 8), data=data, shape=[1, -1, 8, 8], version=3)


def _dilated(net: Net, size: int) -> Port:
    data = {"pads_begin": "0,0", "pads_end": "0,0", "strides": f"{size},1", "dilations": "1,1", "auto_pad": "explicit"}
    data |= {"output_padding": "0,0"}
    weights = net.const(np.ones((1, 1, 3, 3)))
    shape = [1, 1, 7 * size + 3, 10]
    return net.layer("ConvolutionBackpropData", net.parameter(1, 1, 8, 8), weights, data=data, shape=shape)


_SIZED: dict[str, Callable[[Net, int], Port]] = {
    "broadcast": _broadcast,
    "range": _range,
    "one hot": _one_hot,
    "pad": _pad,
    "tile": _tile,
    "eye": _eye,
    "random": _random,
    "resized": _resized,
    "priors": _priors,
    "padding": _window,
    "kernel": _kernel,
    "signal": _signal,
    "largest": _largest,
    "input": _input,
    "product of an input": _input_product,
    "reshaped": _reshaped,
    "concat of an input": _extended,
    "splits": _split,
    "boxes": _boxes,
    "grid": _grid,
    "patches": _images,
    "strides": _dilated,
}


def _consumed(net: Net, x: Port) -> Port:
    """Add layers that are folded for constants."""
    y = binary(net, "Add", convert(net, x, "f32"), 1.0)
    y = binary(net, "Multiply", y, y)
    return transpose(net, y, *reversed(range(len(y.shape))))


_USED: dict[str, Step] = {"result": lambda net, x: x, "consumers": _consumed}


def _makers() -> dict[str, Maker]:
    found: dict[str, Maker] = {}

    def add(name: str, make: Callable[[Net], Port]) -> None:
        for use, step in _USED.items():

            def files(make: Callable[[Net], Port] = make, step: Step = step) -> tuple[bytes, bytes]:
                net = Net()
                net.result(step(net, make(net)))
                return net.files()

            found[f"{name}, {use}"] = files

    for name, make in _SIZED.items():
        for size in (10_000, _MILLION, 2**28, _MANY, _MOST):
            add(f"{name} of {size}", lambda net, make=make, size=size: make(net, size))
    for name, step, counts in (
        ("concat", _joined, (24, DOUBLED, 60)),
        ("tile", _tiled, (24, DOUBLED, 60)),
        ("pad", _padded, (24, DOUBLED, 60)),
        ("outer product", _outer, (3, 4, 6)),
    ):
        for count in counts:
            add(f"{name} {count} times", lambda net, step=step, count=count: _grown(step, count)(net, _row(net)))
    return found


MAKERS = _makers()
