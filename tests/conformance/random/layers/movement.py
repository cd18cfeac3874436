"""Layers that move elements: shapes, slices, joins, pads."""

from __future__ import annotations

import numpy as np

from tests.conformance.random.graph import ANY, FLOATS, NUMBERS, Graph, Unfit, Value, maker


@maker(2)
def transpose(g: Graph) -> None:
    x = g.value(ANY, (0, 5))
    order = g.rng.permutation(x.rank) if x.rank and g.chance(0.85) else np.zeros(0, np.int64)
    g.layer("Transpose", "opset1", x, g.index(order, 0.9))


@maker(3)
def reshape(g: Graph) -> None:
    x = g.value(ANY, (0, 5))
    size, dims = int(np.prod(x.dims)), []
    for _ in range(g.int(0, 4)):
        divisors = [d for d in range(1, 9) if size and size % d == 0]
        dims.append(g.pick(*divisors) if divisors else g.int(0, 2))
        size = size // dims[-1] if dims[-1] else 0
    dims.append(size)
    target = [dims[k] for k in g.rng.permutation(len(dims))]
    special = g.chance(0.5)
    if 0 not in target and g.chance(0.5):
        target[g.int(0, len(target) - 1)] = -1
    for axis in range(min(len(target), x.rank)):
        if special and target[axis] == x.dims[axis] and g.chance(0.4):
            target[axis] = 0
    g.layer("Reshape", "opset1", x, g.index(target), special_zero=special)


@maker(2)
def squeeze(g: Graph) -> None:
    x = g.value(ANY, (1, 5), where=lambda v: 1 in (v.shape or ()))
    ones = [axis for axis, d in enumerate(x.dims) if d == 1]
    axes = [] if g.chance(0.1) else [g.index(g.signed(g.some(ones, 1), x.rank), 0.97)]
    g.layer("Squeeze", g.pick("opset1", "opset15"), x, *axes)


@maker(2)
def unsqueeze(g: Graph) -> None:
    x = g.value(ANY, (0, 4))
    count = g.int(1, 5 - x.rank)
    rank = x.rank + count
    axes = g.signed(g.some(range(rank), count, count), rank)
    g.layer("Unsqueeze", "opset1", x, g.index(axes[0] if count == 1 and g.chance(0.3) else axes, 0.97))


@maker(3)
def concat(g: Graph) -> None:
    x = g.value(ANY, (1, 5))
    axis = g.axis(x)
    others: list[Value] = []
    for _ in range(g.int(0, 3)):
        fits = [v for v in g.values if v.type == x.type and _joins(v.shape, x.dims, axis)]
        if fits and g.chance(0.6):
            others.append(g.pick(*fits))
        else:
            dims = list(x.dims)
            dims[axis] = g.int(0, 4)
            others.append(g.leaf(g.array(x.type, dims), 0.4))
    g.layer("Concat", "opset1", *(others[:1] + [x] + others[1:]), axis=axis)


def _joins(shape: tuple[int | None, ...] | None, dims: tuple[int, ...], axis: int) -> bool:
    if shape is None or len(shape) != len(dims) or None in shape:
        return False
    return all(a == b for k, (a, b) in enumerate(zip(shape, dims, strict=True)) if k != axis % len(dims))


@maker(2)
def split(g: Graph) -> None:
    x = g.value(ANY, (1, 5))
    axis = g.axis(x)
    size = x.dims[axis]
    if g.chance(0.5):
        parts = [d for d in range(1, 6) if size and size % d == 0]
        if not parts:
            raise Unfit("nothing to split")
        g.layer("Split", "opset1", x, g.index(axis, 1.0), num_splits=g.pick(*parts))
        return
    lengths = []
    while sum(lengths) < size and len(lengths) < 4:
        lengths.append(g.int(0, size - sum(lengths)))
    lengths.append(size - sum(lengths))
    if g.chance(0.4):
        lengths[g.int(0, len(lengths) - 1)] = -1
    g.layer("VariadicSplit", "opset1", x, g.index(axis, 1.0), g.index(lengths))


@maker(2)
def broadcast(g: Graph) -> None:
    x = g.value(ANY, (0, 4))
    grown = [g.int(1, 4) if d == 1 and g.chance(0.6) else d for d in x.dims]
    target = [g.int(1, 3) for _ in range(g.int(0, 5 - x.rank))] + grown
    match g.pick("numpy", "bidirectional", "explicit"):
        case "explicit":
            axes = sorted(g.some(range(len(target)), x.rank, x.rank))
            dims = [g.int(1, 4) for _ in target]
            for axis, d in zip(axes, grown, strict=True):
                dims[axis] = d
            g.layer("Broadcast", g.pick("opset1", "opset3"), x, g.index(dims), g.index(axes), mode="explicit")
        case "bidirectional":
            two_ways = [1 if g.chance(0.3) else d for d in target[g.int(0, len(target)) :]]
            g.layer("Broadcast", "opset3", x, g.index(two_ways), mode="bidirectional")
        case _:
            g.layer("Broadcast", g.pick("opset1", "opset3"), x, g.index(target), mode="numpy")


@maker()
def tile(g: Graph) -> None:
    x = g.value(ANY, (0, 4))
    g.layer("Tile", "opset1", x, g.index([g.pick(0, 1, 1, 2, 3) for _ in range(max(0, x.rank + g.int(-1, 1)))]))


@maker(2)
def pad(g: Graph) -> None:
    x = g.value(NUMBERS, (1, 5))
    mode = g.pick("constant", "edge", "reflect", "symmetric")
    version = g.pick("opset1", "opset12")
    least = -1 if version == "opset12" else 0
    most = {"reflect": [max(0, d - 1) for d in x.dims], "symmetric": x.dims}.get(mode, [3] * x.rank)
    begin, end = ([g.int(least, min(3, m)) if g.chance(0.6) else 0 for m in most] for _ in range(2))
    value = [g.leaf(g.array(x.type, ()), 0.7)] if mode == "constant" and g.chance(0.7) else []
    g.layer("Pad", version, x, g.index(begin), g.index(end), *value, pad_mode=mode)


@maker(3)
def strided_slice(g: Graph) -> None:
    x = g.value(ANY, (1, 5))
    count = g.int(1, x.rank)
    steps = [g.pick(1, 1, 1, 2, -1, -2, 3) for _ in range(count)]
    ends = [[g.int(-d - 2, d + 2) for d in x.dims[:count]] for _ in range(2)]
    masks = {name: [int(g.chance(share)) for _ in range(count)] for name, share in _MASKS.items()}
    if sum(masks["ellipsis_mask"]) > 1 or x.rank - count > 3:
        masks["ellipsis_mask"] = [0] * count
    if 0 in x.dims:  # no element to gather
        masks["shrink_axis_mask"] = [0] * count
    stride = [g.index(steps)] if g.chance(0.8) else []
    g.layer("StridedSlice", "opset1", x, *(g.index(e) for e in ends), *stride, **masks)


_MASKS = {
    "begin_mask": 0.4,
    "end_mask": 0.4,
    "new_axis_mask": 0.08,
    "shrink_axis_mask": 0.15,
    "ellipsis_mask": 0.08,
}


@maker(3)
def slices(g: Graph) -> None:
    x = g.value(ANY, (1, 5))
    axes = g.some(range(x.rank), 1)
    starts, stops = ([g.int(-x.dims[axis] - 2, x.dims[axis] + 2) for axis in axes] for _ in range(2))
    steps = [g.pick(1, 1, 2, -1, -3) for _ in axes]
    given = [g.index(numbers) for numbers in (starts, stops, steps)]
    whole = axes == list(range(len(axes))) and g.chance(0.5)
    where = [] if whole else [g.index(g.signed(axes, x.rank))]
    if g.chance(0.25):
        shape = list(x.dims)
        for axis, *ends in zip(axes, starts, stops, steps, strict=True):
            shape[axis] = len(range(x.dims[axis])[slice(*ends)])
        g.layer("SliceScatter", "opset15", x, g.of_shape(x.type, shape), *given, *where)
    else:
        g.layer("Slice", "opset8", x, *given, *where)


@maker()
def reverse(g: Graph) -> None:
    x = g.value(ANY, (1, 4))
    if g.chance(0.5):
        g.layer("Reverse", "opset1", x, g.index(g.some(range(x.rank), 1)), mode="index")
    else:
        g.layer("Reverse", "opset1", x, g.leaf(g.rng.integers(0, 2, x.rank).astype(bool), 0.9), mode="mask")


@maker()
def roll(g: Graph) -> None:
    x = g.value(ANY, (1, 4))
    axes = g.signed(g.some(range(x.rank), 1), x.rank)
    g.layer("Roll", "opset7", x, g.index([g.int(-9, 9) for _ in axes]), g.index(axes))


@maker()
def reverse_sequence(g: Graph) -> None:
    x = g.value(ANY, (2, 4))
    batch, sequence = g.some(range(x.rank), 2, 2)
    if 0 in x.dims:
        raise Unfit("nothing to reverse")
    lengths = [g.int(1, x.dims[sequence]) for _ in range(x.dims[batch])]
    axes = g.signed([batch, sequence], x.rank)
    g.layer("ReverseSequence", "opset1", x, g.index(lengths, 0.4), batch_axis=axes[0], seq_axis=axes[1])


@maker()
def shuffle_channels(g: Graph) -> None:
    x = g.value(ANY, (1, 5))
    axis = g.axis(x)
    groups = [d for d in range(1, 7) if x.dims[axis] % d == 0 and x.dims[axis]]
    if not groups:
        raise Unfit("no channels")
    g.layer("ShuffleChannels", "opset1", x, axis=axis, group=g.pick(*groups))


@maker()
def depth_and_space(g: Graph) -> None:
    block, rank = g.int(1, 3), g.int(3, 5)
    shape = list(g.shape(rank, 3))
    operation = g.pick("DepthToSpace", "SpaceToDepth")
    if operation == "DepthToSpace":
        shape[1] = block ** (rank - 2) * g.int(1, 2)
    else:
        shape[2:] = [block * d for d in shape[2:]]
    g.layer(operation, "opset1", g.fresh(NUMBERS, shape), block_size=block)


@maker()
def batch_and_space(g: Graph) -> None:
    rank = g.int(2, 5)
    shape, block = list(g.shape(rank, 4)), [1] + [g.int(1, 2) for _ in range(rank - 1)]
    if g.chance(0.5):
        shape[0] = int(np.prod(block)) * g.int(1, 2)
        crops = [[0] + [g.int(0, (b * d) // 3) for b, d in zip(block[1:], shape[1:], strict=True)] for _ in range(2)]
        g.layer("BatchToSpace", "opset2", g.fresh(NUMBERS, shape), *map(g.index, (block, *crops)))
    else:
        begin = [0] + [g.int(0, 2) for _ in range(rank - 1)]
        end = [0] + [-(d + b) % k for d, b, k in zip(shape[1:], begin[1:], block[1:], strict=True)]
        g.layer("SpaceToBatch", "opset2", g.fresh(NUMBERS, shape), *map(g.index, (block, begin, end)))


@maker()
def patches(g: Graph) -> None:
    if g.chance(0.6):
        x = g.value(FLOATS, (4, 4), where=lambda v: min(v.dims) > 0)
        sizes = [g.int(1, 3) for _ in range(2)]
        given = {"strides": [g.int(1, 3) for _ in range(2)], "rates": [g.int(1, 2) for _ in range(2)]}
        g.layer("ExtractImagePatches", "opset3", x, sizes=sizes, **given)
        return
    output, kernel = [g.int(3, 6) for _ in range(2)], [g.int(1, 3) for _ in range(2)]
    given = {name: [g.int(least, 2) for _ in range(2)] for name, least in _COLUMNS.items()}
    pads = np.add(given["pads_begin"], given["pads_end"])
    spans = np.multiply(given["dilations"], np.subtract(kernel, 1)) + 1
    blocks = (np.array(output) + pads - spans) // given["strides"] + 1
    if min(blocks) < 1:
        raise Unfit("no block fits")
    shape = [g.int(1, 2), g.int(1, 3) * int(np.prod(kernel)), int(np.prod(blocks))]
    shape = shape[1:] if g.chance(0.3) else shape
    g.layer("Col2Im", "opset15", g.fresh(FLOATS, shape), g.index(output), g.index(kernel), **given)


_COLUMNS = {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0}


@maker()
def reorganised(g: Graph) -> None:
    stride = g.int(1, 2)
    shape = [g.int(1, 2), stride**2 * g.int(1, 3), stride * g.int(1, 3), stride * g.int(1, 3)]
    g.layer("ReorgYolo", "opset2", g.fresh(FLOATS, shape), stride=[stride])


@maker()
def shapes(g: Graph) -> None:
    x = g.value(ANY, known=g.chance(0.6))
    if g.chance(0.3):
        g.layer("ShapeOf", "opset1", x)
    else:
        g.layer("ShapeOf", "opset3", x, output_type=g.pick("i32", "i64"))


@maker()
def eye(g: Graph) -> None:
    numbers = [g.index(n, 0.6) for n in (g.int(0, 5), g.int(0, 5), g.int(-4, 4))]
    batch = [g.index([g.int(1, 2) for _ in range(g.int(1, 2))])] if g.chance(0.3) else []
    g.layer("Eye", "opset9", *numbers, *batch, output_type=g.pick("f32", "f16", "i32", "i64", "u8", "i8"))


@maker()
def ranges(g: Graph) -> None:
    integers = g.chance(0.6)
    start = g.int(-5, 5)
    step = g.pick(1, 2, 3, -1, -2)
    stop = start + step * g.int(0, 6) + (g.int(0, 2) if step > 0 else -g.int(0, 2))
    if integers:
        given = [g.index(n, 0.6) for n in (start, stop, step)]
    else:
        given = [g.leaf(np.float32(n / 2), 0.6) for n in (start, stop, step)]
    g.layer("Range", "opset4", *given, output_type=g.pick("i32", "i64", "f32") if integers else "f32")
