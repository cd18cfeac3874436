"""Steps on tokens ``[1, 8, 32]``: arithmetic, normalization, data movement, attention."""

from __future__ import annotations

from collections.abc import Sequence

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
    split,
    transpose,
    unary,
)

_SHAPE = (1, 8, 32)


def _start(net: Net) -> tuple[Port, ...]:
    return (net.parameter(*_SHAPE),)


def _end(net: Net, y: Port) -> Sequence[Port]:
    weights = net.layer("Softmax", y, data={"axis": 2}, version=8)
    return [binary(net, "Add", y, weights), matmul(net, y, net.const(np.ones((32, 4))))]


# -- arithmetic -------------------------------------------------------------------------------------------------------------


def _twice(type: str, scale: float | None = None) -> Step:
    """Return a step that has its input twice."""

    def step(net: Net, x: Port) -> Port:
        y = binary(net, type, x, x)
        return y if scale is None else binary(net, "Multiply", y, scale)

    return step


def _gated(type: str, *data: tuple[str, object], version: int = 1) -> Step:
    return lambda net, x: binary(net, "Multiply", net.layer(type, x, data=dict(data), version=version), x)


def _half(net: Net, x: Port) -> Port:
    return binary(net, "Multiply", binary(net, "Add", x, x), 0.5)


def _selected(net: Net, x: Port) -> Port:
    chosen = binary(net, "Greater", x, 0.0, "boolean")
    return net.layer("Select", chosen, x, binary(net, "Multiply", x, 0.5), data={"auto_broadcast": "numpy"}, kind="f32")


def _hard_swish(net: Net, x: Port) -> Port:
    clamped = net.layer("Clamp", binary(net, "Add", x, 3.0), data={"min": 0, "max": 6})
    return binary(net, "Divide", binary(net, "Multiply", x, clamped), 6.0)


def _gelu(net: Net, x: Port) -> Port:
    erf = net.layer("Erf", binary(net, "Divide", x, 2**0.5))
    return binary(net, "Multiply", binary(net, "Multiply", x, 0.5), binary(net, "Add", erf, 1.0))


def _mish(net: Net, x: Port) -> Port:
    softplus = net.layer("Log", binary(net, "Add", net.layer("Exp", x), 1.0))
    return binary(net, "Multiply", x, net.layer("Tanh", softplus))


def _through(kind: str) -> Step:
    return lambda net, x: convert(net, convert(net, binary(net, "Add", x, x), kind), "f32")


# -- normalization ----------------------------------------------------------------------------------------------------------


def _mean(net: Net, x: Port) -> Port:
    return net.layer("ReduceMean", x, i64(net, 2), data={"keep_dims": True}, shape=(*x.shape[:-1], 1))


def _rms(net: Net, x: Port) -> Port:
    variance = binary(net, "Add", _mean(net, binary(net, "Power", x, 2.0)), 1e-6)
    return binary(net, "Multiply", binary(net, "Divide", x, net.layer("Sqrt", variance)), np.ones(32))


def _layer_norm(net: Net, x: Port) -> Port:
    centered = binary(net, "Subtract", x, _mean(net, x))
    variance = binary(net, "Add", _mean(net, binary(net, "Multiply", centered, centered)), 1e-5)
    scaled = binary(net, "Multiply", binary(net, "Divide", centered, net.layer("Sqrt", variance)), np.ones(32))
    return binary(net, "Add", scaled, np.ones(32))


def _mvn(net: Net, x: Port) -> Port:
    data = {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}
    return net.layer("MVN", binary(net, "Add", x, x), i64(net, 2), data=data, version=6)


def _normalize(net: Net, x: Port) -> Port:
    return net.layer("NormalizeL2", binary(net, "Add", x, x), i64(net, 2), data={"eps": 1e-6, "eps_mode": "add"})


def _batch_norm(net: Net, x: Port) -> Port:
    return net.layer("BatchNormInference", x, *(net.const(np.ones(8)) for _ in range(4)), data={"epsilon": 1e-3}, version=5)


def _softmax(net: Net, x: Port) -> Port:
    return net.layer("Softmax", binary(net, "Add", x, x), data={"axis": -1}, version=8)


# -- data movement ----------------------------------------------------------------------------------------------------------


def _transposed(net: Net, x: Port) -> Port:
    return transpose(net, binary(net, "Add", transpose(net, x, 0, 2, 1), 1.0), 0, 2, 1)


def _transposed_sum(net: Net, x: Port) -> Port:
    y = transpose(net, x, 0, 2, 1)
    return transpose(net, binary(net, "Add", y, y), 0, 2, 1)


def _only_transposed(net: Net, x: Port) -> Port:
    return transpose(net, transpose(net, x, 1, 2, 0), 2, 0, 1)


def _reshaped(net: Net, x: Port) -> Port:
    return reshape(net, net.layer("ReLU", reshape(net, x, 256)), *_SHAPE)


def _reshaped_and_transposed(net: Net, x: Port) -> Port:
    return reshape(net, transpose(net, reshape(net, x, 1, 8, 4, 8), 0, 2, 1, 3), *_SHAPE)


def _reshaped_by_its_shape(net: Net, x: Port) -> Port:
    shape = net.layer("ShapeOf", x, data={"output_type": "i64"}, shape=[3], kind="i64", version=3)
    return net.layer("Reshape", net.layer("Sin", x), shape, data={"special_zero": False}, shape=_SHAPE)


def _split_and_joined(net: Net, x: Port) -> Port:
    return concat(net, 2, *(net.layer("ReLU", part) for part in split(net, x, 2, 2)))


def _halves_exchanged(net: Net, x: Port) -> Port:
    first, second = split(net, x, 2, 2)
    return concat(net, 2, second, first)


def _joined_and_split(net: Net, x: Port) -> Port:
    first, second = split(net, concat(net, 2, x, x), 2, 2)
    return binary(net, "Add", first, second)


def _variadic(net: Net, x: Port) -> Port:
    first, second = net.layer("VariadicSplit", x, number(net, 2), i64(net, 8, -1), shapes=[(1, 8, 8), (1, 8, 24)])
    return concat(net, 2, second, first)


def _gathered(net: Net, x: Port) -> Port:
    y = binary(net, "Add", x, x)
    return net.layer("Gather", y, i64(net, 1, 0, 2, 3, 4, 5, 6, 7), number(net, 1), data={"batch_dims": 0}, version=8)


def _gathered_elements(net: Net, x: Port) -> Port:
    indices = net.const(np.arange(256).reshape(_SHAPE) % 32, np.int64)
    return net.layer("GatherElements", binary(net, "Add", x, x), indices, data={"axis": 2}, version=6)


def _padded(net: Net, x: Port) -> Port:
    ends = i64(net, 0, 1, 0)
    data = {"pad_mode": "constant"}
    y = net.layer("Pad", binary(net, "Add", x, x), ends, i64(net, 0, 1, 0), net.const(0), data=data, shape=(1, 10, 32))
    masks = {f"{name}_mask": "1,0,1" for name in ("begin", "end")}
    masks |= {"new_axis_mask": "0,0,0", "shrink_axis_mask": "0,0,0", "ellipsis_mask": "0,0,0"}
    steps = i64(net, 1, 1, 1)
    return net.layer("StridedSlice", y, ends, i64(net, 0, 9, 0), steps, data=masks, shape=_SHAPE)


def _sliced(net: Net, x: Port) -> Port:
    def part(begin: int, end: int) -> Port:
        bounds = (i64(net, k) for k in (begin, end, 1, 1))
        return net.layer("Slice", x, *bounds, shape=(1, end - begin, 32), version=8)

    return concat(net, 1, part(1, 8), part(0, 1))


def _rolled(net: Net, x: Port) -> Port:
    return net.layer("Roll", binary(net, "Add", x, x), i64(net, 1), i64(net, 1), version=7)


def _reversed(net: Net, x: Port) -> Port:
    lengths = net.const([8], np.int64)
    return net.layer("ReverseSequence", binary(net, "Add", x, x), lengths, data={"batch_axis": 0, "seq_axis": 1})


def _squeezed(net: Net, x: Port) -> Port:
    y = net.layer("Squeeze", x, i64(net, 0), shape=(8, 32))
    return net.layer("Unsqueeze", binary(net, "Add", y, y), i64(net, 0), shape=_SHAPE)


def _tiled(net: Net, x: Port) -> Port:
    y = net.layer("Tile", x, i64(net, 2, 1, 1), shape=(2, 8, 32))
    return net.layer("ReduceSum", y, i64(net, 0), data={"keep_dims": True}, shape=_SHAPE)


def _broadcast(net: Net, x: Port) -> Port:
    shape = net.layer("ShapeOf", x, data={"output_type": "i64"}, shape=[3], kind="i64", version=3)
    return net.layer("Broadcast", binary(net, "Add", x, x), shape, data={"mode": "bidirectional"}, version=3)


def _scattered(net: Net, x: Port) -> Port:
    updates = net.layer("Gather", x, i64(net, 7, 6), number(net, 1), data={"batch_dims": 0}, shape=(1, 2, 32), version=8)
    return net.layer("ScatterUpdate", x, i64(net, 0, 1), updates, number(net, 1), version=3)


def _scattered_elements(net: Net, x: Port) -> Port:
    indices = net.const(np.zeros((1, 1, 32)), np.int64)
    updates = net.const(np.ones((1, 1, 32)))
    data = {"reduction": "sum", "use_init_val": True}
    return net.layer("ScatterElementsUpdate", x, indices, updates, number(net, 1), data=data, version=12)


def _scattered_slices(net: Net, x: Port) -> Port:
    y = net.layer("ScatterNDUpdate", x, net.const([[0, 1], [0, 3]], np.int64), net.const(np.ones((2, 32))), version=4)
    return binary(net, "Maximum", y, x)


def _sorted(net: Net, x: Port) -> Port:
    data = {"axis": 2, "mode": "max", "sort": "value", "index_element_type": "i64"}
    values, indices = net.layer("TopK", x, number(net, 32), data=data, shapes=[_SHAPE] * 2, kinds=["f32", "i64"], version=3)
    return binary(net, "Add", values, convert(net, indices, "f32"))


def _cumulated(net: Net, x: Port) -> Port:
    data = {"exclusive": False, "reverse": False}
    return net.layer("CumSum", binary(net, "Multiply", x, x), number(net, 1), data=data, version=3)


def _counted(net: Net, x: Port) -> Port:
    hot = net.layer(
        "OneHot", convert(net, x, "i64"), number(net, 4), net.const(1), net.const(0), data={"axis": -1},
        shape=(*_SHAPE, 4), kind="f32",
    )  # fmt: skip
    return net.layer("ReduceMax", hot, i64(net, 3), data={"keep_dims": False}, shape=_SHAPE)


def _summed(net: Net, x: Port) -> Port:
    data = {"equation": "abc,abc->abc"}
    return net.layer("Einsum", x, x, data=data, version=7)


def _transformed(net: Net, x: Port) -> Port:
    y = net.layer("RDFT", x, i64(net, 2), shape=(1, 8, 17, 2), version=9)
    return net.layer("IRDFT", binary(net, "Add", y, y), i64(net, 2), i64(net, 32), shape=_SHAPE, version=9)


def _random(net: Net, x: Port) -> Port:
    shape = net.layer("ShapeOf", x, data={"output_type": "i64"}, shape=[3], kind="i64", version=3)
    data = {"output_type": "f32", "global_seed": 1, "op_seed": 2}
    noise = net.layer("RandomUniform", shape, net.const(0), net.const(1), data=data, shape=_SHAPE, kind="f32", version=8)
    return binary(net, "Add", binary(net, "Multiply", noise, x), x)


# -- attention --------------------------------------------------------------------------------------------------------------


def _products(net: Net, x: Port) -> Port:
    return matmul(net, matmul(net, x, x, transposed=True), x)


def _layer_of_weights(net: Net, x: Port) -> Port:
    return net.layer("ReLU", binary(net, "Add", matmul(net, x, net.const(np.ones((32, 32)))), np.ones(32)))


def _heads(net: Net, x: Port) -> Port:
    return transpose(net, reshape(net, x, 1, 8, 4, 8), 0, 2, 1, 3)


def _tokens(net: Net, y: Port) -> Port:
    return reshape(net, transpose(net, y, 0, 2, 1, 3), *_SHAPE)


def _attention(net: Net, x: Port) -> Port:
    q, k, v = (_heads(net, x) for _ in range(3))
    scores = binary(net, "Multiply", matmul(net, q, k, transposed=True), 8**-0.5)
    weights = net.layer("Softmax", scores, data={"axis": -1}, version=8)
    return _tokens(net, matmul(net, weights, v))


def _fused_attention(net: Net, x: Port) -> Port:
    q, k, v = (_heads(net, x) for _ in range(3))
    return _tokens(net, net.layer("ScaledDotProductAttention", q, k, v, data={"causal": True}, version=13))


def _attention_of_weights(net: Net, x: Port) -> Port:
    """Attention whose weights are the query of the next one."""
    weights = net.layer("Softmax", matmul(net, x, x, transposed=True), data={"axis": -1}, version=8)
    return binary(net, "Add", matmul(net, weights, x), x)


def _rotated(net: Net, x: Port) -> Port:
    first, second = split(net, x, 2, 2)
    turned = concat(net, 2, net.layer("Negative", second), first)
    angles = np.arange(256).reshape(_SHAPE) / 32
    whole = binary(net, "Multiply", x, np.cos(angles)), binary(net, "Multiply", turned, np.sin(angles))
    return binary(net, "Add", *whole)


def _rotated_by_itself(net: Net, x: Port) -> Port:
    """A rotation whose angles depend on the last one."""
    first, second = split(net, x, 2, 2)
    turned = concat(net, 2, net.layer("Negative", second), first)
    whole = binary(net, "Multiply", x, net.layer("Cos", x)), binary(net, "Multiply", turned, net.layer("Sin", x))
    return binary(net, "Add", *whole)


# -- quantization -----------------------------------------------------------------------------------------------------------


def _quantized(net: Net, x: Port) -> Port:
    return fake_quantize(net, binary(net, "Add", x, x))


def _only_quantized(net: Net, x: Port) -> Port:
    return fake_quantize(net, x)


def _quantized_layer(net: Net, x: Port) -> Port:
    weights = fake_quantize(net, net.const(np.linspace(-1, 1, 1024).reshape(32, 32)), levels=255)
    y = fake_quantize(net, matmul(net, fake_quantize(net, x), weights), -32, 32)
    return binary(net, "Add", y, x)


def _to_integers(net: Net, x: Port) -> Port:
    y = net.layer("FakeQuantize", x, *(net.const(b) for b in (-1, 1, 0, 255)), data={"levels": 256})
    return binary(net, "Multiply", convert(net, convert(net, y, "u8"), "f32"), 1 / 255)


_VARIADIC: dict[str, Step] = {
    "LSTM": lambda net, x: _recurrent(net, x, "LSTM", 4),
    "GRU": lambda net, x: _recurrent(net, x, "GRU", 3),
    "RNN": lambda net, x: _recurrent(net, x, "RNN", 1),
    "LSTM in both directions": lambda net, x: _recurrent(net, x, "LSTM", 4, 2),
}


def _recurrent(net: Net, x: Port, kind: str, gates: int, directions: int = 1) -> Port:
    hidden = 32 // directions
    weights = np.linspace(-1, 1, directions * gates * hidden * 32).reshape(directions, gates * hidden, 32)
    state = net.const(np.zeros((1, directions, hidden)))
    states = [state, state] if kind == "LSTM" else [state]
    given = [net.const([8], np.int64), net.const(weights), net.const(weights[:, :, :hidden])]
    given.append(net.const(np.zeros((directions, gates * hidden))))
    shapes: list[tuple[int, ...]] = [(1, directions, 8, hidden), *[(1, directions, hidden)] * len(states)]
    data = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
    every, *_ = net.layer(f"{kind}Sequence", x, *states, *given, data=data, shapes=shapes, version=5)
    return reshape(net, transpose(net, every, 0, 2, 1, 3), *_SHAPE)


ROWS = Family(
    _start,
    {
        "sum": _twice("Add"),
        "half sum": _half,
        "difference": _twice("Subtract"),
        "square": _twice("Multiply"),
        "quotient": _twice("Divide"),
        "maximum": _twice("Maximum"),
        "squared difference": _twice("SquaredDifference", 0.5),
        "power": _twice("Power"),
        "remainder": _twice("FloorMod"),
        "sigmoid gate": _gated("Sigmoid"),
        "swish": _gated("Swish", version=4),
        "hard sigmoid gate": _gated("HSigmoid", version=5),
        "clamped gate": _gated("Clamp", ("min", 0), ("max", 1)),
        "hard swish": _hard_swish,
        "gelu": _gelu,
        "mish": _mish,
        "relu": unary("ReLU"),
        "log softmax": unary("LogSoftmax", 5, axis=2),
        "sine": unary("Sin"),
        "floor": unary("Floor"),
        "round": unary("Round", 5, mode="half_to_even"),
        "elu": unary("Elu", alpha=1.0),
        "selu": lambda net, x: net.layer("Selu", x, net.const([1.6]), net.const([1.05])),
        "prelu": lambda net, x: net.layer("PReLU", x, net.const([0.1])),
        "select": _selected,
        "16 bits": _through("f16"),
        "integers": _through("i32"),
        "bytes": _through("u8"),
        "double": _through("f64"),
        "rms": _rms,
        "layer norm": _layer_norm,
        "mvn": _mvn,
        "normalize": _normalize,
        "batch norm": _batch_norm,
        "softmax": _softmax,
        "transposes": _transposed,
        "transposed sum": _transposed_sum,
        "only transposes": _only_transposed,
        "reshapes": _reshaped,
        "reshapes and transposes": _reshaped_and_transposed,
        "reshapes by the shape": _reshaped_by_its_shape,
        "split and concat": _split_and_joined,
        "halves exchanged": _halves_exchanged,
        "concat and split": _joined_and_split,
        "variadic split": _variadic,
        "gather": _gathered,
        "gather elements": _gathered_elements,
        "pad and slice": _padded,
        "slices": _sliced,
        "roll": _rolled,
        "reverse": _reversed,
        "squeeze": _squeezed,
        "tile": _tiled,
        "broadcast": _broadcast,
        "scatter": _scattered,
        "scatter elements": _scattered_elements,
        "scatter slices": _scattered_slices,
        "topk": _sorted,
        "cumulative sum": _cumulated,
        "one hot": _counted,
        "einsum": _summed,
        "fourier": _transformed,
        "random": _random,
        "products": _products,
        "dense": _layer_of_weights,
        "attention": _attention,
        "fused attention": _fused_attention,
        "attention of itself": _attention_of_weights,
        "rotation": _rotated,
        "rotation by itself": _rotated_by_itself,
        "quantized sum": _quantized,
        "quantized": _only_quantized,
        "quantized dense": _quantized_layer,
        "through bytes": _to_integers,
        **_VARIADIC,
    },
    _end,
)
