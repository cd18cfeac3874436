"""Elementwise: each instruction, broadcasting, types, errors. One in 500 integers of a body may be off by 1: it divides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onnx_specops.ops.elementwise import MOST_OPERANDS, instructions
from tests.onnx_specops.ops.case import Case

F, U8 = np.float32, np.uint8


def _computed(ov: Any, name: str, x: Any, *others: Any) -> Any:
    def constant(number: float) -> Any:
        return ov.constant(np.array(number, F))

    return {
        "add": lambda: ov.add(x, others[0]),
        "sub": lambda: ov.subtract(x, others[0]),
        "mul": lambda: ov.multiply(x, others[0]),
        "div": lambda: ov.divide(x, others[0]),
        "min": lambda: ov.minimum(x, others[0]),
        "max": lambda: ov.maximum(x, others[0]),
        "dequantize": lambda: ov.multiply(ov.subtract(ov.convert(x, "f32"), ov.convert(others[1], "f32")), others[0]),
        "relu": lambda: ov.relu(x),
        "clip": lambda: ov.minimum(ov.maximum(x, others[0]), others[1]),
        "prelu": lambda: ov.subtract(ov.relu(x), ov.multiply(ov.relu(ov.negative(x)), others[0])),
        "sigmoid": lambda: ov.sigmoid(x),
        "hard_sigmoid": lambda: ov.clamp(ov.add(ov.multiply(x, others[0]), others[1]), 0.0, 1.0),
        "gelu": lambda: ov.gelu(x, "ERF"),
        "gelu_tanh": lambda: ov.gelu(x, "TANH"),
        "elu": lambda: ov.elu(x, 1.0),
        "mish": lambda: ov.multiply(x, ov.tanh(ov.log(ov.add(ov.exp(x), constant(1))))),
    }[name]()


def _layer(given: list[str]) -> Callable[..., Any]:
    def build(*nodes: Any, program: str) -> Any:
        from openvino import opset13 as ov

        named = dict(zip(given, nodes, strict=True))
        values = [named.get(f"X{i}") for i in range(MOST_OPERANDS)]
        for one in instructions(program):
            values.append(_computed(ov, one.name, *(values[number] for number in one.arguments)))
        result, zero = values[-1], named["zero_point"]
        if "scale" not in named:
            return result
        levels = ov.add(ov.round(ov.divide(result, named["scale"]), "half_to_even"), ov.convert(zero, "f32"))
        return ov.convert(ov.clamp(levels, 0.0, 255.0), "u8")

    return build


FAR = np.array([sign * size for size in (0, 1e-30, 1e-6, 5, 20, 87, 89, 104, 1e5, 1e37) for sign in (1, -1)], F)


def _numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(F)


def _inputs(operands: tuple[Any, ...], zero: int | None, scale: float) -> dict[str, np.ndarray]:
    arrays = [_numbers(x, i) if isinstance(x, tuple) else np.asarray(x) for i, x in enumerate(operands)]
    inputs = {"X0": arrays[0], "zero_point": np.array(0, F) if zero is None else np.array(zero, U8)}
    if zero is not None:
        inputs["scale"] = np.array(scale, F)
    return inputs | {f"X{i}": array for i, array in enumerate(arrays) if i}


def _case(name: str, program: str, *operands: Any, zero: int | None = None, scale: float = 1 / 32, **options: Any) -> Case:
    inputs = _inputs(operands, zero, scale)
    return Case(
        "Elementwise", name, inputs, {"program": program}, layer=_layer(list(inputs)),
        constants=[known for known in ("zero_point", "scale") if known in inputs],
        rtol=1e-5, atol=2e-6, near=4e-3, **options,
    )  # fmt: skip


def _error(
    name: str, message: str, program: str, *operands: Any, zero: int | None = None, without: str = "", **stated: Any
) -> Case:
    inputs = _inputs(operands, zero, 1 / 32)
    inputs.pop(without, None)
    return Case("Elementwise", name, inputs | stated, {"program": program}, error=f".*{message}")


X = (2, 5, 7, 9)
BYTES = np.random.default_rng(0).integers(0, 256, X).astype(U8)
STEP, ZERO = np.array(1 / 64, F), np.array(130, U8)
CASES = [
    *(_case(name, f"{name} 0 1", X, X) for name in ("add", "sub", "mul", "min", "max")),
    _case("div", "div 0 1", X, np.array(1.7, F)),
    *(_case(name, f"{name} 0", X) for name in ("relu", "sigmoid", "gelu", "gelu_tanh", "elu", "mish")),
    *(_case(f"{name}_far", f"{name} 0", FAR) for name in ("relu", "sigmoid", "gelu", "gelu_tanh", "elu", "mish")),
    _case("clip", "clip 0 1 2", X, np.array(-0.5, F), np.array(0.75, F)),
    _case("clip_to_integers", "clip 0 1 2", X, np.array(-0.5, F), np.array(0.75, F), zero=3),
    _case("prelu", "prelu 0 1", X, (5, 1, 1)),
    _case("hard_sigmoid", "hard_sigmoid 0 1 2", X, np.array(0.2, F), np.array(0.5, F)),
    _case("dequantize", "dequantize 0 1 2;relu 10", BYTES, STEP, ZERO),
    _case("dequantize_channels", "dequantize 0 1 2", BYTES, (5, 1, 1), np.arange(5, dtype=U8).reshape(5, 1, 1)),
    _case("quantized", "mul 0 1;add 10 2;relu 11", X, (5, 1, 1), (5, 1, 1), zero=0),
    _case("between_integers", "dequantize 0 1 2;sigmoid 10;mul 10 11;add 12 3", BYTES, STEP, ZERO, X, zero=100),
    _case("channels_last", "mul 0 1;add 10 2", (3, 40, 33), (33,), (33,), zero=7),
    _case("long_rows", "mul 0 1;add 10 2", (3, 1300), (1300,), (3, 1)),
    _case("more_dimensions_than_the_first", "sub 0 1", (7, 1), (3, 2, 1, 9)),
    _case("outer", "add 0 1;mul 10 2", (6, 1, 5), (1, 8, 1), (6, 8, 5)),
    _case("shared", "gelu 0;mul 10 10;add 11 10;max 12 0", X),
    _case("unused_result", "gelu 0;relu 0", X),
    _case("scalars", "add 0 1", (), ()),
    _case("one_number", "add 0 1", (1, 1), (1,), zero=9),
    _case("empty", "add 0 1", (0, 5), (5,)),
    _case("unused_operands", "relu 2", (2, 0), (7,), X),
    _case("ten_operands", ";".join(["add 0 1", *(f"add {9 + i} {i + 1}" for i in range(1, 9))]), *[(3, 17)] * 10),
    _error("error_name", "'cos 0' is not an instruction", "cos 0", X),
    _error("error_count", "'add 0' is not an instruction", "add 0", X),
    _error("error_argument", "'add 0 10' is not an instruction", "add 0 10", X),
    _error("error_number", "'add 0 x' is not an instruction", "add 0 x", X),
    _error("error_result", "'dequantize 10 1 2' dequantizes a result", "relu 0;dequantize 10 1 2", X, STEP, ZERO),
    _error("error_length", "33 instructions, more than 32", ";".join(["relu 0"] * 33), X),
    _error("error_missing", "uses X1, which is missing", "add 0 1", X),
    _error("error_type", "X0 has another type", "relu 0", BYTES),
    _error("error_shapes", "have shapes that cannot be broadcast", "add 0 1", (2, 3), (2, 4)),
    _error("error_scale", "a quantized output needs a scale", "relu 0", X, zero=3, without="scale"),
    _error(
        "error_zero_point", r"zero_point has the shape \[2\]", "relu 0", X, zero=3, zero_point=np.zeros(2, U8),
    ),
]  # fmt: skip
