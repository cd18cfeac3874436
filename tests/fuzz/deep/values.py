"""Steps on values that affect other layers: masks, sizes, constant weights, scales, zero points, variables, strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.fuzz.deep.net import Net, Port
from tests.fuzz.deep.repeated import (
    Family,
    Step,
    binary,
    concat,
    convert,
    fake_quantize,
    i64,
    matmul,
    number,
    reshape,
    transpose,
    unary,
)

# -- masks ------------------------------------------------------------------------------------------------------------------


def _queries(net: Net) -> Port:
    return net.parameter(1, 4, 8, 8, name="x")


def _mask_start(net: Net) -> tuple[Port, ...]:
    x = _queries(net)
    given = net.parameter(1, 1, 8, 8, kind="boolean", name="mask")
    return given, x


def _causal_start(net: Net) -> tuple[Port, ...]:
    """The start of a mask that is computed from positions."""
    x = _queries(net)
    data = {"output_type": "i64"}
    positions = net.layer("Range", number(net, 0), number(net, 8), number(net, 1), data=data, shape=[8], version=4)
    rows, columns = reshape(net, positions, 1, 1, 8, 1), reshape(net, positions, 1, 1, 1, 8)
    return binary(net, "LessEqual", columns, rows, "boolean"), x


def _attended(net: Net, mask: Port, x: Port) -> Sequence[Port]:
    if mask.kind == "boolean":
        chosen = (net.const(0), net.const(-np.inf))
        mask = net.layer("Select", mask, *chosen, data={"auto_broadcast": "numpy"}, shape=mask.shape, kind="f32")
    scores = binary(net, "Add", binary(net, "Multiply", matmul(net, x, x, transposed=True), 0.35), mask)
    weights = net.layer("Softmax", scores, data={"axis": -1}, version=8)
    fused = net.layer("ScaledDotProductAttention", x, x, x, mask, data={"causal": False}, version=13)
    return [matmul(net, weights, x), fused]


def _both(net: Net, mask: Port) -> Port:
    return binary(net, "LogicalAnd", mask, mask)


def _either(net: Net, mask: Port) -> Port:
    return net.layer("LogicalNot", binary(net, "LogicalOr", mask, mask))


def _exclusive(net: Net, mask: Port) -> Port:
    return binary(net, "LogicalXor", mask, mask)


def _select_mask(net: Net, mask: Port) -> Port:
    other = net.layer("LogicalNot", mask)
    return net.layer("Select", mask, mask, other, data={"auto_broadcast": "numpy"})


def _filled(net: Net, mask: Port) -> Port:
    """A mask from the numbers of the last one."""
    numbers = convert(net, mask, "f32")
    inverse = binary(net, "Subtract", numbers, 1.0)
    return binary(net, "Equal", binary(net, "Multiply", inverse, inverse), 0.0, "boolean")


def _moved(net: Net, mask: Port) -> Port:
    return binary(net, "LogicalAnd", transpose(net, mask, 0, 1, 3, 2), mask)


_MASK_STEPS: dict[str, Step] = {
    "and": _both,
    "or": _either,
    "xor": _exclusive,
    "select": _select_mask,
    "numbers": _filled,
    "transposed": _moved,
    "not": unary("LogicalNot"),
}


def _float_mask_start(net: Net) -> tuple[Port, ...]:
    mask, x = _causal_start(net)
    chosen = (net.const(0), net.const(-np.inf))
    return net.layer("Select", mask, *chosen, data={"auto_broadcast": "numpy"}, shape=mask.shape, kind="f32"), x


def _doubled(type: str, factor: float | None = None) -> Step:
    def step(net: Net, x: Port) -> Port:
        y = binary(net, type, x, x)
        return y if factor is None else binary(net, "Multiply", y, factor)

    return step


def _selected_mask(net: Net, mask: Port) -> Port:
    chosen = binary(net, "Equal", mask, 0.0, "boolean")
    return net.layer("Select", chosen, mask, net.const(-1e9), data={"auto_broadcast": "numpy"}, shape=mask.shape, kind="f32")


def _part(net: Net, mask: Port) -> Port:
    bounds = (i64(net, k) for k in (0, 8, 1, 3))
    return net.layer("Slice", binary(net, "Minimum", mask, mask), *bounds, version=8)


_FLOAT_MASK_STEPS: dict[str, Step] = {
    "sum": _doubled("Add"),
    "maximum": _doubled("Maximum"),
    "half": _doubled("Add", 0.5),
    "select": _selected_mask,
    "slice": _part,
    "clamp": unary("Clamp", min=-1e30, max=0),
}

MASKS = Family(_mask_start, _MASK_STEPS, _attended)
CAUSAL = Family(_causal_start, _MASK_STEPS, _attended)
BIASES = Family(_float_mask_start, _FLOAT_MASK_STEPS, _attended)


# -- sizes ------------------------------------------------------------------------------------------------------------------


def _size_start(net: Net, unknown: int = -1) -> tuple[Port, ...]:
    x = net.parameter(1, unknown, 32)
    shape = net.layer("ShapeOf", x, data={"output_type": "i64"}, shape=[3], kind="i64", version=3)
    return net.layer("Gather", shape, i64(net, 1), number(net, 0), data={"batch_dims": 0}, shape=[1], version=8), x


def _sized(net: Net, size: Port, x: Port) -> Sequence[Port]:
    shape = concat(net, 0, i64(net, 1), size, i64(net, -1))
    reshaped = net.layer("Reshape", x, shape, data={"special_zero": False}, shape=[1, -1, -1])
    row = net.parameter(1, 1, 32)
    full = concat(net, 0, i64(net, 1), size, i64(net, 32))
    broadcast = net.layer("Broadcast", row, full, data={"mode": "numpy"}, shape=[1, -1, 32], version=3)
    start, stop = number(net, 0), net.layer("Squeeze", size, i64(net, 0), shape=[])
    indices = net.layer("Range", start, stop, number(net, 1), data={"output_type": "i64"}, shape=[-1], version=4)
    bounds = (i64(net, 0), size, i64(net, 1), i64(net, 1))
    return [reshaped, broadcast, indices, net.layer("Slice", x, *bounds, shape=[1, -1, 32], version=8), size]


def _size_select(net: Net, size: Port) -> Port:
    chosen = binary(net, "Greater", size, 0, "boolean")
    return net.layer("Select", chosen, size, binary(net, "Add", size, size), data={"auto_broadcast": "numpy"}, kind="i64")


def _size_of_parts(net: Net, size: Port) -> Port:
    both = concat(net, 0, size, size)
    return net.layer("ReduceMax", both, i64(net, 0), data={"keep_dims": True}, shape=[1])


def _size_of_a_part(net: Net, size: Port) -> Port:
    both = concat(net, 0, size, size)
    return net.layer("Gather", both, i64(net, 1), number(net, 0), data={"batch_dims": 0}, shape=[1], version=8)


def _size_through_floats(net: Net, size: Port) -> Port:
    return convert(net, net.layer("Floor", binary(net, "Multiply", convert(net, size, "f32"), 1.0)), "i64")


def _half_size(net: Net, size: Port) -> Port:
    return binary(net, "Divide", binary(net, "Add", size, size), 2)


def _size_of_size(net: Net, size: Port) -> Port:
    row = net.layer("Broadcast", number(net, 0), size, data={"mode": "numpy"}, shape=[-1], version=3)
    return net.layer("ShapeOf", row, data={"output_type": "i64"}, shape=[1], kind="i64", version=3)


_SIZE_STEPS: dict[str, Step] = {
    "sum": _doubled("Add"),
    "square": _doubled("Multiply"),
    "half": _half_size,
    "maximum": _doubled("Maximum"),
    "remainder": lambda net, size: binary(net, "Add", binary(net, "FloorMod", size, size), size),
    "select": _size_select,
    "parts": _size_of_parts,
    "part": _size_of_a_part,
    "floats": _size_through_floats,
    "size of a size": _size_of_size,
}

SIZES = Family(_size_start, _SIZE_STEPS, _sized)
KNOWN_SIZES = Family(lambda net: _size_start(net, 8), _SIZE_STEPS, _sized)


# -- constant weights -------------------------------------------------------------------------------------------------------


def _weights_start(net: Net, side: int = 72) -> tuple[Port, ...]:
    x = net.parameter(1, 8, side)
    codes = net.const(np.arange(side * side).reshape(side, side) % 200, np.uint8)
    return convert(net, codes, "f32"), x


def _weighted(net: Net, weights: Port, x: Port) -> Sequence[Port]:
    indices = net.parameter(1, 3, kind="i64", name="indices")
    data = {"batch_dims": 0}
    rows = net.layer("Gather", weights, indices, number(net, 0), data=data, shape=(1, 3, weights.shape[1]), version=8)
    return [matmul(net, x, weights, transposed=True), rows]


def _scaled(net: Net, w: Port) -> Port:
    centered = binary(net, "Subtract", w, np.full((w.shape[0], 1), 3))
    return binary(net, "Multiply", centered, np.full((w.shape[0], 1), 0.5))


def _through_16_bits(net: Net, w: Port) -> Port:
    return convert(net, convert(net, w, "f16"), "f32")


def _through_codes(net: Net, w: Port) -> Port:
    return convert(net, convert(net, w, "u8"), "f32")


def _in_groups(net: Net, w: Port) -> Port:
    side = w.shape[0]
    groups = reshape(net, w, side, side // 8, 8)
    return reshape(net, binary(net, "Multiply", groups, np.full((side, side // 8, 1), 0.5)), side, side)


def _weights_transposed(net: Net, w: Port) -> Port:
    return transpose(net, binary(net, "Multiply", w, 0.5), 1, 0)


def _looked_up(net: Net, w: Port) -> Port:
    indices = convert(net, w, "i32")
    data = {"batch_dims": 0}
    table = net.const(np.arange(256))
    return net.layer("Gather", table, indices, number(net, 0), data=data, shape=w.shape, version=8)


_WEIGHT_STEPS: dict[str, Step] = {
    "sum": _doubled("Add"),
    "square": _doubled("Multiply"),
    "difference": _doubled("Subtract"),
    "scales": _scaled,
    "16 bits": _through_16_bits,
    "codes": _through_codes,
    "groups": _in_groups,
    "transposes": _weights_transposed,
    "quantized": lambda net, w: fake_quantize(net, w),
    "activation": unary("Sigmoid"),
    "lookup": _looked_up,
    "product": lambda net, w: matmul(net, w, w),
    "concat and split": lambda net, w: net.layer(
        "Split", concat(net, 0, w, w), number(net, 0), data={"num_splits": 2}, shapes=[w.shape] * 2
    )[1],
    "gather": lambda net, w: net.layer(
        "Gather", w, i64(net, *range(w.shape[0])), number(net, 0), data={"batch_dims": 0}, version=8
    ),
}

WEIGHTS = Family(_weights_start, _WEIGHT_STEPS, _weighted)
SMALL_WEIGHTS = Family(lambda net: _weights_start(net, 16), _WEIGHT_STEPS, _weighted)


def _scales_start(net: Net) -> tuple[Port, ...]:
    scales = convert(net, net.const(np.full((72, 1), 0.5), np.float16), "f32")
    return (scales, *_weights_start(net)[::-1])


def _zero_points_start(net: Net) -> tuple[Port, ...]:
    return (convert(net, net.const(np.full((72, 1), 7), np.uint8), "f32"), *_weights_start(net)[::-1])


_SCALE_STEPS: dict[str, Step] = {
    "sum": _doubled("Add"),
    "half": _doubled("Add", 0.5),
    "square": _doubled("Multiply"),
    "16 bits": _through_16_bits,
    "codes": _through_codes,
    "reshape": lambda net, s: reshape(net, reshape(net, s, 72), 72, 1),
    "transposes": lambda net, s: transpose(net, transpose(net, s, 1, 0), 1, 0),
    "activation": unary("Sqrt"),
}

SCALES = Family(
    _scales_start,
    _SCALE_STEPS,
    lambda net, s, x, w: _weighted(net, binary(net, "Multiply", w, s), x),
)
ZERO_POINTS = Family(
    _zero_points_start,
    _SCALE_STEPS,
    lambda net, z, x, w: _weighted(net, binary(net, "Multiply", binary(net, "Subtract", w, z), np.full((72, 1), 0.5)), x),
)


def _four_bits_start(net: Net) -> tuple[Port, ...]:
    x = net.parameter(1, 8, 128)
    return convert(net, net.stored("u4", (96, 128), bytes(range(256)) * 24), "f32"), x


FOUR_BITS = Family(
    _four_bits_start,
    {name: step for name, step in _WEIGHT_STEPS.items() if name in ("sum", "difference", "scales", "16 bits", "quantized")},
    _weighted,
)


def _range_start(net: Net) -> tuple[Port, ...]:
    """The limits of a FakeQuantize."""
    return net.const([[1.0]]), net.parameter(1, 8, 72)


def _ranged(net: Net, high: Port, x: Port) -> Sequence[Port]:
    low = net.layer("Negative", high)
    data = {"levels": 256, "auto_broadcast": "numpy"}
    quantized = net.layer("FakeQuantize", x, low, high, low, high, data=data)
    weights = net.layer("FakeQuantize", net.const(np.ones((16, 72))), low, high, low, high, data=data)
    return [matmul(net, quantized, weights, transposed=True)]


RANGES = Family(
    _range_start,
    {"sum": _doubled("Add"), "half": _doubled("Add", 0.5), "16 bits": _through_16_bits, "activation": unary("Tanh")},
    _ranged,
)


# -- integers, variables, strings -------------------------------------------------------------------------------------------


def _integer_end(net: Net, y: Port, *_: Port) -> Sequence[Port]:
    table = net.const(np.ones((16, 4)))
    return [y, net.layer("Gather", table, y, number(net, 0), data={"batch_dims": 0}, shape=(*y.shape, 4), version=8)]


INTEGERS = Family(
    lambda net: (net.parameter(1, 8, kind="i64"),),
    {
        "sum": _doubled("Add"),
        "square": _doubled("Multiply"),
        "quotient": lambda net, y: binary(net, "Divide", binary(net, "Add", y, y), 2),
        "remainder": _doubled("FloorMod"),
        "shift": _doubled("Maximum"),
        "bits": lambda net, y: net.layer("BitwiseXor", y, y, data={"auto_broadcast": "numpy"}, version=13),
        "select": _size_select,
        "narrow": lambda net, y: convert(net, convert(net, binary(net, "Add", y, y), "i32"), "i64"),
        "power": lambda net, y: binary(net, "Power", y, 2),
    },
    _integer_end,
)


def _remembered(net: Net, x: Port) -> Port:
    """A variable that keeps the last sum."""
    name = f"variable {len(net.layers)}"
    shape = ",".join(map(str, x.shape))
    data = {"variable_id": name, "variable_type": "f32", "variable_shape": shape}
    before = net.layer("ReadValue", net.const(np.zeros(x.shape)), data=data, version=6)
    after = binary(net, "Add", before, x)
    net.layer("Assign", after, data={"variable_id": name}, version=6)
    return after


def _appended(net: Net, x: Port) -> Port:
    """A variable that grows, as the cache of a language model."""
    name = f"variable {len(net.layers)}"
    data = {"variable_id": name, "variable_type": "f32", "variable_shape": "1,?,8"}
    before = net.layer("ReadValue", net.const(np.zeros((1, 0, 8))), data=data, shape=(1, -1, 8), version=6)
    after = net.layer("Concat", before, x, data={"axis": 1}, shape=(1, -1, 8))
    net.layer("Assign", after, data={"variable_id": name}, version=6)
    weights = net.layer("Softmax", net.layer(
        "MatMul", x, after, data={"transpose_b": True}, shape=(1, 4, -1)), data={"axis": -1}, version=8)  # fmt: skip
    return net.layer("MatMul", weights, after, shape=x.shape)


VARIABLES = Family(
    lambda net: (net.parameter(1, 4, 8),),
    {"sum": _remembered, "cache": _appended},
    lambda net, y: [y],
)


def _strings_start(net: Net) -> tuple[Port, ...]:
    text = net.parameter(-1, kind="string")
    parts = net.layer("StringTensorUnpack", text, shapes=[[-1]] * 3, kinds=["i32", "i32", "u8"], version=15)
    return (parts[0],)


def _parts(begins: Port) -> list[Port]:
    """Return begins, ends and bytes, which are outputs of one layer."""
    return [begins, replace(begins, port=begins.port + 1), replace(begins, port=begins.port + 2, kind="u8")]


def _normalized(type: str, *texts: bytes, **data: object) -> Step:
    def step(net: Net, begins: Port) -> Port:
        given = [net.stored("u8", (len(text),), text) for text in texts]
        kinds = ["i32", "i32", "u8"]
        parts = [*_parts(begins), *given]
        found: list[Port] = net.layer(type, *parts, data=data, shapes=[[-1]] * 3, kinds=kinds, version="extension")
        return found[0]

    return step


STRINGS = Family(
    _strings_start,
    {
        "case": _normalized("CaseFold", encoding="utf-8"),
        "unicode": _normalized("NormalizeUnicode", normalization_form="NFD"),
        "regex": _normalized("RegexNormalization", rb"\s+", b" ", global_replace=True),
        "bytes": _normalized("UTF8Validate", replace_mode=True),
    },
    lambda net, begins: [net.layer("StringTensorPack", *_parts(begins), shape=[-1], kind="string", version=15)],
)
