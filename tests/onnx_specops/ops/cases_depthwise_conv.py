"""DepthwiseConv: windows, strides, dilations, pads, dimensions, errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.onnx_specops.ops.case import Case

F = np.float32


def _numbers(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims).astype(F)


def _layer(*nodes: Any, channels: int, kernel: str, strides: str = "", pads: str = "", dilations: str = "") -> Any:
    from openvino import opset1

    rank = kernel.count(",") + 1

    def listed(text: str, otherwise: int, count: int) -> list[int]:
        return [int(part) for part in text.split(",")] if text else [otherwise] * count

    x, w, *bias = nodes
    both = listed(pads, 0, 2 * rank)
    first = opset1.transpose(x, [0, rank + 1, *range(1, rank + 1)])
    filters = opset1.unsqueeze(opset1.transpose(w, [rank, *range(rank)]), [1, 2])
    y = opset1.group_convolution(
        first, filters, listed(strides, 1, rank), both[:rank], both[rank:], listed(dilations, 1, rank)
    )
    y = opset1.transpose(y, [0, *range(2, rank + 2), 1])
    return opset1.add(y, bias[0]) if bias else y


def _case(name: str, x: tuple[int, ...], window: tuple[int, ...], bias: bool = False, **attributes: Any) -> Case:
    inputs = {"X": _numbers(*x), "W": _numbers(*window, x[-1], seed=1)}
    if bias:
        inputs["bias"] = _numbers(x[-1], seed=2)
    stated = {"channels": x[-1], "kernel": ",".join(map(str, window))}
    return Case("DepthwiseConv", name, inputs, stated | attributes, layer=_layer, atol=1e-4)


def _error(name: str, message: str, x: tuple[int, ...], w: tuple[int, ...], bias: int = 0, **attributes: Any) -> Case:
    inputs = {"X": _numbers(*x), "W": _numbers(*w, seed=1)}
    if bias:
        inputs["bias"] = _numbers(bias)
    stated = {"channels": w[-1], "kernel": ",".join(map(str, w[:-1]))}
    return Case("DepthwiseConv", name, inputs, stated | attributes, error=f".*{message}")


X = (2, 6, 7, 5)
CASES = [
    _case("plain", X, (3, 3)),
    _case("bias", X, (3, 3), True, pads="1,1,1,1"),
    _case("one_pack", (1, 9, 11, 16), (3, 3), True, pads="1,1,1,1"),
    _case("two_packs", (1, 5, 6, 32), (5, 5), pads="2,2,2,2"),
    _case("more_channels", (1, 5, 13, 55), (3, 3), True, pads="1,1,1,1"),
    _case("some_channels_again", (2, 4, 6, 17), (3, 2), True, pads="1,1,0,1"),
    _case("pads", X, (3, 3), pads="0,2,1,3"),
    _case("strides", (1, 9, 14, 20), (3, 3), True, strides="2,3", pads="1,1,1,1"),
    _case("stride_beyond_window", (1, 7, 9, 3), (1, 1), strides="3,4"),
    _case("dilations", (1, 9, 12, 18), (3, 2), dilations="2,3", pads="2,1,2,2"),
    _case("strides_and_dilations", (1, 11, 12, 4), (2, 3), strides="2,2", dilations="3,2", pads="1,2,2,1"),
    _case("larger_than_the_image", (1, 3, 3, 8), (7, 7), True, pads="3,3,3,3"),
    _case("padding_around_everything", (1, 2, 2, 3), (2, 2), pads="3,3,2,2"),
    _case("whole", X, (6, 7), True),
    _case("one_pixel", (1, 1, 1, 9), (1, 1), True),
    _case("line", (2, 40, 21), (9,), True, pads="4,4"),
    _case("line_strides", (1, 40, 6), (4,), strides="3", dilations="2", pads="1,2"),
    _case("volume", (1, 4, 5, 6, 19), (3, 2, 3), True, strides="1,2,1", pads="1,0,1,1,1,1"),
    _case("volume_dilations", (1, 6, 5, 6, 2), (3, 2, 3), dilations="2,1,2", pads="2,0,2,2,1,2"),
    _case("no_images", (0, 6, 7, 5), (3, 3)),
    _error("error_rank", r"X has the shape \[1, 4, 5\]; expected 4 dimensions, the last of 5", (1, 4, 5), (3, 3, 5)),
    _error(
        "error_channels", r"X has the shape \[1, 6, 7, 4\]; expected 4 dimensions, the last of 5", (1, 6, 7, 4), (3, 3, 5)
    ),
    _error("error_weights", r"W has the shape \[3, 3, 5\] instead of \[3, 2, 5\]", X, (3, 3, 5), kernel="3,2"),
    _error("error_bias", r"bias has the shape \[4\] instead of \[5\]", X, (3, 3, 5), 4),
    _error("error_window", "X, padded, has 6 pixels along axis 1", X, (7, 3, 5)),
    _error("error_empty_window", "X, padded, has 6 pixels along axis 1", X, (0, 3, 5)),
    _error("error_stride", "strides and dilations must be at least 1", X, (3, 3, 5), strides="0,1"),
    _error("error_pads", "pads has 2 numbers instead of 4", X, (3, 3, 5), pads="1,1"),
    _error("error_list", "strides = 'a' is not a list of integers", X, (3, 3, 5), strides="a"),
    _error("error_dimensions", "kernel.* has 4 numbers", X, (3, 3, 5), kernel="1,1,1,1"),
]
