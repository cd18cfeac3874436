"""Layers of networks: convolutions, pooling, products, attention, resizing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.random.graph import FLOATS, INTEGERS, Graph, Unfit, Value, maker

_CONVOLVED = ("f32", "f16", "f64")


def _windows(g: Graph, spatial: int, *, dilated: bool = True) -> dict[str, Any]:
    """Return strides, pads and dilations."""
    given: dict[str, Any] = {
        "strides": [g.pick(1, 1, 2, 3) for _ in range(spatial)],
        "pads_begin": [g.pick(0, 0, 1, 2) for _ in range(spatial)],
        "pads_end": [g.pick(0, 0, 1, 2) for _ in range(spatial)],
        "auto_pad": g.pick("explicit", "explicit", "same_upper", "same_lower", "valid"),
    }
    if dilated:
        given["dilations"] = [g.pick(1, 1, 2) for _ in range(spatial)]
    return given


def images(g: Graph, rank: tuple[int, int] = (3, 5), types: tuple[str, ...] = FLOATS) -> Value:
    """Return batches of feature maps without empty dimensions."""
    found = [v for v in g.values if v.type in types and v.shape and rank[0] <= len(v.shape) <= rank[1]]
    found = [v for v in found if v.shape and None not in v.shape and 0 not in v.shape]
    if found and g.chance(0.7):
        return g.pick(*found)
    spatial = g.int(*rank) - 2
    shape = [g.int(1, 2), g.pick(1, 2, 3, 4, 8), *(g.int(1, 8 if spatial < 3 else 5) for _ in range(spatial))]
    return g.fresh(types, shape, 0.05)


@maker(3)
def convolution(g: Graph) -> None:
    x = images(g, types=_CONVOLVED)
    kernel = [g.int(1, 3) for _ in x.dims[2:]]
    channels, weights = x.dims[1], g.pick(1.0, 1.0, 0.5)
    given = _windows(g, len(kernel))
    match g.pick("plain", "plain", "group", "back", "group-back"):
        case "plain":
            g.layer("Convolution", "opset1", x, g.leaf(g.array(x.type, [g.int(1, 5), channels, *kernel]), weights), **given)
        case "group":
            groups = g.pick(*(d for d in range(1, channels + 1) if channels % d == 0))
            shape = [groups, g.int(1, 3), channels // groups, *kernel]
            g.layer("GroupConvolution", "opset1", x, g.leaf(g.array(x.type, shape), weights), **given)
        case kind:
            if g.chance(0.3) and kind == "back":
                given["output_padding"] = [g.int(0, s - 1) for s in given["strides"]]
            shape = [channels, g.int(1, 4), *kernel]
            if kind == "group-back":
                groups = g.pick(*(d for d in range(1, channels + 1) if channels % d == 0))
                shape = [groups, channels // groups, g.int(1, 3), *kernel]
            output = []
            if g.chance(0.2):
                output = [g.index([d * s + g.int(0, 2) for d, s in zip(x.dims[2:], given["strides"], strict=True)], 1.0)]
            name = "GroupConvolutionBackpropData" if kind == "group-back" else "ConvolutionBackpropData"
            g.layer(name, "opset1", x, g.leaf(g.array(x.type, shape), weights), *output, **given)


@maker()
def deformable(g: Graph) -> None:
    x = images(g, (4, 4), ("f32",))
    kernel, groups = [g.int(1, 3) for _ in range(2)], g.int(1, 2)
    given = _windows(g, 2) | {"auto_pad": "explicit", "deformable_group": groups, "group": 1}
    if x.dims[1] % groups:
        raise Unfit("channels of no group")
    span = [d * (k - 1) + 1 for d, k in zip(given["dilations"], kernel, strict=True)]
    pads = zip(x.dims[2:], given["pads_begin"], given["pads_end"], span, given["strides"], strict=True)
    output = [(d + a + b - s) // stride + 1 for d, a, b, s, stride in pads]
    if min(output) < 1:
        raise Unfit("no window")
    points = groups * kernel[0] * kernel[1]
    offsets = g.leaf(g.array("f32", [x.dims[0], 2 * points, *output], -1.9, 1.9), 0.3)
    weights = g.leaf(g.array("f32", [g.int(1, 3), x.dims[1], *kernel]), 0.9)
    if g.chance(0.4):
        g.layer("DeformableConvolution", "opset1", x, offsets, weights, **given)
    else:
        mask = [g.leaf(g.array("f32", [x.dims[0], points, *output], 0, 1), 0.3)] if g.chance(0.5) else []
        g.layer("DeformableConvolution", "opset8", x, offsets, weights, *mask, **given)


@maker(3)
def pooling(g: Graph) -> None:
    x = images(g)
    spatial = x.rank - 2
    kernel = [g.int(1, 3) for _ in range(spatial)]
    given = _windows(g, spatial, dilated=False) | {"kernel": kernel}
    for name in ("pads_begin", "pads_end"):
        given[name] = [min(p, k - 1) for p, k in zip(given[name], kernel, strict=True)]
    version = g.pick("AvgPool-1", "AvgPool-14", "AvgPool-16", "MaxPool-1", "MaxPool-8", "MaxPool-14")
    operation, number = version.split("-")
    if version == "AvgPool-16" or (operation == "MaxPool" and number != "1"):
        given["dilations"] = [g.pick(1, 1, 2) for _ in range(spatial)]
        if max(given["dilations"]) > 1 and given.get("auto_pad", "").startswith("same"):
            given["auto_pad"] = "explicit"  # the CPU plugin pads for kernels without dilations, and reads out of bounds
    if operation == "MaxPool" and number != "1":
        given |= {"index_element_type": g.pick("i32", "i64"), "axis": g.pick(0, 0, 1, 2)}
    g.layer(operation, f"opset{number}", x, **given)


@maker()
def adaptive(g: Graph) -> None:
    x = images(g, (3, 5), ("f32",))
    output = g.index([g.int(1, d) for d in x.dims[2:]], 0.8)
    if g.chance(0.5):
        g.layer("AdaptiveAvgPool", "opset8", x, output)
    else:
        g.layer("AdaptiveMaxPool", "opset8", x, output, index_element_type=g.pick("i32", "i64"))


@maker(4)
def product(g: Graph) -> None:
    a = g.value(FLOATS if g.chance(0.85) else INTEGERS, (1, 4))
    transposed = {"transpose_a": a.rank > 1 and g.chance(0.3), "transpose_b": g.chance(0.3)}
    inner = a.dims[-2] if transposed["transpose_a"] else a.dims[-1]
    if a.rank == 1 or g.chance(0.15):
        shape, transposed["transpose_b"] = [inner], False
    else:
        batch = [1 if g.chance(0.3) else d for d in a.dims[:-2]][g.int(0, max(0, a.rank - 2)) :]
        outer = g.int(1, 5)
        shape = [*batch, *((outer, inner) if transposed["transpose_b"] else (inner, outer))]
    b = g.of_shape(a.type, shape, 0.6)
    g.layer("MatMul", "opset1", a, b, **transposed)


_EQUATIONS = (
    "ab,bc->ac", "ab,cb->ca", "ij->ji", "ij->", "ii->i", "ij,ij->", "bij,bjk->bik", "i,j->ij", "...ij,...jk->...ik",
    "ijk->kj", "ab,ab->ab", "abc,cd,d->ab", "bhqd,bhkd->bhqk", "i,i->", "...a->a...", "ijj->ij",
)  # fmt: skip


@maker()
def einsum(g: Graph) -> None:
    equation = g.pick(*_EQUATIONS)
    sizes = {letter: g.int(1, 4) for letter in "abcdhijkq"}
    batch = g.shape(g.int(0, 2), 3)
    type_ = g.pick("f32", "f32", "i32")
    inputs = []
    for term in equation.split("->")[0].split(","):
        shape = [sizes[c] for c in term.replace("...", "")]
        at = term.find("...")
        inputs.append(g.of_shape(type_, [*shape[: max(at, 0)], *batch, *shape[max(at, 0) :]] if at >= 0 else shape))
    g.layer("Einsum", "opset7", *inputs, equation=equation)


@maker(2)
def attention(g: Graph) -> None:
    batch, size, keys = g.shape(g.int(1, 2), 3), g.int(1, 4), g.int(1, 5)
    if 0 in batch:
        raise Unfit("no batch")
    queries = g.int(1, 5)
    query, key = g.of_shape("f32", [*batch, queries, size]), g.of_shape("f32", [*batch, keys, size])
    value = g.of_shape("f32", [*batch, keys, g.int(1, 4)])
    more: list[Value] = []
    if g.chance(0.5):
        shape = [queries, keys] if g.chance(0.5) else [*batch, queries, keys]
        boolean = g.chance(0.4)
        more.append(g.leaf(g.array("boolean" if boolean else "f32", shape), 0.3))
        if g.chance(0.5):
            more.append(g.leaf(np.float32(g.float(0.125, 2)), 0.8))
    g.layer("ScaledDotProductAttention", "opset13", query, key, value, *more, causal=g.chance(0.3))


@maker()
def inverse(g: Graph) -> None:
    size = g.int(1, 4)
    matrix = g.array("f32", [*g.shape(g.int(0, 2), 3), size, size], -1, 1) + 5 * np.eye(size, dtype=np.float32)
    g.layer("Inverse", "opset14", g.leaf(matrix, 0.1))


@maker(2)
def resized(g: Graph) -> None:
    x = images(g, (3, 5), ("f32", "f16", "u8", "i8"))
    spatial = x.rank - 2
    mode = g.pick("nearest", "linear", "linear_onnx", "cubic")
    axes = list(range(2, x.rank))
    given = {
        "mode": mode,
        "pads_begin": [0],
        "pads_end": [0],
        "cube_coeff": g.pick(-0.75, -0.5),
        "antialias": mode == "linear" and g.chance(0.2),
    }
    sizes = [g.int(1, 2 * d + 1) for d in x.dims[2:]]
    scales = g.array("f32", (spatial,), 0.5, 2.5)
    if g.chance(0.6):
        by = g.pick("sizes", "scales")
        numbers = g.index(sizes, 0.8) if by == "sizes" else g.leaf(scales, 0.8)
        g.layer("Interpolate", "opset11", x, numbers, g.index(axes, 1.0), shape_calculation_mode=by, **given)
    else:
        numbers = [g.index(sizes, 0.8), g.leaf(scales, 0.8)]
        g.layer("Interpolate", "opset4", x, *numbers, g.index(axes, 1.0), **given)


@maker()
def sampled(g: Graph) -> None:
    x = images(g, (4, 4), ("f32", "f16"))
    grid = g.leaf(g.rng.uniform(-1.3, 1.3, (x.dims[0], g.int(1, 4), g.int(1, 4), 2)).astype(np.float32), 0.2)
    g.layer("GridSample", "opset9", x, grid)


@maker()
def binary_convolution(g: Graph) -> None:
    """Channels are multiples of 8; the CPU plugin reads out of bounds for others."""
    g.static = True
    x = g.leaf(g.rng.integers(0, 2, (1, 8, g.int(3, 6), g.int(3, 6))).astype(np.float32), 0.0)
    given = _windows(g, 2) | {"mode": "xnor-popcount", "pad_value": g.pick(-1.0, 0.0, 1.0)}
    weights = g.leaf(g.rng.integers(0, 2, (8, 8, g.int(1, 3), g.int(1, 3))).astype(np.float32), 1.0)
    g.layer("BinaryConvolution", "opset1", x, weights, **given)
