"""Departures of OpenVINO's CPU plugin from its specification: they still exist, and the converted model handles them.

Each departure that the rules declare (`converters.openvino.rule.Departure`) has an example here, the smallest model that
shows it. If a release of OpenVINO corrects one, its test fails. Then the rule's ``departs`` must change, and the rule itself
if it followed the CPU plugin.

All of them: ``pytest tests/conformance/operations/test_departures.py --conformance=all``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openvino import opset2
from openvino.utils.node_factory import NodeFactory

from converters.openvino import convert
from converters.openvino import rules as _rules  # noqa: F401  (importing it registers the rules)
from converters.openvino.rule import EVERYWHERE, Departure, find_rule, rules
from tests.comparison import assert_all_close
from tests.conformance.case import Case
from tests.conformance.check import forms, run_model
from tests.conformance.operation_models import dynamic, layer_case, replaced, static, statics
from tests.conformance.operations import cases
from tests.conformance.operations.cases import control_flow
from tests.conformance.operations.cases.arithmetic import pdpd
from tests.conformance.oracle import Oracle, OracleError, Outputs
from tests.processor import HAS_AVX512

F, I32, I64 = np.float32, np.int32, np.int64
NAN, INF = np.nan, np.inf

EXAMPLES: list[Case] = []
"""The name of each case is the beginning of the departure's ``where``, and ``expected`` is the specified result."""

UNSHOWN = {
    "no symbols in any string": "a tokenizer shows it: tests/language/test_tokenizers.py",
    "bytes that are not UTF-8": "OpenVINO crashes on some: tests/language/test_tokenizers.py",
    "matches that need more than 32 KiB": "the oracle has no extensions; tests/language/test_operations.py shows them",
    "u32 as text": "the oracle has no extensions; tests/language/operations.py has them",
    "booleans as text": "the oracle has no extensions; tests/language/operations.py has them",
    "`auto_pad` `same_upper`": "reading out of bounds returns arbitrary values and damages the oracle's process",
    "a `max_output_boxes_per_class` of 0": "the uninitialized memory may contain the right result",
    "no selected boxes": "the uninitialized memory may contain the right result",
    "no boxes, or a `nms_top_k`": "the uninitialized memory may contain the right result",
    "a `keep_top_k` of 0": "the uninitialized memory may contain the right result",
    "regions with a NaN, infinity": "the result is undefined: the processor decides",
    "data of known dimensions, with `start`": "reading out of bounds damages the oracle's process",
    "data that have no steps": "the uninitialized memory may contain the right result",
    "an empty sequence": "the uninitialized memory may contain the right result",
    "an empty dimension to sum over, with": "the uninitialized memory may contain the right result",
    "a layer that runs again": "an example is run once",
    "a negative number in the target shape": "the number of threads decides: tests/conformance/random shows it",
    "windows that are larger than the padded data": "the number of threads decides: tests/conformance/random shows them",
    "negative indices into an integer vector": "the uninitialized memory may contain the right result",
    "an axis that is known to have no": "the uninitialized memory may contain the right result",
    "`batch_dims` of known dimensions": "the CPU plugin crashes, mostly",
    "a 0 that copies a dimension": "the specification rejects it: tests/conformance/random recognizes the message",
    "slices without elements": "the CPU plugin returns a result for one of its types, and fails for the other",
    "images without rows or columns": "the uninitialized memory may contain the right result",
    "repeats that are empty or not constant": "the uninitialized memory may contain the right result",
    "`min` and `max` of a NaN": "the result is undefined: the runtime decides",
    "a NaN in the data or states, or infinities": "the result is undefined: ours is NaN",
    "a NaN among the probabilities": "the result is undefined: depending on the position, the results are equal or differ",
    "a NaN among the elements": "the result is undefined: depending on the position, the results are equal or differ",
}
"""Departures without an example, by the beginning of their ``where``, with the reason."""


def _floats(*values: Any) -> np.ndarray:
    return np.array(values, F)


def _shown(
    operation: str, version: int, where: str, make: Any, inputs: Iterable[Any], attributes: Any = None, expected: Any = None
) -> None:
    """Register an example; without ``expected`` the CPU plugin differs from the result of ``Model.evaluate``."""
    settings = {} if expected is None else {"expected": [expected if isinstance(expected, list) else [expected]]}
    EXAMPLES.append(layer_case(operation, f"opset{version}", make, where, inputs, attributes, **settings))


def _shown_by(name: str, where: str, **changes: Any) -> None:
    """Register one of the operations' own cases as an example."""
    (found,) = (c for c in cases.CASES if c.id == name)
    EXAMPLES.append(replace(found, name=where, inputs=found.inputs[:1], **changes))


# -- everywhere ------------------------------------------------------------------------------------------------------------

_shown("Abs", 1, "integers of 64 bits", "abs", [static(np.array([-(2**40) - 1]))])
_shown("Add", 1, "f64", "add", [static(np.array([1e300])), static(np.array([0.0]))], expected=np.array([1e300]))
_shown(
    "Exp",
    1,
    "a layer whose inputs are all constants",
    lambda ops: ops.exp(ops.constant(np.array([1], I32))),
    [],
    expected=np.array([3], I32),
)
_shown(
    "Multiply",
    1,
    "f16 and bf16",
    lambda ops, x, y: ops.multiply(ops.multiply(x, x), y),
    [static(np.array([300], np.float16)), static(np.array([0.001], np.float16))],
)
_shown("Sign", 1, "integers between", lambda ops, x: ops.sign(ops.cos(x)), [static(np.array([256, 64], I32))])
_shown(
    "Reshape",
    1,
    "inputs and results of unknown rank",
    "reshape",
    [dynamic(_floats(1, 2), dims=[2]), dynamic(np.array([2, 1]), dims=[-1])],
    {"special_zero": False},
)
_shown_by("Constant-1-f8e8m0-7", "constants of f8e8m0")

# -- activations -----------------------------------------------------------------------------------------------------------

for _operation, _version, _make, _given in (
    ("Relu", 1, "relu", {}),
    ("HSigmoid", 5, "hsigmoid", {}),
    ("Clamp", 1, "clamp", {"min_value": -1.0, "max_value": 1.0}),
):
    _shown(_operation, _version, "a NaN", _make, [static(_floats(NAN))], _given)
for _version in (1, 8):
    _shown("Softmax", _version, "a NaN among", "softmax", [static(_floats(NAN, 1, 2))], {"axis": 0})
_shown(
    "LogSoftmax", 5, "a NaN among", "log_softmax", [static(_floats(NAN, 1, 2))], {"axis": 0}, expected=_floats(NAN, NAN, NAN)
)
_shown(
    "Clamp",
    1,
    "i8 and u8, with",
    "clamp",
    [static(np.array([0, 9], np.int8))],
    {"min_value": 0.5, "max_value": 2.5},
    expected=np.array([1, 2], np.int8),
)
_shown("Relu", 1, "integers of 32 bits", "relu", [static(np.array([2**24 + 1], I32))])
for _version in (2, 7):
    _given = {"approximation_mode": "erf"} if _version == 7 else {}
    _shown("Gelu", _version, "infinity", f"opset{_version}.Gelu", [static(_floats(INF))], _given, _floats(INF))
_shown("PRelu", 1, "a slope for the last", "prelu", [dynamic(np.full((1, 2, 3), -1, F)), dynamic(_floats(1, 2, 3))])
_shown(
    "PRelu",
    1,
    "negative infinity",
    lambda ops, x: ops.prelu(
        ops.convolution(x, ops.constant(np.ones((1, 1, 1, 1), F)), [1, 1], [0, 0], [0, 0], [1, 1]), ops.constant(_floats(0))
    ),
    [static(np.full((1, 1, 1, 1), -INF, F))],
    expected=np.full((1, 1, 1, 1), NAN, F),
)
_shown(
    "PRelu",
    1,
    "a slope for each channel, directly after",
    lambda ops, x: ops.prelu(ops.matmul(x, ops.constant(-np.eye(3, dtype=F)), False, False), ops.constant(_floats(1, 2, 3))),
    [static(np.ones((1, 3, 3, 3), F))],
)
_shown(
    "PRelu",
    1,
    "a slope for each channel, between",
    lambda ops, x: ops.fake_quantize(
        ops.prelu(
            ops.matmul(x, ops.constant(np.eye(3, 8, dtype=F)), False, False),
            ops.constant(_floats(-0.5, 0.5, 1.5).reshape(1, 3, 1)),
        ),
        *(ops.constant(np.linspace(limit, 2 * limit, 8, dtype=F)) for limit in (-2, 2, -2, 2)),
        255,
    ),
    [static(np.linspace(-2, 2, 18, dtype=F).reshape(2, 3, 3))],
)
_shown(
    "HardSigmoid",
    1,
    "parameters",
    "hard_sigmoid",
    [static(_floats(0.5)), static(np.array(0.2, F)), static(np.array(0.5, F))],
    expected=_floats(0.6),
)
for _alpha, _beta, _result in ((0, 0.25, 0.25), (0.25, 0, 0.5)):
    _shown(
        "HardSigmoid",
        1,
        "an `alpha` or",
        "hard_sigmoid",
        [static(_floats(2)), np.array(_alpha, F), np.array(_beta, F)],
        expected=_floats(_result),
    )
_shown("Selu", 1, "parameters", "selu", [static(_floats(2)), static(_floats(1)), static(_floats(3))], expected=_floats(6))
_shown("Selu", 1, "an `alpha` or", "selu", [static(_floats(2)), _floats(1), _floats(0)], expected=_floats(0))

# -- arithmetic ------------------------------------------------------------------------------------------------------------

for _operation, _number in (("Asin", 1), ("Exp", 1), ("Log", 2), ("Sin", 1)):
    _shown(_operation, 1, "integers of 32 and 64 bits", _operation.lower(), [static(np.array([_number], I32))])
for _operation, _version in (("Ceiling", 1), ("Floor", 1), ("Round", 5)):
    _given = {"mode": "half_to_even"} if _operation == "Round" else {}
    _shown(_operation, _version, "integers of 32 bits", _operation, [static(np.array([2**24 + 1], I32))], _given)
for _operation in ("Cosh", "Sinh"):
    _shown(_operation, 1, "an i32 whose", _operation.lower(), [static(np.array([30], I32))])
_shown("Exp", 1, "a NaN", "exp", [static(_floats(NAN))])
_shown("Negative", 1, "unsigned", "negative", [static(np.array([0], np.uint8))], expected=np.array([0], np.uint8))
_shown("Round", 5, "`half_away_from_zero`", "round", [static(_floats(0.49999997))], {"mode": "half_away_from_zero"})
for _operation in ("Add", "Subtract"):
    _shown(
        _operation,
        1,
        "results beyond",
        _operation.lower(),
        [static(np.array([100, 3], np.uint8)), static(np.array([200, 7], np.uint8))],
    )
_shown(
    "SquaredDifference",
    1,
    "i8 and u8",
    "squared_difference",
    [static(np.array([5], np.uint8)), static(np.array([2], np.uint8))],
    expected=np.array([9], np.uint8),
)
for _operation in ("Maximum", "Minimum"):
    _shown(_operation, 1, "a NaN in the first", _operation.lower(), [static(_floats(NAN)), static(_floats(1))])
    _shown(_operation, 1, "a NaN in the second", _operation.lower(), [static(_floats(1)), static(_floats(NAN))])
_shown("Divide", 1, "integers with `m_pythondiv`", "divide", [static(np.array([-7], I32)), static(np.array([2], I32))])
_shown(
    "Divide",
    1,
    "i8 and u8, if",
    "divide",
    [dynamic(np.array([7], np.uint8)), dynamic(np.array([2], np.uint8))],
    expected=np.array([3], np.uint8),
)
_shown("Divide", 1, "an integer divisor", "divide", [static(np.array([1], I32)), static(np.array([0], I32))])
_shown("FloorMod", 1, "an integer divisor", "floor_mod", [static(np.array([1], np.int8)), static(np.array([0], np.int8))])
for _operation, _make, _number in (
    ("Divide", "divide", 1),
    ("Mod", "mod", 10),
    ("FloorMod", "floor_mod", 10),
    ("Power", "power", 1),
):
    _shown(
        _operation, 1, "integers of 32 bits", _make, [static(np.array([1000000007], I32)), static(np.array([_number], I32))]
    )
_shown("Power", 1, "results beyond", "power", [static(np.array([10], np.uint32)), static(np.array([12], np.uint32))])
_shown("FloorMod", 1, "floats whose quotient", "floor_mod", [static(_floats(1e9)), static(_floats(3))])
_shown("Mod", 1, "floats whose quotient", "mod", [static(_floats(1e9)), static(_floats(3))], expected=_floats(1))
_shown("Mod", 1, "an infinite divisor", "mod", [static(_floats(5)), static(_floats(INF))], expected=_floats(5))


def _pdpd(operation: str, version: int, make_opset: int, *run: np.ndarray, expected: Any = None) -> None:
    make = f"opset{make_opset}.{operation}"
    _shown(operation, version, "`auto_broadcast=pdpd`", make, statics(run), pdpd(0), expected=expected)


_LEFT, _RIGHT = np.arange(6, dtype=I32).reshape(2, 3) + 1, np.array([2, 4], I32)
for _operation in ("Add", "Subtract"):
    _bytes = statics([_LEFT.astype(np.uint8), np.array([[3, 2, 1], [255, 255, 255]], np.uint8)])
    _shown(_operation, 1, "i8 and u8 with", f"opset1.{_operation}", _bytes, pdpd(0))


def _after_a_product(operation: str) -> Callable[..., Any]:
    def make(ops: Any, x: Any, y: Any, z: Any) -> Any:
        product = ops.matmul(x, y, False, False)
        return NodeFactory("opset1").create(operation, [product.output(0), z.output(0)], pdpd(0))

    return make


for _operation, _result in (("Add", [[4, 5], [7, 8]]), ("Multiply", [[3, 6], [12, 16]])):
    _shown(
        _operation,
        1,
        "a constant that",
        _after_a_product(_operation),
        [static(_floats([1, 2], [3, 4])), _floats([1, 0], [0, 1]), _floats(3, 4)],
        expected=_floats(*_result),
    )
for _operation, _function in (("Greater", np.greater), ("GreaterEqual", np.greater_equal)):
    _square = _LEFT[:, :2].astype(F)
    _pdpd(_operation, 1, 1, _square, _RIGHT.astype(F), expected=_function(_square, _RIGHT[:, None]))
for _operation in ("Subtract", "Divide", "Equal", "NotEqual", "Less", "LessEqual"):
    _pdpd(_operation, 1, 1, _LEFT.astype(F), _RIGHT.astype(F))
for _operation, _version in (("LogicalAnd", 1), ("LogicalOr", 1), ("LogicalXor", 2)):
    _pdpd(_operation, _version, 1, _LEFT > 2, _RIGHT > 2)
for _operation, _function in (("LeftShift", np.left_shift), ("RightShift", np.right_shift)):
    _pdpd(f"Bitwise{_operation}", 15, 15, _LEFT, _RIGHT, expected=_function(_LEFT, _RIGHT[:, None]))
for _operation, _function in (("And", np.bitwise_and), ("Or", np.bitwise_or), ("Xor", np.bitwise_xor)):
    _pdpd(f"Bitwise{_operation}", 13, 13, _LEFT, _RIGHT, expected=_function(_LEFT, _RIGHT[:, None]))
_shown_by("Select-1-pdpd-front", "`auto_broadcast=pdpd`")
_shown("IsFinite", 10, "numbers below", "is_finite", [static(_floats(1e-40))], expected=np.array([True]))

# -- comparison, logic -----------------------------------------------------------------------------------------------------

for _operation, _make in (
    ("Equal", "equal"),
    ("NotEqual", "not_equal"),
    ("Less", "less"),
    ("LessEqual", "less_equal"),
    ("Greater", "greater"),
    ("GreaterEqual", "greater_equal"),
):
    _numbers = [2**24 + 1, 2**24] if _operation in ("Greater", "LessEqual") else [2**24, 2**24 + 1]
    _shown(_operation, 1, "integers of 32 bits", _make, [static(np.array([n], I32)) for n in _numbers])
for _operation, _make in (("Greater", "greater"), ("GreaterEqual", "greater_equal")):
    _shown(_operation, 1, "a NaN", _make, [static(_floats(NAN)), static(_floats(1))])
_shown(
    "BitwiseRightShift",
    15,
    "u32 and u64",
    "bitwise_right_shift",
    [static(np.array([2**31], np.uint32)), static(np.array([31], np.uint32))],
    expected=np.array([1], np.uint32),
)

# -- conversion, quantization ----------------------------------------------------------------------------------------------


def _converts(where: str, array: np.ndarray, *types: str) -> None:
    def make(ops: Any, x: Any) -> Any:
        for name in types:
            x = ops.convert(x, name)
        return x

    _shown("Convert", 1, where, make, [static(array)])


_converts("floats beyond the range of i32", _floats(5e9), "u32")
_converts("f64 beyond the range of i8", np.array([300.0]), "u8")
_shown("Convert", 1, "floats beyond the range of i8", lambda ops, x: ops.convert(x, "u8"), [dynamic(_floats(300, -3))])
_converts("a NaN to boolean", _floats(NAN), "boolean")
_converts("integers beyond the range of f16", np.array([70000], I32), "f16")
_converts("f16 and f32 to bf16", _floats(0.07958), "bf16", "f32")
_converts("f32 to f16 and back", _floats(1.0001, 1e6), "f16", "f32")
_converts("floats beyond the range of i16", _floats(-1.5, 70000), "u16", "f32")
_converts("numbers to i4 or u4", np.array([17], I32), "u4", "i32")
_converts("numbers to u3 and u6", np.array([3], I32), "u3", "i32")


def _quantizes(where: str, x: np.ndarray, *limits: Any, levels: int) -> None:
    inputs = [static(x), *(np.asarray(limit, F) for limit in limits)]
    _shown("FakeQuantize", 1, where, "fake_quantize", inputs, {"levels": levels})


_STEP = (np.float64(F(0.9)) - F(-0.3)) / 15
_quantizes(
    "constant limits, and a number halfway", (F(-0.3) + (np.arange(15) + 0.5) * _STEP).astype(F), -0.3, 0.9, 0, 15, levels=16
)
_quantizes("constant input limits that are equal", _floats([0], [1]), 0.1, 0.1, -1, 1, levels=2)
_quantizes("constant input limits in the wrong", _floats([-0.5], [0], [0.5]), 1, -1, 0, 15, levels=16)
_quantizes("constant limits of different", np.ones((1, 2, 2), F), [[[-1], [-2]]], 1.5, [0, 1], 3, levels=16)
_quantizes("limits of more dimensions", _floats(-0.5, 0.5), [[-1]], [[1]], [[-1]], [[1]], levels=16)
_quantizes("constant limits that are larger", _floats([-0.5], [0.5]), -1, 1, -1, [[1, 2], [3, 4]], levels=16)
_quantizes("65,536 levels with constant limits that", _floats(-0.5, 0, 0.5), -1, 1, -1, 1, levels=65536)
_shown(
    "FakeQuantize",
    1,
    "65,536 levels with constant limits in f32",
    lambda ops, x: ops.relu(ops.fake_quantize(x, *(_floats(limit) for limit in (-1, 1, -1, 1)), 65536)),
    [static(_floats(-2, 0.5, 2))],
)
for _range in ((-3, -0.4), (3, 4)):
    _shown(
        "FakeQuantize",
        1,
        "a Clamp to a range",
        lambda ops, x, bounds=_range: ops.fake_quantize(
            ops.clamp(ops.matmul(x, np.eye(4, dtype=F), False, False), *bounds),
            *(_floats(limit) for limit in (0, 2.55, 0, 2.55)),
            256,
        ),
        [static(_floats([-3, -0.5, 0.5, 4]))],
    )
for _function in ("multiply", "add"):
    _shown(
        "FakeQuantize",
        1,
        "a reduction without `keep_dims`",
        lambda ops, x, function=_function: ops.fake_quantize(
            getattr(ops, function)(ops.reduce_mean(x, np.array([1]), False), _floats([0.5, 1, 1.5])),
            *(_floats(limit) for limit in (-4, 4, -4, 4)),
            257,
        ),
        [static(_floats([[0.25, 0.5, -0.75], [0.75, -1.5, 0.25]]))],
    )
for _function in ("batch_to_space", "space_to_batch"):
    _shown(
        "FakeQuantize",
        1,
        "a product or a sum of data of unknown dimensions",
        lambda ops, x, function=_function: ops.fake_quantize(
            ops.add(getattr(opset2, function)(x, [1, 1, 2], [0, 0, 0], [0, 0, 0]), _floats([[0.5], [1], [1.5]])),
            *(_floats(limit) for limit in (-4, 4, -4, 4)),
            257,
        ),
        [dynamic(np.linspace(-1, 1, 24, dtype=F).reshape(2, 3, 4), dims=[-1, 3, 4])],
    )
for _function in ("multiply", "add", "divide"):
    _shown(
        "FakeQuantize",
        1,
        "a product or a sum of data of unknown dimensions",
        lambda ops, x, function=_function: ops.fake_quantize(
            getattr(ops, function)(x, _floats([0.5, 1, 2, 4])), *(_floats(limit) for limit in (-8, 8, -8, 8)), 257
        ),
        [dynamic(np.linspace(-1, 1, 12, dtype=F).reshape(3, 4), dims=[-1, 4])],
    )
_LEVELS = np.linspace(1, 2, 8, dtype=F).reshape(1, 8, 1, 1)
_SIGNS = np.where(np.arange(64).reshape(8, 8, 1, 1) % 3 == 0, -1, 1).astype(F)


def _binary(levels: np.ndarray, limit: Any) -> Any:
    def make(ops: Any, x: Any) -> Any:
        data = ops.fake_quantize(x, *(ops.constant(sign * levels) for sign in (-1, 1, -1, 1)), 2)
        limits = (ops.constant(np.asarray(sign * limit, F)) for sign in (-1, 1, -1, 1))
        return ops.convolution(data, ops.fake_quantize(ops.constant(_SIGNS), *limits, 2), [1, 1], [0, 0], [0, 0], [1, 1])

    return make


for _where, _levels, _limit in (
    ("data and weights with two levels of FakeQuantize, and with limits", _LEVELS, np.ones((8, 1, 1, 1))),
    ("data and weights with two levels of FakeQuantize, and with scalar", np.ones((1, 8, 1, 1), F), 1),
):
    _data = np.where(np.arange(8) % 2, 0.5, -0.5).astype(F).reshape(1, 8, 1, 1)
    _expected = (_SIGNS[:, :, 0, 0] @ (np.sign(_data) * _levels).reshape(8)).reshape(1, 8, 1, 1)
    _shown("Convolution", 1, _where, _binary(_levels, _limit), [static(_data)], expected=_expected)
_quantizes("a NaN", _floats(NAN), -1, 1, -1, 1, levels=16)
_shown_by("FakeQuantize-1-pdpd", "`auto_broadcast=pdpd`")
_shown_by("FakeConvert-13-f8e4m3-subnormal", "subnormal")
for _type in ("f8e4m3", "f8e5m2"):
    _arguments = [static(_floats(NAN, 1)), np.array(1, F)]
    _shown("FakeConvert", 13, f"{_type} of a NaN", "fake_convert", _arguments, {"destination_type": _type})


def _shape_of_selected(ops, boxes, scores):
    from openvino import opset1

    return ops.shape_of(opset1.non_max_suppression(boxes, scores, np.int64(2), np.float32(0.5)).output(0))


for _version in (1, 3):  # two equal boxes, one of which is selected
    _shown(
        "ShapeOf",
        _version,
        "the output of NonMaxSuppression",
        _shape_of_selected,
        [static(np.array([[[0, 0, 1, 1]] * 2], F)), static(np.array([[[0.9, 0.8]]], F))],
        expected=np.array([1, 3]),
    )

# -- convolution, pooling --------------------------------------------------------------------------------------------------

_IMAGE, _KERNEL = np.arange(9, dtype=F).reshape(1, 1, 3, 3), np.ones((1, 1, 3, 3), F)
_WINDOW = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
_shown(
    "Convolution",
    1,
    "a kernel of unknown",
    "convolution",
    [dynamic(_IMAGE, dims=[1, 1, 3, 3]), dynamic(_KERNEL, dims=[-1] * 4)],
    _WINDOW,
    expected=np.full((1, 1, 1, 1), 36, F),
)
_shown(
    "GroupConvolution",
    1,
    "a kernel of unknown",
    "group_convolution",
    [dynamic(_IMAGE, dims=[1, 1, 3, 3]), dynamic(_KERNEL[None], dims=[1, -1, -1, -1, -1])],
    _WINDOW,
    expected=np.full((1, 1, 1, 1), 36, F),
)
_WHOLE = np.array([[0, 1, 3, 3, 2], [3, 8, 15, 12, 7], [9, 21, 36, 27, 15], [9, 20, 33, 24, 13], [6, 13, 21, 15, 8]], F)
for _operation, _make, _kernel in (
    ("ConvolutionBackpropData", "convolution_backprop_data", _KERNEL),
    ("GroupConvolutionBackpropData", "group_convolution_backprop_data", _KERNEL[None]),
):
    # The result is cropped by one row and column on each side of the full five by five result.
    _shown(
        _operation,
        1,
        "`output_shape` and explicit",
        _make,
        [static(_IMAGE), _kernel],
        {"output_shape": np.array([3, 3]), **_WINDOW},
        expected=_WHOLE[None, None, 1:4, 1:4],
    )
    _shown(
        _operation,
        1,
        "a kernel of one element",
        _make,
        [static(np.array([[[1, 2, 3]]], F)), np.ones([1] * (_kernel.ndim - 1), F)],
        {"strides": [1], "pads_begin": [1], "pads_end": [0], "output_padding": [1], "dilations": [1]},
        expected=np.array([[[2, 3, 0]]], F),
    )
_shown(
    "ConvolutionBackpropData",
    1,
    "an `output_shape` that is not",
    lambda ops, x, w, size: ops.convolution_backprop_data(
        x, w, strides=[1, 1], dilations=[1, 1], output_shape=size, auto_pad="same_upper"
    ),
    [static(_IMAGE), _KERNEL, static(np.array([3, 3]))],
    expected=_WHOLE[None, None, 1:4, 1:4],
)
_shown_by("AdaptiveMaxPool-8-i64", "data or indices")
for _version in (1, 14, 16):
    _shown(
        "AvgPool",
        _version,
        "windows that contain only padding",
        "avg_pool",
        [static(np.ones((1, 1, 5), F))],
        {"kernel_shape": [1], "strides": [3], "pads_begin": [0], "pads_end": [0], "exclude_pad": False}
        | ({"rounding_type": "ceil"} if _version < 16 else {"rounding_type": "ceil", "dilations": [1]}),
        expected=np.full((1, 1, 3), 1, F),
    )
_LOWEST = np.full((1, 1, 2, 2), -INF, F)
_GIVEN = {"kernel": [2, 2], "strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
_shown("MaxPool", 1, "minus infinity", "MaxPool", [static(_LOWEST)], _GIVEN, expected=_LOWEST[:, :, :1, :1])

_GIVEN = {"strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0]}
_SUMMED = np.full((1, 1, 2, 7), 54, np.uint8)
_SUMMED[..., 0, :] = 55  # the mean is 54.5
for _version, _more in ((1, {}), (14, {}), (16, {"dilations": [1, 1]})):
    _shown(
        "AvgPool",
        _version,
        "i8 and u8 whose mean",
        "AvgPool",
        [static(_SUMMED)],
        {**_GIVEN, **_more, "kernel": [2, 7], "exclude-pad": False},
        expected=np.full((1, 1, 1, 1), 54, np.uint8),
    )
_shown(
    "AdaptiveAvgPool",
    8,
    "one window of i8",
    "adaptive_avg_pool",
    [static(np.full((1, 1, 2, 2), 100, np.int8)), np.array([1, 1])],
    expected=np.full((1, 1, 1, 1), 100, np.int8),
)

# -- detectors and regions -------------------------------------------------------------------------------------------------

_CLASSES = np.zeros((1, 8, 4, 4), F)
_CLASSES[0, 7] = 200
_ONE_CLASS = np.full((1, 8, 4, 4), 0.5, F)
_ONE_CLASS[0, [2, 3, 5, 6]], _ONE_CLASS[0, 7] = 0, 1
_shown(
    "RegionYolo",
    1,
    "`do_softmax` of",
    "region_yolo",
    [static(_CLASSES)],
    {"coords": 4, "classes": 3, "num": 1, "do_softmax": True, "mask": [], "axis": 1, "end_axis": 1, "anchors": []},
    expected=_ONE_CLASS,
)


def _detects(where: str, scores: Any, boxes: Any, classes: Any, found: Any) -> None:
    """Two regions of ten by ten, one of them partly outside the image; two classes, the first is the background."""
    attributes = {
        "score_threshold": 0.05,
        "nms_threshold": 0.5,
        "num_classes": 2,
        "post_nms_count": 4,
        "max_detections_per_image": 2,
        "class_agnostic_box_regression": False,
        "max_delta_log_wh": 1.0,
        "deltas_weights": [1.0] * 4,
    }
    arrays = [_floats([0, 0, 9, 9], [20, 0, 29, 9]), np.zeros((2, 8), F), _floats(*scores), _floats([25, 25, 1])]
    operation, expected = "ExperimentalDetectronDetectionOutput", [_floats(*boxes), np.array(classes, I32), _floats(*found)]
    _shown(operation, 6, where, operation, statics(arrays), attributes, expected)


_detects("boxes that reach", [[0, 0.8], [0, 0.7]], [[0, 0, 9, 9], [20, 0, 25, 9]], [1, 1], [0.8, 0.7])
_detects("the background", [[0.9, 0], [0, 0.7]], [[0, 0, 9, 9], [20, 0, 29, 9]], [0, 1], [0.9, 0.7])
_shown(
    "ExperimentalDetectronROIFeatureExtractor",
    6,
    "the second output, for regions",
    "ExperimentalDetectronROIFeatureExtractor",
    [static(_floats([0, 0, 448, 448], [0, 0, 8, 8])), static(np.ones((1, 1, 4, 4), F)), static(np.full((1, 1, 2, 2), 2, F))],
    {"output_size": 1, "sampling_ratio": 1, "pyramid_scales": [4, 8], "aligned": False},
    expected=[_floats([[[2]]], [[[1]]]), _floats([0, 0, 8, 8], [0, 0, 448, 448])],
)
_shown(
    "ROIAlign",
    9,
    "a region without an area",
    "roi_align",
    [static(np.ones((1, 1, 4, 4), F)), static(_floats([1, 1, 1, 1])), static(np.array([0], I32))],
    {"pooled_h": 1, "pooled_w": 1, "sampling_ratio": 0, "spatial_scale": 1.0, "mode": "avg", "aligned_mode": "half_pixel"},
    expected=np.zeros((1, 1, 1, 1), F),
)
_shown_by("PSROIPooling-1-dynamic", "inputs of unknown")
_shown_by("DeformablePSROIPooling-1-dynamic", "inputs of unknown")
_ODD = {"fixed_size": _floats(3), "density": _floats(1), "offset": 0.5, "step": 4.0, "variance": _floats(0.1)}
for _version in (1, 8):
    _shown(
        "PriorBox",
        _version,
        "an odd `fixed_size`",
        "prior_box",
        [static(np.array([1, 1])), static(np.array([8, 8]))],
        {"attrs": _ODD},
        expected=np.array([[0.125, 0.125, 0.5, 0.5], [0.1] * 4], F),
    )
_shown_by("PriorBox-8-ratios-before-max", "`min_max_aspect")
_BOXES, _SCORES = _floats([[0, 0, 1, 1], [0, 0, 1, 0.5]]), _floats([[0.9, 0.8]])
for _version in (1, 3, 4, 5, 9):
    for _where, _overlap, _least in (("boxes whose overlap", 0.5, 0), ("boxes whose score", 0.9, 0.8)):
        _both = [np.array([[0, 0, 0], [0, 0, 1]])]
        if _version > 4:
            _both += [_floats([0, 0, 0.9], [0, 0, 0.8]), np.array([2])]
        _shown(
            "NonMaxSuppression",
            _version,
            _where,
            "non_max_suppression",
            [static(_BOXES), static(_SCORES), np.array(5), np.array(_overlap, F), np.array(_least, F)],
            expected=_both,
        )

_shown(
    "MatrixNms",
    8,
    "no class",
    "MatrixNms",
    [dynamic(np.ones((1, 1, 4), F)), static(np.ones((1, 1, 1), F))],
    {"sort_result_type": "none", "output_type": "i32", "background_class": 0, "decay_function": "linear"},
    expected=[np.zeros((0, 6), F), np.zeros((0, 1), I32), np.zeros(1, I32)],
)
_shown(
    "MatrixNms",
    8,
    "a NaN among the scores",
    "MatrixNms",
    [static(_floats([[0, 0, 1, 2], [2, 2, 3, 3]])), static(_floats([[NAN, 0.25], [0.75, NAN]]))],
    {
        "sort_result_type": "none", "output_type": "i32", "background_class": -1, "decay_function": "linear",
        "score_threshold": 0.5,
    },
    expected=[_floats([1, 0.75, 0, 0, 1, 2]), np.array([[0]], I32), np.array([1], I32)],
)  # fmt: skip

# -- indexing --------------------------------------------------------------------------------------------------------------

for _version in (1, 7):
    _shown(
        "Gather",
        _version,
        "several or run-time negative indices",
        "gather",
        [static(_floats(1, 2)), static(np.array([-1])), np.array(0)],
    )
for _version in (1, 4):
    _given = {"output_type": "f32"} if _version == 4 else {}
    for _where, _numbers in (("a step away", (0, 2, -1)), ("floats with", (0, 0.3, 0.1))):
        _shown("Range", _version, _where, "Range", [static(np.array(n, F)) for n in _numbers], _given)
_shown("Range", 4, "floats as", "Range", [static(np.array(n, F)) for n in (0.6, 4, 1.5)], {"output_type": "i32"})
_shown(
    "Roll",
    7,
    "one shift",
    "roll",
    [static(_floats([1, 2], [3, 4])), np.array(1), np.array([0, 1])],
    expected=_floats([4, 3], [2, 1]),
)
for _version in (1, 12):
    _shown_by(f"Pad-{_version}-value-of-known-dimensions", "a `pad_value` that is not")
_shown_by("SpaceToBatch-2-padded-twice", "padding of several")
_shown(
    "ScatterElementsUpdate",
    12,
    "the mean of integers",
    lambda ops, *x: ops.scatter_elements_update(*x, reduction="mean", use_init_val=True),
    [static(np.array([-1], I32)), static(np.array([0])), static(np.array([-2], I32)), np.array(0)],
)
_shown_by("ScatterUpdate-3-scalar-index", "a scalar index")
_shown(
    "ROIAlignRotated",
    15,
    "a NaN or an infinity as the first",
    "ROIAlignRotated",
    [static(_floats([[[NAN, 1]]])), static(_floats([9, 9, 1, 1, 0])), static(np.array([0], I32))],
    {"pooled_h": 1, "pooled_w": 1, "sampling_ratio": 1, "spatial_scale": 1.0, "clockwise_mode": False},
    expected=_floats([[[0]]]),
)
_shown_by("SegmentMax-16-float16-LOWEST", "an empty segment")
_shown_by("GatherTree-1-no-length", "a `max_seq_len`")
for _name, _where in (
    ("shrink-begin-mask", "a shrunk axis with"),
    ("ellipsis-before-new-and-shrink", "an ellipsis and a new or shrunk axis at"),
    ("shrink-new-axis", "a new axis and a shrunk"),
    ("shrink-beyond2", "an index of a shrunk"),
    ("shrink-of-known-size", "`begin`, `end` or `stride`"),
    ("ellipsis-and-new-axis-at-run-time", "an ellipsis and a new or shrunk axis, with"),
):
    _shown_by(f"StridedSlice-1-{_name}", _where)
_shown(
    "Transpose",
    1,
    "an empty order",
    "transpose",
    [dynamic(_floats([1, 2]), dims=[1, 2]), dynamic(np.zeros(0, I64), dims=[-1])],
)
_shown(
    "Broadcast",
    3,
    "`bidirectional` to",
    lambda ops, *x: ops.broadcast(*x, broadcast_spec="BIDIRECTIONAL"),
    [static(_floats([1], [2])), np.array([2, 0])],
    expected=np.zeros((2, 0), F),
)
_shown("Squeeze", 1, "axes whose dimension", "squeeze", [dynamic(_floats([1], [2]), dims=[-1, -1]), np.array([0, 1])])
for _version in (1, 3, 11):
    _shown(
        "TopK",
        _version,
        "a `k` of 0",
        "topk",
        [static(_floats(2, 1)), static(np.array(0))],
        {"axis": 0, "mode": "max", "sort": "value"},
        expected=[_floats(), np.zeros(0, I32)],
    )
    _shown_by(f"TopK-{_version}-min-value-ties", "equal elements")
_shown_by("TopK-11-u64", "u64 beyond")
_SLICES = np.array([[0, 1], [1, 0], [0, 0], [1, 1], [0, 1]], np.uint8)
_shown(
    "Unique",
    10,
    "the indices of i8 and u8",
    "unique",
    [static(_SLICES), np.array(0)],
    expected=[_SLICES[[2, 0, 1, 3]], np.array([2, 0, 1, 3]), np.array([1, 2, 0, 3, 1]), np.array([1, 2, 1, 1])],
)

# -- images ----------------------------------------------------------------------------------------------------------------

_X = np.sin(np.arange(36, dtype=F)).reshape(1, 1, 6, 6)


def _resized(
    version: int,
    where: str,
    x: np.ndarray,
    mode: str,
    axes: list[int],
    sizes: list[int],
    *,
    expected: Any = None,
    **given: Any,
) -> None:
    target, along, ones = np.array(sizes), np.array(axes), np.ones(len(axes), F)
    inputs = [static(x), target, *([ones] if version == 4 else []), along]
    attributes = {"mode": mode, "shape_calculation_mode": "sizes", **given}
    _shown("Interpolate", version, where, "Interpolate", inputs, attributes, expected)


_PIXELS = np.arange(1, 31, dtype=F).reshape(1, 1, 5, 6)


def _sampled(where: str, place: tuple[float, float], *, expected: Any = None, **attributes: str) -> None:
    inputs = statics([_PIXELS, np.array([[[place]]], F)])
    _shown("GridSample", 9, where, "grid_sample", inputs, {"attributes": {"align_corners": False, **attributes}}, expected)


_sampled("a finite position", (3e38, 0), mode="bilinear", padding_mode="zeros", expected=np.zeros((1, 1, 1, 1), F))
_sampled("a NaN or a positive", (NAN, 0), mode="nearest", padding_mode="border")
_sampled("`reflection` of positions", (5e9, 0), mode="bicubic", padding_mode="reflection")

for _version in (4, 11):
    _resized(_version, "`linear` with", _X, "linear", [2, 3], [3, 3], antialias=True)
    _resized(_version, "`cubic` of three", _X[0, :, :2, :2] * _floats([[1]], [[2]]), "cubic", [0, 1], [3, 3])
    _resized(_version, "`linear` of five", np.array([[[[[0, 3]]]]], np.uint8), "linear", [2, 3, 4], [1, 1, 4])
    _resized(_version, "`linear`, `linear_onnx`", np.array([[[[0, 3]]]], np.uint8), "linear_onnx", [2, 3], [1, 4])
for _version in (1, 8):
    _shown(
        "DeformableConvolution",
        _version,
        "a NaN or an",
        f"opset{_version}.DeformableConvolution",
        [static(_floats(1, NAN).reshape(1, 1, 1, 2)), static(np.zeros((1, 2, 1, 2), F)), np.ones((1, 1, 1, 1), F)],
        {
            "strides": [1, 1],
            "pads_begin": [0, 0],
            "pads_end": [0, 0],
            "dilations": [1, 1],
            "group": 1,
            "deformable_group": 1,
        },
        expected=np.full((1, 1, 1, 2), NAN, F),
    )
_shown(
    "ROIPooling",
    2,
    "infinity among",
    "ROIPooling",
    [static(_floats(-INF, 1, 1, 1).reshape(1, 1, 2, 2)), static(_floats([0, 0.75, 0.58, 1.33, 0.68]))],
    {"output_roi": [1, 3], "spatial_scale": 1.0, "method": "bilinear"},
    expected=_floats(-INF, 0, 0).reshape(1, 1, 1, 3),
)
for _version in (4, 11):
    _resized(_version, "a NaN or an", _floats([1, 2], [NAN, 3]), "linear", [1], [4], expected=np.full((2, 4), NAN, F))
_resized(11, "`bilinear_pillow`", np.array([[[[0, 5]]]], np.uint8), "bilinear_pillow", [2, 3], [1, 3])
_resized(
    11, "axes other than the last two", np.arange(12, dtype=F).reshape(1, 2, 3, 2) ** 2, "bilinear_pillow", [1, 3], [3, 5]
)
_resized(11, "two- and three-dimensional", np.array([[0, 255, 0], [9, 9, 99]], np.uint8), "bilinear_pillow", [0, 1], [5, 7])
_resized(11, "`bicubic_pillow`", _X, "bicubic_pillow", [2, 3], [9, 9], cube_coeff=-0.75)
_shown_by("RGBtoNV12-17-one-plane-float32", "all inputs")
_shown_by("BGRtoNV12-17-one-plane-float32", "all inputs")

# -- sums ------------------------------------------------------------------------------------------------------------------

_REDUCTIONS = (
    ("Sum", 1),
    ("Mean", 1),
    ("Max", 1),
    ("Min", 1),
    ("L1", 4),
    ("Prod", 1),
    ("L2", 4),
    ("LogicalAnd", 1),
    ("LogicalOr", 1),
)
for _name, _version in _REDUCTIONS:
    _make = "reduce_" + {"LogicalAnd": "logical_and", "LogicalOr": "logical_or"}.get(_name, _name.lower())
    _data = np.array([[True, False]]) if "Logical" in _name else _floats([1, 2])
    _shown(f"Reduce{_name}", _version, "no axes", _make, [static(_data), np.zeros(0, I64)], {"keep_dims": False})
    if "Logical" in _name:
        _shown(f"Reduce{_name}", _version, "axes that", _make, [static(_data), static(np.array([0]))], {"keep_dims": True})
    elif _name not in ("Prod", "L2"):
        _numbers = np.array([2**24 + 1, 2**24 + 3 if _name == "Min" else 1], I32)
        _shown(f"Reduce{_name}", _version, "integers of 32", _make, [static(_numbers), np.array([0])], {"keep_dims": False})
_shown("ReduceMin", 1, "no elements", "reduce_min", [static(_floats(INF)), np.array([0])], {"keep_dims": False})
_shown(
    "ReduceL2",
    4,
    "i8 and u8 with a sum of squares",
    "reduce_l2",
    [static(np.array([30, 40], np.uint8)), np.array([0])],
    {"keep_dims": False},
    expected=np.array(50, np.uint8),
)
_shown(
    "ReduceProd",
    1,
    "u8 with a product beyond 32,767",
    "reduce_prod",
    [static(np.array([[255, 255, 1], [200, 200, 200]], np.uint8)), np.array([1])],
    {"keep_dims": False},
    expected=np.array([255, 255], np.uint8),
)
_shown(
    "ReduceMean",
    1,
    "i8 and u8 whose sum",
    "reduce_mean",
    [static(np.array([200, 100], np.uint8)), np.array([0])],
    {"keep_dims": False},
    expected=np.array(150, np.uint8),
)
_shown_by("MatMul-1-nothing-summed", "an empty dimension to sum over, of")
_shown_by("MatMul-1-weights-u8-bf16", "constants of 8 bits and less")


_shown(
    "Einsum",
    7,
    "an ellipsis in operands",
    lambda ops, x, y: ops.einsum([x, y], "...i,...j->...ij"),
    [dynamic(_floats([[1, 2], [3, 4]])), dynamic(_floats([[1, 2, 3], [4, 5, 6]]))],
    expected=_floats([[[1, 2, 3], [2, 4, 6]], [[12, 15, 18], [16, 20, 24]]]),
)


def _scaled_product(where: str, type_: str, zeros: np.ndarray | None, scales: np.ndarray) -> None:
    """Register a product with a constant of 16 rows and 8 columns, whose rows or elements have scales or zero points."""

    def make(ops: Any, x: Any) -> Any:
        import openvino as ov

        numbers = np.arange(128, dtype=np.uint8).reshape(16, 8) % 15
        if type_ == "u4":
            pairs = (numbers.reshape(-1)[::2] | numbers.reshape(-1)[1::2] << 4).astype(np.uint8)
            constant = ov.op.Constant(ov.Tensor(pairs, [16, 8], ov.Type.u4), shared_memory=False)
        else:
            constant = ops.constant(numbers)
        weights = ops.convert(constant, "f32")
        if zeros is not None:
            weights = ops.subtract(weights, ops.constant(zeros))
        return ops.matmul(x, ops.multiply(weights, ops.constant(scales)), False, False)

    _shown("MatMul", 1, where, make, [static(np.eye(3, 16, dtype=F))])


_numbers = [static(np.array([[2**24 + 1, 1]], I32)), static(np.array([[1], [0]], I32))]
_shown("MatMul", 1, "integers of 32 bits", lambda ops, *x: ops.matmul(*x, False, False), _numbers)
_sum = np.array([[2**24 + 1]], I32)
_draw = np.random.default_rng(0)
_factors = [_draw.integers(-20, 20, shape).astype(np.int8) for shape in ((2, 3), (3, 4), (4, 5))]
_exact = np.einsum("ab,bc,cd->ad", *(factor.astype(I64) for factor in _factors))
_shown(
    "Einsum",
    7,
    "i8 and u8 of three or more",
    lambda ops, *x: ops.einsum(list(x), "ab,bc,cd->ad"),
    statics(_factors),
    expected=_exact.clip(-128, 127).astype(np.int8),
)
_shown("Einsum", 7, "integers of 32 bits", lambda ops, *x: ops.einsum(list(x), "ab,bc->ac"), _numbers, None, _sum)


_ROWS = np.arange(16, dtype=F).reshape(16, 1)
for _zeros, _scales in ((None, 1 + _ROWS), (_ROWS, np.ones((1, 8), F))):
    _scaled_product("constants of 8 bits with", "u8", _zeros, _scales)
for _zeros, _scales in (
    (None, 1 + _ROWS),
    (_ROWS, np.ones((1, 8), F)),
    (None, 1 + np.arange(128, dtype=F).reshape(16, 8)),
):
    _scaled_product("constants of 4 bits with", "u4", _zeros, _scales)


def _normalized_state(ops: Any, x: Any, state: Any) -> Any:
    weights = [ops.constant(array) for array in (np.zeros((1, 2, 1), F), np.zeros((1, 2, 2), F), _floats([1, 2]))]
    from openvino import opset5

    sequence = opset5.rnn_sequence(x, state, ops.constant(np.array([1])), *weights, 2, "forward", ["relu"])
    return ops.grn(sequence.output(1), 1.0)


_STATE = (_floats(1, 2) / np.sqrt(_floats(2, 5))).reshape(1, 1, 2)
_shown(
    "GRN",
    1,
    "the output of a",
    _normalized_state,
    [static(np.ones((1, 2, 1), F)), static(np.zeros((1, 1, 2), F))],
    {},
    _STATE,
)
_shown(
    "Reshape",
    1,
    "data without",
    lambda ops, x, pattern: ops.reshape(x, pattern, True),
    [static(np.ones((3, 0), F)), static(np.array([0]))],
)
_shown(
    "Broadcast",
    3,
    "`mode=bidirectional`",
    "Broadcast",
    [static(_floats([1, 2])), static(np.zeros(0, I32))],
    {"mode": "bidirectional"},
)
_shown(
    "Concat",
    1,
    "data without elements",
    lambda ops, *x: ops.concat(list(x), axis=1),
    [static(np.ones((2, 2, 0), F)), dynamic(np.ones((2, 4, 0), F))],
)
_shown(
    "NormalizeL2",
    1,
    "no axes",
    lambda ops, x, axes: ops.normalize_l2(x, axes, 1e-6, "add"),
    [dynamic(_floats([0, 2]), dims=[1, 2]), dynamic(np.zeros(0, I64), dims=[-1])],
    expected=_floats([0, 1]),
)


def _normalizes(where: str, x: list[float], axes: list[int], expected: list[float], **given: Any) -> None:
    attributes = {"alpha": 1.0, "beta": 1.0, "bias": 1.0, "size": 1} | given
    data, result = (_floats(*numbers).reshape(1, -1, 1, 1) for numbers in (x, expected))
    _shown("LRN", 1, where, "LRN", [static(data), np.array(axes)], attributes, result)


_normalizes("an even `size`", [1, 2], [1], [1 / 3.5, 2 / 3.5], size=2)
_normalizes("a `bias`", [1, 2], [1], [1 / 2.5, 2 / 5.5], bias=1.5)
_normalizes("axes that include all", [1, 2], [1, 2, 3], [1 / (1 + 5 / 27), 2 / (1 + 5 / 27)], size=3)
_normalizes("axes that are not", [1, 2], [-3], [1 / 2, 2 / 5])
for _kind in ("RDFT", "IRDFT"):
    _shown_by(f"{_kind}-9-run-time-axes", "axes that")
    _shown_by(f"{_kind}-9-size-kept", "a `signal_size` of -1")
_shown_by("RDFT-9-longer", "a `signal_size` above")
_shown_by("IRDFT-9-both-longer", "several `signal_size`s")

# -- sequences -------------------------------------------------------------------------------------------------------------


def _recurs(operation: str, gates: int, states: int, expected: Any) -> None:
    """A sequence with length one of two steps: the last hidden state is that after the first step."""
    x, state, lengths = _floats([[1], [1]]), np.zeros((1, 1, 1), F), np.array([1], I32)
    weights, biases = np.ones((1, gates, 1), F), np.zeros((1, gates), F)
    inputs = [dynamic(x, dims=[1, -1, 1]), *[static(state)] * states, static(lengths), weights, weights, biases]

    def make(ops: Any, *nodes: Any) -> Any:
        return getattr(ops, operation.replace("Sequence", "_sequence").lower())(*nodes, 1, "forward")

    _shown(operation, 5, "sequences shorter", make, inputs, expected=expected)


_one, _half = np.tanh(1.0), 1 / (1 + np.exp(-1.0))
_gru = (1 - _half) * _one
_cell = _half * _one
_lstm = _half * np.tanh(_cell)
_recurs("RNNSequence", 1, 1, [_floats([[[_one], [0]]]), _floats([[_one]])])
_recurs("GRUSequence", 3, 1, [_floats([[[_gru], [0]]]), _floats([[_gru]])])
_recurs("LSTMSequence", 4, 2, [_floats([[[_lstm], [0]]]), _floats([[_lstm]]), _floats([[_cell]])])
_shown_by("LSTMCell-1-peepholes-input-forget", "peepholes")
_row, _one_by_one = np.zeros((1, 1), F), np.ones((1, 1), F)
_shown(
    "RNNCell",
    1,
    "a constant `x`",
    "RNNCell",
    [_row, static(_row), _one_by_one, _one_by_one, _floats(1)],
    {"hidden_size": 1, "activations": ["tanh"], "clip": 9.0},
    expected=_floats([np.tanh(1.0)]),
)
_COUNTED = next(c for c in cases.CASES if c.id == "TensorIterator-1-slices-negative-start").inputs[0][0]
_shown_by(
    "TensorIterator-1-slices-negative-start",
    "a sliced input",
    expected=[[100 * _COUNTED[:, 3:4] + 10 * _COUNTED[:, 4:5] + _COUNTED[:, 5:6]]],
)


def _loss(where: str, logits: np.ndarray, length: int, expected: float, **given: Any) -> None:
    labels = np.array([[1, 0]], I32)
    _shown(
        "CTCLoss",
        4,
        where,
        "ctc_loss",
        [static(logits), static(np.array([2], I32)), static(labels), static(np.array([length], I32)), np.array(2, I32)],
        {"ctc_merge_repeated": False, **given},
        expected=_floats(expected),
    )


# Without labels the loss is that of two blanks.
_loss("labels of length 0, with `", _floats([[0, 0, 0], [0, 0, 0]]), 0, np.log(9), preprocess_collapse_repeated=True)
_loss("labels of length 0, without", _floats([[0, 0, 0], [0, 0, 0]]), 0, np.log(9))
_loss("logits above 88", _floats([[0, 100, 0], [0, 0, 100]]), 1, 0)

# -- random numbers, strings, variables ------------------------------------------------------------------------------------


def _draws(where: str, shape: list[int], low: Any, high: Any, kind: str) -> None:
    attributes = {"output_type": kind, "global_seed": 150, "op_seed": 10, "alignment": "TENSORFLOW"}
    inputs = [np.array(shape, I64), low, high]
    _shown("RandomUniform", 8, where, "RandomUniform", inputs, attributes)


_draws("f16 and f64", [3], np.float64(0), np.float64(1), "f64")
_draws("i32 with a range", [3], I32(-(2**31)), I32(2**31 - 1), "i32")
_draws("i64 with", [3], I64(0), I64(100), "i64")
_draws("a scalar", [], F(0), F(1), "f32")
_shown_by("StringTensorUnpack-15-no-strings", "no strings")
_shown_by("StringTensorPack-15-constants", "constants only")


def _counted(ops: Any, x: Any) -> Any:
    total = ops.add(ops.read_value(ops.constant(np.array([0])), "total", I64, [1]), x)
    return [total, ops.assign(total, "total")]


_shown("ReadValue", 6, "a variable of i64", _counted, [static(np.array([3]))], expected=np.array([3]))


def _cached(ops: Any, token: Any, rows: Any) -> Any:
    """Attention to three cached tokens and a new one, which are equal except for their sign."""
    from openvino import opset13

    begin = ops.constant(np.ones((1, 1, 3, 2), F))
    wholes = []
    for name in ("keys", "values"):
        past = ops.read_value(begin, name, np.float32, [-1, 1, -1, 2])
        wholes.append(ops.concat([opset13.gather(past, rows, ops.constant(0)), token], 2))
    kept = [ops.assign(whole, name) for name, whole in zip(("keys", "values"), wholes, strict=True)]
    return [opset13.scaled_dot_product_attention(token, *wholes, causal=True), *kept]


_shown(
    "ReadValue",
    6,
    "a cache whose rows",
    _cached,
    [
        dynamic(-np.ones((1, 1, 1, 2), F), dims=[-1, 1, -1, 2]),
        dynamic(np.array([0], I32)),
    ],
    expected=np.ones((1, 1, 1, 2), F),
)


def _resized(version: int) -> Callable[..., Any]:
    """Integers that are resized, and floats with a Relu."""

    def make(ops: NodeFactory, image: Any) -> Any:
        from openvino import opset1

        sizes, scales, axes = (ops.constant(x) for x in (np.array([1], I64), np.array([0.5], F), np.array([3], I64)))
        given = [image, sizes, scales, axes] if version == 4 else [image, sizes, axes]
        attributes = {"mode": "linear_onnx", "shape_calculation_mode": "sizes"}
        small = NodeFactory(f"opset{version}").create("Interpolate", [x.output(0) for x in given], attributes)
        return opset1.relu(opset1.convert(small, F))

    return make


for _version in (4, 11):
    _image = dynamic(np.array([[[[0, 255]]]], np.uint8), dims=[-1, 1, 1, 2])
    _shown("Interpolate", _version, "i8 and u8 with dynamic", _resized(_version), [_image])


def _blind(ops: NodeFactory, token: Any, mask: Any, rows: Any) -> Any:
    """Attention with a cache that is fused; the mask hides all tokens."""
    from openvino import opset13

    begin = ops.constant(np.ones((1, 1, 3, 2), F))
    wholes = []
    for name in ("keys", "values"):
        past = ops.read_value(begin, name, np.float32, [-1, 1, -1, 2])
        wholes.append(ops.concat([opset13.gather(past, rows, ops.constant(0)), token], 2))
    kept = [ops.assign(whole, name) for name, whole in zip(("keys", "values"), wholes, strict=True)]
    return [opset13.scaled_dot_product_attention(token, *wholes, mask), *kept]


_shown(
    "ScaledDotProductAttention",
    13,
    "a token whose mask",
    _blind,
    [
        dynamic(np.ones((1, 1, 1, 2), F), dims=[-1, 1, -1, 2]),
        dynamic(np.full((1, 1, 1, 4), -INF, F), dims=[-1, 1, -1, -1]),
        dynamic(np.array([0], I32)),
    ],
    expected=np.full((1, 1, 1, 2), NAN, F),
)


def _as_many_tokens_as_heads(ops: NodeFactory, x: Any) -> Any:
    """Attention as in vision transformers: one projection, split into queries, keys and values."""
    from openvino import opset13

    parts = opset13.split(opset13.transpose(x, np.array([2, 0, 3, 1, 4])), np.array(0), 3)
    inputs = [opset13.squeeze(parts.output(k), np.array([0])) for k in range(3)]
    return opset13.transpose(opset13.scaled_dot_product_attention(*inputs), np.array([0, 2, 1, 3]))


def _attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Compute attention without a mask."""
    scores = np.exp(query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]))
    return scores / scores.sum(-1, keepdims=True) @ value


_projection = np.random.default_rng(0).standard_normal((1, 4, 3, 4, 8)).astype(F)
_shown(
    "ScaledDotProductAttention",
    13,
    "equal numbers of tokens and heads",
    _as_many_tokens_as_heads,
    [static(_projection)],
    expected=_attention(*_projection.transpose(2, 0, 3, 1, 4)).transpose(0, 2, 1, 3).astype(F),
)


def _halving(ops: Any, x: Any, hidden: Any, cell: Any) -> Any:
    """An LSTM that halves its cell state in each step, and concatenates the cell states."""
    step, h, c = (ops.parameter(shape, F) for shape in ([1, 1, 1], [1, 1], [1, 1]))
    zeros = [ops.constant(np.zeros(shape, F)) for shape in ((4, 1), (4, 1), (4,))]
    node = ops.lstm_cell(ops.squeeze(step, ops.constant([1])), h, c, *zeros, 1)
    results = [node.output(0), node.output(1), ops.unsqueeze(node.output(1), ops.constant([1])).output(0)]
    loop = ops.tensor_iterator()
    loop.set_body(control_flow.body(ops, [step, h, c], *results))
    loop.set_sliced_input(step, x.output(0), 0, 1, 1, -1, 1)
    for parameter, start, value in zip((h, c), (hidden, cell), results, strict=False):
        loop.set_merged_input(parameter, start.output(0), value)
    return loop.get_concatenated_slices(results[2], 0, 1, 1, -1, 1)


EXAMPLES.append(
    layer_case(
        "TensorIterator",
        "opset1",
        _halving,
        "a body of one LSTMCell",
        [static(np.zeros((1, 2, 1), F)), static(np.zeros((1, 1), F)), static(np.ones((1, 1), F))],
        opset="opset8",
        expected=[[_floats([[0.5], [0.25]])]],
    )
)

# -- attributes that a file omits -------------------------------------------------------------------------------------------


def _omitted(
    operation: str, version: int, attribute: str, make: Any, inputs: Iterable[Any], given: Any, value: str, expected: Any
) -> None:
    example = layer_case(operation, f"opset{version}", make, f"no attribute `{attribute}`", inputs, given)
    edit = replaced(example, f' {attribute}="{value}"', "")
    EXAMPLES.append(replace(edit, oracle="expected", reason=example.name, expected=[[expected]]))


_omitted("Softmax", 1, "axis", "softmax", [static(_floats([0, 0]))], {"axis": 1}, "1", _floats([0.5, 0.5]))
_omitted(
    "RegionYolo",
    1,
    "do_softmax",
    lambda ops, x: ops.region_yolo(x, 4, 1, 1, True, [0], 1, 3, []),
    [static(np.zeros((1, 6, 1, 1), F))],
    None,
    "true",
    _floats([0.5, 0.5, 0, 0, 0.5, 1]),
)
_omitted(
    "ExperimentalDetectronPriorGridGenerator",
    6,
    "flatten",
    "ExperimentalDetectronPriorGridGenerator",
    [static(np.zeros((1, 4), F)), static(np.zeros((1, 1, 1, 1), F)), static(np.zeros((1, 1, 2, 2), F))],
    {"flatten": True, "h": 0, "w": 0, "stride_x": 0.0, "stride_y": 0.0},
    "true",
    np.ones((1, 4), F),
)
_omitted(
    "MVN",
    2,
    "normalize_variance",
    "MVN",
    [static(_floats([[0, 4]]))],
    {"across_channels": False, "normalize_variance": True, "eps": 1e-9},
    "true",
    _floats([[-1, 1]]),
)
_omitted(
    "CTCLoss",
    4,
    "ctc_merge_repeated",
    "ctc_loss",
    [static(np.zeros((1, 2, 2), F)), *(static(np.array(numbers, I32)) for numbers in ([2], [[0, 0]], [1]))],
    {"ctc_merge_repeated": True},
    "true",
    _floats(-np.log(0.75)),
)
_omitted(
    "Broadcast",
    1,
    "mode",
    "broadcast",
    [static(_floats(1, 2)), np.array([2, 2]), np.array([0])],
    {"mode": "EXPLICIT"},
    "none",
    _floats([1, 2], [1, 2]),
)

# -- the tests -------------------------------------------------------------------------------------------------------------


def _departure(example: Case) -> Departure:
    """Return the departure that an example shows."""
    stated = (
        (*find_rule(example.operation, example.version).departs, *EVERYWHERE)
        if example.operation != "Constant"
        else EVERYWHERE
    )
    (found,) = (departure for departure in stated if departure.where.startswith(example.name))
    return found


def _answer(oracle: Oracle, path: Path, example: Case, name: str) -> Outputs | OracleError:
    runs = [list(arrays) for arrays in example.inputs]
    return oracle.run(path, runs, names=(name,))[name]


def _part(one: Outputs | OracleError, other: Outputs | OracleError) -> bool:
    """Return whether two results differ."""
    if isinstance(one, OracleError) or isinstance(other, OracleError):
        return isinstance(one, OracleError) != isinstance(other, OracleError)
    try:
        assert_all_close(one, other, 1e-4, 1e-45, "they")
    except AssertionError:
        return True
    return False


@pytest.mark.conformance
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_departure(example: Case, oracle: Oracle, tmp_path: Path) -> None:
    departure, path = _departure(example), example.save(tmp_path)
    cpu = _answer(oracle, path, example, "cpu")
    other = [list(outputs) for outputs in example.expected or ()] or _answer(oracle, path, example, "evaluate")
    if HAS_AVX512 or not departure.avx512:
        assert _part(cpu, other), f"they no longer part: {departure}"
    failing = departure.cpu.startswith(("rejects", "fails", "crashes"))
    assert isinstance(cpu, OracleError) == failing, f"the CPU plugin: {cpu}; stated: {departure.cpu}"
    if departure.follows == "runtime":
        return
    followed = cpu if departure.follows == "cpu" else other
    _, report = convert(path, tmp_path / "model.onnx")
    for form in forms(report.custom_operators, report.without_body):
        try:
            got = run_model(tmp_path / "model.onnx", [list(arrays) for arrays in example.inputs], form)
        except Exception:
            assert isinstance(followed, OracleError)  # so does the converted model
            continue
        assert not isinstance(followed, OracleError), followed
        assert_all_close(got, followed, example.rtol, example.atol, f"kernels={form!r} and {departure.follows}")


def test_every_departure_has_an_example() -> None:
    shown = {id(_departure(example)) for example in EXAMPLES}
    stated = [*EVERYWHERE, *(departure for versions in rules().values() for rule in versions for departure in rule.departs)]
    missing = {d.where for d in stated if id(d) not in shown and not any(d.where.startswith(name) for name in UNSHOWN)}
    assert missing == set()
    assert [name for name in UNSHOWN if not any(d.where.startswith(name) for d in stated)] == []
