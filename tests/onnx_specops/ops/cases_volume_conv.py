"""VolumeConv: windows, strides, dilations, pads, groups, slopes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.onnx_specops.ops.case import Case

F = np.float32


def _numbers(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims).astype(F)


def _layer(*nodes: Any, strides: str = "", pads: str = "", dilations: str = "", group: int = 1, slope: float = 1.0) -> Any:
    from openvino import opset1

    x, w, *bias = nodes
    rank = len(x.get_output_partial_shape(0)) - 2

    def listed(text: str, otherwise: list[int]) -> list[int]:
        return [int(part) for part in text.split(",")] if text else otherwise

    both = listed(pads, [0] * 2 * rank)
    arguments = (listed(strides, [1] * rank), both[:rank], both[rank:], listed(dilations, [1] * rank))
    if group == 1:
        y = opset1.convolution(x, w, *arguments)
    else:
        shape = list(w.get_output_shape(0))
        y = opset1.group_convolution(x, opset1.reshape(w, [group, shape[0] // group, *shape[1:]], False), *arguments)
    if bias:
        y = opset1.add(y, opset1.reshape(bias[0], [1, -1, *[1] * rank], False))
    return y if slope == 1 else opset1.prelu(y, np.array([slope], F))


def _case(name: str, x: tuple[int, ...], w: tuple[int, ...], bias: bool = False, **attributes: Any) -> Case:
    inputs = {"X": _numbers(*x), "W": _numbers(*w, seed=1)}
    if bias:
        inputs["bias"] = _numbers(w[0], seed=2)
    return Case("VolumeConv", name, inputs, attributes, layer=_layer, atol=1e-4)


def _error(name: str, message: str, x: tuple[int, ...], w: tuple[int, ...], bias: int = 0, **attributes: Any) -> Case:
    inputs = {"X": _numbers(*x), "W": _numbers(*w, seed=1)}
    if bias:
        inputs["bias"] = _numbers(bias)
    return Case("VolumeConv", name, inputs, attributes, error=f".*{message}")


X = (2, 4, 5, 6, 7)
CASES = [
    _case("plain", X, (6, 4, 3, 3, 3)),
    _case("bias", X, (5, 4, 3, 3, 3), True),  # blocks of four and one
    _case("many_channels", (1, 19, 3, 9, 40), (23, 19, 3, 3, 3), True, pads="1,1,1,1,1,1"),
    _case("pads", X, (6, 4, 3, 3, 3), pads="1,0,2,0,1,3"),
    _case("strides", X, (7, 4, 3, 3, 3), True, strides="2,3,2", pads="1,1,1,1,1,1"),
    _case("stride_beyond_window", (1, 2, 7, 9, 11), (3, 2, 1, 1, 1), strides="3,4,5"),
    _case("dilations", (1, 4, 7, 9, 9), (2, 4, 3, 2, 3), dilations="2,3,2"),
    _case(
        "strides_and_dilations", (1, 3, 9, 9, 12), (3, 3, 2, 3, 3), strides="2,2,3", dilations="3,1,2", pads="2,1,2,1,1,2"
    ),
    _case("along_depth", X, (6, 4, 3, 1, 1), pads="1,0,0,1,0,0"),
    _case("image_of_a_volume", X, (6, 4, 1, 3, 3), pads="0,1,1,0,1,1"),
    _case("depth_of_padding", (1, 4, 1, 6, 7), (6, 4, 3, 3, 3), True, pads="4,1,1,3,1,1"),
    _case("padding_around_everything", (1, 2, 2, 2, 2), (3, 2, 2, 2, 2), pads="3,3,3,2,2,2"),
    _case("whole", X, (9, 4, 5, 6, 7), True),
    _case("one_pixel", (1, 5, 1, 1, 1), (12, 5, 1, 1, 1), True),
    _case("depthwise", X, (4, 1, 3, 3, 3), True, group=4, pads="1,1,1,1,1,1"),
    _case("depthwise_strides", (1, 5, 7, 9, 120), (5, 1, 3, 5, 3), group=5, strides="1,2,2", pads="1,2,1,1,2,1"),
    _case("two_for_each", X, (8, 1, 3, 3, 3), group=4),
    _case("groups", (1, 6, 4, 5, 6), (9, 2, 3, 3, 3), True, group=3, pads="1,1,1,1,1,1"),
    _case("relu", X, (6, 4, 3, 3, 3), True, slope=0.0),
    _case("leaky", X, (6, 4, 3, 3, 3), slope=0.25),
    _case("negative_slope", X, (6, 4, 3, 3, 3), slope=-0.5),
    _case("no_volumes", (0, 4, 5, 6, 7), (6, 4, 3, 3, 3)),
    _case("slices_at_once", (1, 3, 9, 20, 40), (5, 3, 3, 3, 3), strides="2,1,1", pads="1,1,1,1,1,1"),
    _case("far_taps", (1, 2, 6000), (17, 2, 3), True, dilations="2500"),
    _case("line", (2, 4, 130), (11, 4, 5), True, pads="2,2"),
    _case("line_strides", (1, 3, 70), (9, 3, 4), strides="3", dilations="2", pads="0,5", slope=0.0),
    _case("short_line", (1, 40, 3), (9, 40, 3), True, pads="1,1"),
    _case("depthwise_line", (2, 9, 50), (9, 1, 7), True, pads="3,3", group=9),
    _case("image", (2, 4, 9, 33), (10, 4, 3, 3), True, pads="1,1,1,1"),
    _case("image_strides", (1, 4, 19, 23), (6, 4, 5, 3), strides="2,2", pads="2,1,2,1", dilations="1,2"),
    _case("small_groups", (3, 22, 14, 14), (44, 2, 3, 3), True, pads="1,1,1,1", group=11),
    _case("small_groups_of_volumes", (1, 18, 4, 5, 6), (18, 2, 3, 3, 3), strides="2,2,2", pads="1,1,1,1,1,1", group=9),
    _case("large_groups", (1, 10, 130, 190), (10, 1, 3, 3), True, pads="1,1,1,1", group=10, slope=0.5),
    _case("groups_without_outputs", (1, 8, 4, 5), (0, 1, 3, 3), group=8),
    # From 16 output channels on, copies of small images have no positions between lines.
    _case("copies_of_columns", (1, 170, 60, 7), (20, 170, 3, 3), True, pads="1,1,1,1", slope=0.0),
    _case("copies_in_several_parts", (1, 900, 300), (17, 900, 1), True),
    _case("copies_of_chunks", (1, 67, 4, 20, 21), (18, 67, 3, 3, 3), True, pads="1,1,1,1,1,1"),
    _case("copies_with_strides", (2, 21, 9, 19, 23), (33, 21, 3, 3, 3), strides="2,2,2", pads="1,0,1,1,2,0"),
    _case("copies_with_dilations", (1, 12, 5, 15, 15), (16, 12, 2, 3, 3), dilations="3,2,4", pads="1,3,1,2,1,3"),
    _case("copies_of_groups", (2, 60, 8, 9), (54, 20, 3, 3), True, pads="1,1,1,1", group=3),
    _case("copies_for_many_columns", (1, 3, 6, 9), (300, 3, 3, 3), True, slope=0.1),
    _case("copies_of_patches", (1, 2, 80, 120), (16, 2, 40, 40), strides="40,40"),
    _case("copies_of_lines", (1, 130, 500), (17, 130, 5), True, pads="2,2"),
    _case("copies_without_depth", (1, 9, 2, 7, 7), (24, 9, 3, 3, 3), True, pads="3,1,1,3,1,1"),
    _error("error_rank", "expected three to five dimensions each", (1, 4, 5, 6), (6, 4, 3, 3, 3)),
    _error("error_no_dimension", "expected three to five dimensions each", (1, 4), (6, 4)),
    _error("error_four_dimensions", "expected three to five dimensions each", (1, 4, 5, 6, 5, 6), (6, 4, 3, 3, 3, 3)),
    _error("error_channels", "X has 3 channels in 1 groups", (1, 3, 5, 6, 7), (6, 4, 3, 3, 3)),
    _error("error_groups_of_outputs", "X has 4 channels in 4 groups", X, (6, 1, 3, 3, 3), group=4),
    _error("error_bias", r"bias has the shape \[5\] instead of \[6\]", X, (6, 4, 3, 3, 3), 5),
    _error("error_few_pixels", "X, padded, has 6 pixels along axis 3", X, (6, 4, 3, 7, 3)),
    _error("error_strides", "strides has 2 numbers instead of 3", X, (6, 4, 3, 3, 3), strides="1,1"),
    _error("error_letters", "is not a list of integers", X, (6, 4, 3, 3, 3), pads="1,a,1,1,1,1"),
    _error("error_no_stride", "must be at least 1", X, (6, 4, 3, 3, 3), strides="1,0,1"),
]
