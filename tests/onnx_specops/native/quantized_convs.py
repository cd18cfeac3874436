"""Convolutions of QuantizedConv: the cases of all its forms, and random ones for each way to compute the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from onnx_specops.domain import find
from tests.onnx_specops.native.nodes import Node, element_type
from tests.onnx_specops.ops.cases_quantized_conv import CASES


class Case:
    """A node, and the results of the NumPy kernel.

    Args:
        name: for messages.
        arrays: the inputs; ``None`` for omitted ones.
        attributes: the attributes.
        exact: whether the results are exact; by default, those of integers without transcendental functions.
    """

    def __init__(
        self, name: str, arrays: Sequence[np.ndarray | None], attributes: dict[str, Any], exact: bool | None = None
    ) -> None:
        self._name = name
        self._exact = exact
        self.node: Node = ("QuantizedConv", list(arrays), [element_type(arrays[5])], dict(attributes))

    @cached_property
    def expected(self) -> np.ndarray:
        operator = find("QuantizedConv")
        _, arrays, _, attributes = self.node
        result: np.ndarray = operator(*arrays, **operator.node_attributes(attributes))
        return result

    def check(self, outputs: Sequence[np.ndarray]) -> None:
        (got,) = outputs
        integers = self.expected.dtype == np.uint8
        exact = self._exact
        if exact is None:
            exact = integers and self.node[3].get("function", "none") in ("none", "clip", "prelu")
        if exact:
            np.testing.assert_array_equal(got, self.expected, err_msg=self._name)
        else:
            atol = 1.01 if integers else 1e-4
            np.testing.assert_allclose(got.astype(np.float64), self.expected, rtol=1e-5, atol=atol, err_msg=self._name)


def sums(name: str, x: np.ndarray, w: np.ndarray, zeros: np.ndarray, attributes: dict[str, Any]) -> Case:
    columns = len(w)
    arrays = [x, w, np.ones(columns, np.float32), np.zeros(columns, np.float32), zeros, np.asarray(np.float32(0))]
    return Case(name, arrays, attributes, exact=True)


def with_addition(
    rng: np.random.Generator, name: str, arrays: list[np.ndarray], attributes: dict[str, Any]
) -> Iterator[Case]:
    plain = Case(name, arrays, attributes)
    scale, addend_scale = 100 * arrays[2], 90 * arrays[2]
    addend = rng.integers(0, 256, plain.expected.shape).astype(np.uint8)
    added = [*arrays, None, None, addend, addend_scale, np.asarray(np.uint8(99)), scale, arrays[5]]
    yield plain
    yield Case(f"{name}, addition", added, attributes)


def of_all_forms() -> Iterator[Case]:
    for case in CASES:
        if not case.error:
            yield Case(case.id, [case.inputs.get(name) for name in find(case.op).inputs], dict(case.attributes))


def columns_that_leave_over(rng: np.random.Generator) -> Iterator[Case]:
    """Every number of columns that a vector may leave over."""
    for columns in (*range(1, 36), 63, 64, 65):
        for depthwise in (False, True):
            channels = columns if depthwise else 5
            count = int(rng.integers(1, 20))
            x, addend = (rng.integers(0, 256, (1, count, size)).astype(np.uint8) for size in (channels, columns))
            w = rng.integers(-128, 128, (columns, 1 if depthwise else channels, 1)).astype(np.int8)
            zeros = rng.integers(0, 256, (2, columns)).astype(np.uint8)
            factors = rng.uniform(0.01, 0.02, (4, columns)).astype(np.float32)
            arrays = [
                x,
                w,
                factors[0],
                factors[1],
                np.uint8(7),
                zeros[0],
                None,
                None,
                addend,
                factors[2] * 40,
                np.uint8(99),
                factors[3] * 40,
                zeros[1],
                rng.standard_normal(columns).astype(np.float32),
                (30 * rng.standard_normal(columns)).astype(np.float32) if columns % 2 else None,
            ]
            arrays = [None if array is None else np.asarray(array) for array in arrays]
            attributes = {"channels": channels, "kernel": "1", "group": columns if depthwise else 1}
            yield Case(str(columns), arrays, attributes)
            residual = rng.standard_normal((1, count, columns)).astype(np.float32)
            slope = arrays[13] if columns % 3 else None
            floats = [*arrays[:5], np.zeros(1, np.float32), *[None] * 7, slope, *[None] * 3, residual]
            yield Case(f"{columns}, residual", floats, attributes)


def weights_in_pieces(rng: np.random.Generator) -> Iterator[Case]:
    """Weights of which a piece of the work has a part."""
    for channels, columns in ((300, 130), (301, 290), (64, 1100)):
        x, addend = (rng.integers(0, 256, (1, 41, size)).astype(np.uint8) for size in (channels, columns))
        w = rng.integers(-128, 128, (columns, channels, 2)).astype(np.int8)
        zeros = rng.integers(0, 256, (2, columns)).astype(np.uint8)
        factors = rng.uniform(0.0001, 0.0002, (2, columns)).astype(np.float32)
        arrays = [
            x,
            w,
            factors[0],
            factors[1],
            np.uint8(7),
            zeros[0],
            None,
            None,
            addend,
            factors[1] * 2000,
            np.uint8(99),
            factors[0] * 2000,
            zeros[1],
        ]
        arrays = [None if array is None else np.asarray(array) for array in arrays]
        yield Case(f"{columns} columns", arrays, {"channels": channels, "kernel": "2", "pads": "1,0"})


def depths_and_lines(rng: np.random.Generator) -> Iterator[Case]:
    """Depths that leave over parts of tiles, and pixels at the ends of lines, which are not equally far apart."""
    for channels in (4, 20, 60, 64, 68, 96, 128, 132, 200):
        for width, stride, dilation in ((1, 1, 1), (1, 2, 1), (2, 1, 1), (3, 1, 1), (3, 2, 2)):
            columns, height, line = int(rng.integers(1, 70)), int(rng.integers(1, 6)), int(rng.integers(5, 50))
            pad = int(rng.integers(0, 2)) * (width - 1)
            x = rng.integers(0, 256, (1, height, line, channels)).astype(np.uint8)
            w = rng.integers(-128, 128, (columns, channels, 1, width)).astype(np.int8)
            zeros = rng.integers(0, 256, (2, max(columns, channels))).astype(np.uint8)
            factors = rng.uniform(0.0001, 0.001, (2, columns)).astype(np.float32)
            arrays = [x, w, factors[0], factors[1], zeros[0, :channels], zeros[1, :columns]]
            attributes = {
                "channels": channels,
                "kernel": f"1,{width}",
                "strides": f"1,{stride}",
                "dilations": f"1,{dilation}",
                "pads": f"0,{pad},0,0",
            }
            yield Case(f"{channels} channels, {columns} columns, width {width}", arrays, attributes)


def rows(rng: np.random.Generator) -> Iterator[Case]:
    """Rows, which fill one or two tiles."""
    for count in range(1, 70):
        x = rng.integers(0, 256, (1, count, 64)).astype(np.uint8)
        w = rng.integers(-128, 128, (40, 64, 1)).astype(np.int8)
        factors = rng.uniform(0.0001, 0.001, (2, 40)).astype(np.float32)
        yield Case(
            f"{count} rows",
            [x, w, factors[0], factors[1], np.array(3, np.uint8), np.array(128, np.uint8)],
            {"channels": 64, "kernel": "1"},
        )


def small_groups(rng: np.random.Generator) -> Iterator[Case]:
    """Small groups."""
    for channels, columns, groups in ((4, 4, 8), (1, 2, 6), (3, 5, 7), (8, 8, 3), (2, 1, 40), (5, 17, 2)):
        x = rng.integers(0, 256, (1, 7, 9, channels * groups)).astype(np.uint8)
        w = rng.integers(-128, 128, (columns * groups, channels, 3, 2)).astype(np.int8)
        zeros = rng.integers(0, 256, (columns + channels) * groups).astype(np.uint8)
        factors = rng.uniform(0.001, 0.002, (2, columns * groups)).astype(np.float32)
        arrays = [x, w, factors[0], factors[1], zeros[: channels * groups], zeros[channels * groups :]]
        yield Case(
            f"{groups} groups", arrays, {"channels": channels * groups, "kernel": "3,2", "pads": "1,0,1,1", "group": groups}
        )


def geometries(rng: np.random.Generator) -> Iterator[Case]:
    """Geometries: lines of which only some positions are results, images, volumes, groups, and windows far apart."""
    for channels, columns, groups, kernel, strides, dilations, pads, size in (
        (3, 16, 1, (7, 7), (1, 1), (1, 1), (3, 3, 3, 3), (20, 37)),
        (3, 33, 1, (7, 7), (2, 2), (1, 1), (3, 3, 3, 3), (21, 38)),
        (1, 5, 1, (3, 3), (2, 1), (1, 1), (0, 2, 1, 0), (9, 40)),
        (16, 16, 1, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), (7, 7)),
        (48, 20, 1, (3, 3), (3, 2), (2, 1), (2, 1, 0, 1), (14, 15)),
        (8, 8, 1, (3, 3), (1, 1), (9, 9), (9, 9, 9, 9), (6, 6)),
        (24, 24, 1, (2, 3), (5, 7), (1, 1), (0, 0, 0, 0), (11, 16)),
        (20, 12, 1, (2, 2), (60, 70), (1, 1), (90, 90, 90, 90), (4, 5)),
        (40, 33, 1, (1, 1), (2, 2), (1, 1), (0, 0, 0, 0), (9, 11)),
        (6, 4, 1, (1, 1), (1, 1), (1, 1), (1, 0, 2, 3), (4, 5)),
        (16, 24, 3, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), (9, 10)),
        (17, 40, 2, (3, 3), (1, 1), (1, 2), (1, 2, 1, 2), (8, 9)),
        (64, 64, 2, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), (5, 7)),
        (5, 7, 1, (3, 3, 3), (2, 2, 1), (1, 1, 1), (1, 1, 1, 1, 1, 1), (5, 6, 17)),
        (4, 40, 2, (3, 2, 3), (1, 3, 2), (2, 1, 1), (2, 0, 1, 2, 1, 1), (6, 7, 18)),
        (70, 40, 1, (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), (3, 4)),
        (65, 40, 1, (1,), (1,), (1,), (0, 0), (2,)),
    ):
        for images in (1, 3):
            x = rng.integers(0, 256, (images, *size, channels * groups)).astype(np.uint8)
            w = rng.integers(-128, 128, (columns * groups, channels, *kernel)).astype(np.int8)
            zeros = rng.integers(0, 256, (2, max(columns, channels) * groups)).astype(np.uint8)
            factors = rng.uniform(0.0001, 0.001, (2, columns * groups)).astype(np.float32)
            texts = {
                name: ",".join(map(str, numbers))
                for name, numbers in (("kernel", kernel), ("strides", strides), ("dilations", dilations), ("pads", pads))
            }
            arrays = [x, w, factors[0], factors[1], zeros[0, : channels * groups], zeros[1, : columns * groups]]
            attributes = {"channels": channels * groups, "group": groups, **texts}
            yield Case(f"{channels} channels, {texts}", arrays, attributes)
            offsets = [rng.uniform(-0.5, 0.5, size).astype(np.float32) for size in (channels * groups, columns * groups)]
            yield Case(f"{channels} channels, {texts}, offsets", [*arrays, *[None] * 9, *offsets], attributes)


def depthwise(rng: np.random.Generator) -> Iterator[Case]:
    """Channels that leave over parts of vectors, which extend beyond the last pixel."""
    for channels in (1, 3, 15, 16, 17, 24, 32, 33, 40, 48, 49, 64, 65, 80, 100):
        for width, stride in ((2, 1), (3, 1), (3, 2), (4, 2), (5, 1), (5, 2), (7, 1), (7, 2), (9, 1), (3, 3)):
            height, line = int(rng.integers(1, 4)), int(rng.integers(1, 40))
            before, after = (int(rng.integers(0, width)) for _ in range(2))
            line = max(line, width - before - after)
            x = rng.integers(0, 256, (2, height + 1, line, channels)).astype(np.uint8)
            w = rng.integers(-128, 128, (channels, 1, height, width)).astype(np.int8)
            zeros = rng.integers(0, 256, (2, channels)).astype(np.uint8)
            factors = rng.uniform(0.001, 0.01, (2, channels)).astype(np.float32)
            for zero in (zeros[1], np.float32(0)):
                arrays = [x, w, factors[0], factors[1], zeros[0], np.asarray(zero)]
                attributes = {
                    "channels": channels,
                    "kernel": f"{height},{width}",
                    "strides": f"1,{stride}",
                    "group": channels,
                    "pads": f"0,{before},{height - 1},{after}",
                    "beta": 100.0,
                    "function": "clip" if zero is zeros[1] else "none",
                }
                yield Case(f"{channels} channels, width {width}, stride {stride}", arrays, attributes)
                offsets = [rng.uniform(-0.5, 0.5, channels).astype(np.float32) for _ in range(2)]
                yield Case(f"{channels} channels, width {width}, offsets", [*arrays, *[None] * 9, *offsets], attributes)
            arrays = [x, w, factors[0], factors[1], zeros[0], zeros[1]]
            yield from with_addition(
                rng, f"{channels} channels, width {width}, stride {stride}", arrays, {**attributes, "function": "none"}
            )


def groups(rng: np.random.Generator) -> Iterator[Case]:
    """Groups, whose rows are not copied if their numbers of channels are even, or if several together are."""
    for _ in range(16):
        groups, channels, columns = (
            int(rng.integers(2, 20)),
            int(rng.choice([2, 3, 4, 6, 8, 16, 20])),
            int(rng.integers(1, 26)),
        )
        kernel, strides, dilations = ([int(number) for number in rng.integers(1, most, 2)] for most in (4, 4, 3))
        size, pads = [int(number) for number in rng.integers(5, 20, 2)], [int(number) for number in rng.integers(0, 3, 4)]
        x = rng.integers(0, 256, (int(rng.integers(1, 3)), *size, channels * groups)).astype(np.uint8)
        w = rng.integers(-128, 128, (columns * groups, channels, *kernel)).astype(np.int8)
        zeros = rng.integers(0, 256, (2, max(columns, channels) * groups)).astype(np.uint8)
        factors = rng.uniform(0.0001, 0.001, (2, columns * groups)).astype(np.float32)
        texts = {
            name: ",".join(map(str, numbers))
            for name, numbers in (("kernel", kernel), ("strides", strides), ("dilations", dilations), ("pads", pads))
        }
        attributes = {"channels": channels * groups, "group": groups, **texts}
        arrays = [x, w, factors[0], 1000 * factors[1], zeros[0, : channels * groups], zeros[1, : columns * groups]]
        name = f"{groups} groups, {channels} channels, {columns} columns, {texts}"
        yield sums(name, x, w, arrays[4], attributes)
        yield from with_addition(rng, name, arrays, attributes)
        yield Case(f"{name}, swish", arrays, {**attributes, "function": "swish", "alpha": 1.0})


def one_pixel(rng: np.random.Generator) -> Iterator[Case]:
    """Windows of one pixel, whose constants are those of several pixels, and numbers of more than 32 bits."""
    for channels in (1, 3, 7, 8, 16, 24, 36, 65, 100, 1001):
        for scale in (0.01, 1e9):
            for columns in (channels, 20):
                depthwise = columns == channels
                x = rng.integers(0, 256, (2, int(rng.integers(1, 40)), channels)).astype(np.uint8)
                w = rng.integers(-128, 128, (columns, 1 if depthwise else channels, 1)).astype(np.int8)
                zeros = rng.integers(0, 256, columns + channels).astype(np.uint8)
                numbers = (scale * rng.uniform(0.1, 1, (4, columns))).astype(np.float32)
                arrays = [x, w, numbers[0], numbers[1], zeros[:channels], zeros[channels:]]
                attributes = {"channels": channels, "kernel": "1", "group": channels if depthwise else 1}
                yield Case(f"{channels} channels", arrays, attributes)
                clipped = {**attributes, "function": "clip", "alpha": -20.0, "beta": 30.0}
                yield Case(f"{channels} channels, clipped", arrays, clipped)
                yield Case(f"{channels} channels, far limits", arrays, {**clipped, "alpha": 1e12, "beta": 1e13})
                yield Case(f"{channels} channels, low limits", arrays, {**clipped, "alpha": -1e13, "beta": -1e12})
                offsets = [rng.uniform(-0.5, 0.5, size).astype(np.float32) for size in (channels, columns)]
                yield Case(f"{channels} channels, offsets", [*arrays, *[None] * 9, *offsets], attributes)
                if scale < 1:
                    floats = [*arrays[:5], np.asarray(np.float32(0)), numbers[2], numbers[3]]
                    yield Case(f"{channels} channels, floats", floats, {**attributes, "function": "prelu"})
                    yield Case(f"{channels} channels, swish", arrays, {**attributes, "function": "swish", "alpha": 1.0})


def winograd(rng: np.random.Generator) -> Iterator[Case]:
    """Winograd's algorithm: windows of 3 x 3 neighboring pixels, whose sums are exact. Images have parts of tiles.

    Some numbers are the largest that fit the sums of tiles of 4 x 4 (255 * 9 * 127 * 115 < 2^25), and others fit only those
    of 2 x 2.
    """
    for case in range(90):
        groups, volume = int(rng.choice([1, 1, 1, 2, 5])), case % 6 == 5
        channels = (
            int(rng.choice([2, 3, 8, 16, 18, 24, 33, 50, 64, 115, 116, 128])) if groups == 1 else int(rng.integers(1, 19))
        )
        columns, images = int(rng.integers(1, 70)), int(rng.integers(1, 4))
        size = [int(number) for number in rng.integers(1, 23, 2)]
        kernel, strides, dilations, pads = [3, 3], [1, 1], [1, 1], [int(number) for number in rng.integers(0, 4, 4)]
        pads = [max(pad, 3 - pixels) for pad, pixels in zip(pads, size + size, strict=True)]
        if volume:
            size, kernel = [int(rng.integers(3, 6)), *size], [int(rng.integers(1, 4)), *kernel]
            strides, dilations = ([int(rng.integers(1, 3)), *numbers] for numbers in (strides, dilations))
            pads = [1, *pads[:2], 1, *pads[2:]]
        x = rng.integers(0, 256, (images, *size, channels * groups)).astype(np.uint8)
        w = rng.integers(-128, 128, (columns * groups, channels, *kernel)).astype(np.int8)
        if case % 5 == 0:
            x[:] = np.where(rng.random(x.shape) < 0.1, 0, 255)
            w[::2], w[1::2] = 127, -127
        zeros = rng.integers(0, 256, (2, max(columns, channels) * groups)).astype(np.uint8)
        texts = {
            name: ",".join(map(str, numbers))
            for name, numbers in (("kernel", kernel), ("strides", strides), ("dilations", dilations), ("pads", pads))
        }
        attributes = {"channels": channels * groups, "group": groups, **texts}
        name = f"Winograd, {channels} channels, {columns} columns, {groups} groups, {images} images, {size}, {texts}"
        yield sums(name, x, w, zeros[0, : channels * groups], attributes)
        factors = rng.uniform(0.0001, 0.001, (3, columns * groups)).astype(np.float32)
        arrays = [x, w, factors[0], 1000 * factors[1], zeros[0, : channels * groups], zeros[1, : columns * groups]]
        yield from with_addition(rng, name, arrays, attributes)
        offsets = [rng.uniform(-0.5, 0.5, count * groups).astype(np.float32) for count in (channels, columns)]
        yield Case(f"{name}, offsets", [*arrays, *[None] * 9, *offsets], attributes)


def narrow(rng: np.random.Generator) -> Iterator[Case]:
    """Products of bytes without VNNI: sums of four products that fit 16 bits, sums of two, and blocks without such sums.

    Some are at the limits (255 * 128). Orders, rows, columns and depths leave over parts.
    """
    for case in range(120):
        groups = int(rng.choice([1, 1, 1, 2]))
        channels, columns = (
            int(rng.choice(numbers)) for numbers in ([16, 33, 50, 64, 100, 128, 256, 530], [1, 7, 8, 9, 16, 17, 40, 64, 70])
        )
        size, (kernel, stride) = (
            [int(number) for number in rng.integers(2, 9, 2)],
            (int(rng.integers(1, 3)) for _ in range(2)),
        )
        x = rng.integers(0, 256, (1, *size, channels * groups)).astype(np.uint8)
        shape = (columns * groups, channels, kernel, kernel)
        w = rng.standard_normal(shape) * rng.choice([3, 12, 25, 45])
        w[rng.random(shape) < 0.01] = rng.choice([127, -128])
        if case % 4 == 0:
            x[:] = np.where(rng.random(x.shape) < 0.1, 0, 255)
        if case % 8 == 0:
            w[:] = rng.choice([32, -32, 64, -64, 127, -127], (1, 1, 1, 1)) * rng.choice([1, 1, 1, -1], (shape[0], 1, 1, 1))
        if case % 8 == 1:
            w[:, ::2] = 1  # the other half of each pair may be as large as 127
            w[:, 1::2] = 127 * rng.choice([1, -1], w[:, 1::2].shape)
        w = np.clip(np.round(w), -128, 127).astype(np.int8)
        zeros = rng.integers(0, 256, (2, max(columns, channels) * groups)).astype(np.uint8)
        attributes = {
            "channels": channels * groups,
            "group": groups,
            "kernel": f"{kernel},{kernel}",
            "strides": f"{stride},{stride}",
        }
        name = f"narrow, {channels} channels, {columns} columns, {groups} groups, {size}, kernel {kernel}, stride {stride}"
        yield sums(name, x, w, zeros[0, : channels * groups], attributes)
        factors = rng.uniform(0.0001, 0.001, (3, columns * groups)).astype(np.float32)
        arrays = [x, w, factors[0], 1000 * factors[1], zeros[0, : channels * groups], zeros[1, : columns * groups]]
        yield Case(name, arrays, attributes)


def checked(rng: np.random.Generator) -> Iterator[Case]:
    """Activations that are checked before they are multiplied as bytes, because their zero point is 0.

    The sums of pairs are up to 127, up to 255, or larger. Some are at the limits, with the largest weights. Rows, columns,
    depths and numbers of small sums leave over parts, and the largest depths are several blocks.
    """
    for case in range(120):
        groups = int(rng.choice([1, 1, 1, 2]))
        channels = int(rng.choice([31, 32, 33, 60, 64, 68, 100, 257, 512, 516, 1030] if groups == 1 else [16, 33, 64]))
        columns = int(rng.choice([16, 17, 24, 40, 64, 70] if groups == 1 else [64, 65]))
        size, (kernel, stride) = (
            [int(number) for number in rng.integers(2, 9, 2)],
            (int(rng.integers(1, 3)) for _ in range(2)),
        )
        shape = (1, *size, channels * groups)
        x = np.minimum(rng.exponential(rng.choice([2, 20, 60, 200]), shape), 255).astype(np.uint8)
        if case % 4 == 0:
            x[..., ::2] = rng.choice([0, 127, 128, 255], x[..., ::2].shape)
            x[..., 1::2] = rng.choice([0, 127, 128, 255], x[..., 1::2].shape)
        if case % 4 == 1:
            x[..., : channels // 2] = rng.choice([63, 64, 127, 128, 255])
        w = rng.integers(-128, 128, (columns * groups, channels, kernel, kernel)).astype(np.int8)
        if case % 3 == 0:
            w[:] = rng.choice([127, -128], (columns * groups, 1, 1, 1))
        zero = np.zeros(channels * groups, np.uint8) if case % 5 == 0 else np.array(0, np.uint8)
        attributes = {
            "channels": channels * groups,
            "group": groups,
            "kernel": f"{kernel},{kernel}",
            "strides": f"{stride},{stride}",
            "pads": ",".join([str(kernel - 1)] * 4),
        }
        name = f"checked, {channels} channels, {columns} columns, {groups} groups, {size}, kernel {kernel}, stride {stride}"
        yield sums(name, x, w, zero, attributes)
        factors = rng.uniform(0.0001, 0.001, (2, columns * groups)).astype(np.float32)
        yield Case(name, [x, w, factors[0], 1000 * factors[1], zero, np.array(3, np.uint8)], attributes)


RANDOM = (
    columns_that_leave_over,
    weights_in_pieces,
    depths_and_lines,
    rows,
    small_groups,
    geometries,
    depthwise,
    groups,
    one_pixel,
    winograd,
    narrow,
    checked,
)


def cases() -> Iterator[Case]:
    yield from of_all_forms()
    rng = np.random.default_rng(0)
    for some in RANDOM:
        yield from some(rng)
