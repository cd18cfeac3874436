"""Activations and elementwise functions of one or several inputs."""

from __future__ import annotations

from tests.conformance.inference_engine.case import Case, one, random

_D = (1, 3, 4, 5)
_WIDE = {"in0": (-4.0, 4.0)}


def _unary(kind, low=-2.0, high=2.0, data=None, **options) -> list[Case]:
    feeds = {"in0": (low, high)}
    return [
        one(kind, "images", _D, _D, data, feeds=feeds, **options),
        one(kind, "rows", (3, 7), (3, 7), data, feeds=feeds, **options),
        one(kind, "five_dimensions", (1, 2, 3, 4, 2), (1, 2, 3, 4, 2), data, feeds=feeds, **options),
        one(kind, "version7", (2, 9), (2, 9), data, feeds=feeds, version=7, **options),
    ]


_MATH = {
    "Abs": (-2, 2), "Acos": (-1, 1), "Acosh": (1, 3), "Asin": (-1, 1), "Asinh": (-2, 2), "Atan": (-2, 2),
    "Atanh": (-0.9, 0.9),
    "Ceil": (-3, 3), "Cos": (-3, 3), "Cosh": (-2, 2), "Erf": (-2, 2), "Exp": (-2, 2), "Floor": (-3, 3), "Log": (0.1, 3),
    "Neg": (-2, 2), "Reciprocal": (0.5, 2), "Sign": (-2, 2), "Sin": (-3, 3), "Sinh": (-2, 2), "Softplus": (-3, 3),
    "Softsign": (-3, 3), "Tan": (-1, 1), "Sigmoid": (-4, 4), "Logistic": (-4, 4), "TanH": (-2, 2), "HardSigmoid": (-4, 4),
    "Selu": (-2, 2), "ReLU": (-2, 2), "ReLU6": (-2, 9), "ELU": (-2, 2),
}  # fmt: skip


def _eltwise(name, dims, out, operation, data=None, **options) -> Case:
    return one("Eltwise", name, dims, out, {"operation": operation, **(data or {})}, **options)


_WHOLE = {"in0": [1, 2, 3, 4, 5, 6], "in1": [2, 3, 2, 5, 2, 5]}
_HALVES = {"in0": [1.5, 2.5, 3.4, 4.6, -5.5, 0.5], "in1": [1.5, 2.2, 2.5, 0.6, 3.5, 9.0]}
_INTEGRAL = {"in0": [0, 1, 2, 3, 0, 2], "in1": [0, 2, 2, 1, 3, 0]}
_ZEROS = [-0.0, 0.0, 1, -1, 0.5, -0.25, -0.0, 4]


def _divided(net) -> None:
    x = net.input(1, 8)
    negative = net.layer("Power", [x], [(1, 8)], {"power": 1, "scale": -1, "shift": 0})
    ones = net.layer("Power", [x], [(1, 8)], {"power": 0, "scale": 1, "shift": 0})
    net.layer("Eltwise", [ones, negative], [(1, 8)], {"operation": "div"}, name="out")


CASES = [
    *[case for kind, (low, high) in _MATH.items() for case in _unary(kind, low, high)],
    one("ReLU", "slope", _D, _D, {"negative_slope": 0.1}),
    one("ReLU", "element_of_another_type", _D, _D, {"negative_slope": 0.25}, version=2, data_element="elu_data"),
    one("ReLU", "version2", _D, _D, {"negative_slope": 0.25}, version=2, data_element="relu_data"),
    one("ReLU6", "n", _D, _D, {"n": 1.5}, feeds=_WIDE),
    one("ELU", "alpha", _D, _D, {"alpha": 0.3}),
    one("HardSigmoid", "attributes", _D, _D, {"alpha": 0.4, "beta": 0.1}),
    one("Selu", "attributes", _D, _D, {"alpha": 1.2, "gamma": 0.5}),
    one("HardSigmoid", "no_offset", _D, _D, {"alpha": 0.4, "beta": 0}, feeds=_WIDE),
    one("HardSigmoid", "no_slope", _D, _D, {"alpha": 0, "beta": 0.2}, feeds=_WIDE),
    one("Selu", "zeros", _D, _D, {"alpha": 0, "gamma": 0}, feeds=_WIDE),
    one("Clamp", "plain", _D, _D, {"min": -0.3, "max": 0.4}),
    one("Clamp", "rows", (3, 7), (3, 7), {"min": 0, "max": 6}, feeds={"in0": (-9, 9)}),
    one("Clamp", "exponent", _D, _D, {"min": "-3.402823e+38", "max": "1e-1"}),
    one("Clamp", "five_dimensions", (1, 2, 3, 2, 2), (1, 2, 3, 2, 2), {"min": -0.1, "max": 0.1}),
    one("PReLU", "channels", _D, _D, {"channel_shared": 0}, blobs={"weights": random(1, 3)}),
    one("PReLU", "shared", _D, _D, {"channel_shared": 1}, blobs={"weights": random(1, 1)}),
    one("PReLU", "shared_but_as_many_as_channels", _D, _D, {"channel_shared": 1}, blobs={"weights": random(1, 3)}),
    one("PReLU", "shared_by_number", _D, _D, {"channel_shared": 2}, blobs={"weights": random(1, 1)}),
    one("PReLU", "rows", (3, 7), (3, 7), {}, blobs={"weights": random(1, 7)}),
    one("PReLU", "half", _D, _D, {}, blobs={"weights": random(1, 3)}, precision="FP16"),
    one("Activation", "relu", _D, _D, {"type": "relu"}),
    one("Activation", "relu_slope", _D, _D, {"type": "ReLU", "negative_slope": 0.2}),
    one("Activation", "sigmoid", _D, _D, {"type": "sigmoid"}),
    one("Activation", "tanh", _D, _D, {"type": "tanh"}),
    one("Activation", "elu", _D, _D, {"type": "elu", "alpha": 0.7}),
    one("Activation", "clamp", _D, _D, {"type": "clamp", "min": -0.2, "max": 0.3}),
    one("Activation", "relu6", _D, _D, {"type": "relu6", "n": 0.5}),
    one("Activation", "prelu", _D, _D, {"type": "prelu"}, blobs={"weights": random(1, 3)}),
    one("Activation", "exp", _D, _D, {"type": "exp"}),
    one("Activation", "logistic", _D, _D, {"type": "logistic"}),
    one("Activation", "not", (1, 6), (1, 6), {"type": "not"}, feeds={"in0": [0, 1, 2, 0, -1, 0.5]}),
    one("Not", "images", (1, 6), (1, 6), {}, feeds={"in0": [0, 1, 2, 0, -1, 0.5]}),
    one("Not", "rows", (2, 3), (2, 3), {}, feeds={"in0": [0, 1, 2, 0, -1, 0.5]}),
    one("Not", "three", (1, 2, 3), (1, 2, 3), {}, feeds={"in0": [0, 1, 2, 0, -1, 0.5]}),
    one("Not", "version7", (2, 3), (2, 3), {}, feeds={"in0": [0, 1, 2, 0, -1, 0.5]}, version=7),
    one("SoftMax", "channels", _D, _D, {"axis": 1}),
    one("SoftMax", "rows", (3, 7), (3, 7), {}),
    one("SoftMax", "last", (1, 4, 7), (1, 4, 7), {"axis": 2}),
    one("SoftMax", "width", _D, _D, {"axis": 3}),
    one("SoftMax", "version2", (2, 9), (2, 9), {"axis": 1}, version=2, data_element="softmax_data"),
    one("LogSoftmax", "channels", _D, _D, {"axis": 1}),
    one("LogSoftmax", "rows", (3, 7), (3, 7), {}),
    one("LogSoftmax", "default", _D, _D, {}),
    one("LogSoftmax", "last", (1, 4, 7), (1, 4, 7), {"axis": 2}),
    one("LogSoftmax", "width", _D, _D, {"axis": 3}),
    one("GRN", "plain", _D, _D, {"bias": 1.0}),
    one("GRN", "small_bias", _D, _D, {"bias": 1e-3}),
    one("GRN", "batch", (2, 4, 3, 3), (2, 4, 3, 3), {"bias": 0.5}),
    one("GRN", "channel", (1, 1, 3, 3), (1, 1, 3, 3), {"bias": 0.5}),
    *[
        _eltwise(operation, [_D, _D], _D, operation, feeds={"in0": (0.5, 2.0), "in1": (0.5, 2.0)})
        for operation in ("sum", "mul", "prod", "max", "sub", "div", "min", "squared_diff", "pow")
    ],
    *[
        _eltwise(operation, [(1, 6), (1, 6)], (1, 6), operation, feeds=_INTEGRAL)
        for operation in (
            "equal",
            "not_equal",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
            "logical_and",
            "logical_or",
            "logical_xor",
        )
    ],
    _eltwise("integer_sum", [((2, 3), "I32"), ((2, 3), "I32")], (2, 3), "sum", version=7, precision="I32"),
    _eltwise(
        "integer_floor_mod",
        [((2, 3), "I32"), ((2, 3), "I32")],
        (2, 3),
        "floor_mod",
        version=7,
        precision="I32",
        feeds={"in0": [-5, 5, 7, 0, 9, -3], "in1": [2, 3, 4, 5, 5, 2]},
    ),
    _eltwise("integer_mul", [((2, 3), "I32"), ((2, 3), "I32")], (2, 3), "mul", version=7, precision="I32"),
    _eltwise("three_inputs", [_D, _D, _D], _D, "sum"),
    _eltwise("three_products", [_D, _D, _D], _D, "mul"),
    _eltwise("three_maxima", [_D, _D, _D], _D, "max"),
    _eltwise("coefficients", [_D, _D], _D, "sum", {"coeff": "1,-1"}),
    _eltwise("coefficients_of_fractions", [_D, _D], _D, "sum", {"coeff": "0.5,2.0"}),
    _eltwise("broadcast_channels", [_D, (1, 3, 1, 1)], _D, "mul"),
    _eltwise("broadcast_both", [(1, 3, 1, 5), (1, 1, 4, 1)], _D, "sum"),
    _eltwise("broadcast_rank", [_D, (4, 5)], _D, "sum"),
    _eltwise("broadcast_first", [(5,), _D], _D, "sub"),
    _eltwise("version2", [_D, _D], _D, "max", version=2, data_element="elementwise_data"),
    _eltwise("element_of_its_own", [_D, _D], _D, "max", version=2, data_element="elementwise"),
    _eltwise("element_of_another_type", [_D, _D], _D, "max", version=2, data_element="eltwise_data"),
    _eltwise("integers_in_floats", [((2, 3), "I32"), ((2, 3), "I32")], (2, 3), "div", version=7, feeds=_WHOLE),
    _eltwise("integers_in_floats_of_version_6", [((2, 3), "I32"), ((2, 3), "I32")], (2, 3), "div", feeds=_WHOLE),
    _eltwise("floats_in_integers", [(2, 3), (2, 3)], (2, 3), "mul", version=7, precisions=["I32"], feeds=_HALVES),
    _eltwise("of_a_constant", [_D, random(3, 1, 3, 1, 1)], _D, "sub", version=7),
    one("Power", "plain", _D, _D, {"power": 2, "scale": 0.5, "shift": 1}),
    one("Power", "line", _D, _D, {"power": 1, "scale": 2, "shift": -1}),
    one("Power", "root", _D, _D, {"power": 0.5, "scale": 1, "shift": 2}),
    one("Power", "reciprocal", _D, _D, {"power": -1, "scale": 1, "shift": 3}),
    one("Power", "cube_of_negatives", _D, _D, {"power": 3, "scale": 1, "shift": 0}),
    one("Power", "of_0", _D, _D, {"power": 0, "scale": 1, "shift": 0}),
    *[
        one("Power", name, (1, 8), (1, 8), {"power": power, "scale": scale, "shift": shift}, feeds={"in0": _ZEROS})
        for name, power, scale, shift in (
            ("reciprocal_of_zeros", -1, 1, 0),
            ("reciprocal_of_scaled_zeros", -1, -2, 0),
            ("reciprocal_of_negated_zeros", -1, -1, 0),
            ("reciprocal_of_nothing_but_zeros", -1, 0, 0),
            ("reciprocal_with_a_shift_of_minus_zero", -1, 1, "-0.0"),
            ("cubes_of_zeros", -3, 1, 0),
            ("squares_of_zeros", -2, 1, 0),
        )
    ],
    Case("Power", "negated_zeros_divide", _divided, feeds={"in0": _ZEROS}),
    one("Power", "difference", _D, _D, {"power": 1, "scale": -1, "shift": 0.75}),
    one("Power", "rows", (3, 7), (3, 7), {"power": 2, "scale": 1, "shift": 0.5}),
    one("Power", "version2", _D, _D, {"power": 2, "scale": 1, "shift": 0.5}, version=2, data_element="power_data"),
    one("ScaleShift", "plain", _D, _D, {}, blobs={"weights": random(1, 3), "biases": random(2, 3)}),
    one("ScaleShift", "other_blob", _D, _D, {}, blobs={"weights": random(1, 3), "scales": random(2, 3)}),
    one("ScaleShift", "one_weight", _D, _D, {"broadcast": 1}, blobs={"weights": random(1, 1), "biases": random(2, 3)}),
    one("ScaleShift", "first_weight", _D, _D, {"broadcast": 2}, blobs={"weights": random(1, 2)}),
    one("ScaleShift", "no_biases", _D, _D, {}, blobs={"weights": random(1, 3)}),
    one("ScaleShift", "rows", (3, 7), (3, 7), {}, blobs={"weights": random(1, 7), "biases": random(2, 7)}),
    one("ScaleShift", "half", _D, _D, {}, blobs={"weights": random(1, 3), "biases": random(2, 3)}, precision="FP16"),
    one("ScaleShift", "three_dimensions", (1, 3, 5), (1, 3, 5), {}, blobs={"weights": random(1, 3), "biases": random(2, 3)}),
    one(
        "ScaleShift",
        "five_dimensions",
        (1, 3, 2, 2, 2),
        (1, 3, 2, 2, 2),
        {},
        blobs={"weights": random(1, 3), "biases": random(2, 3)},
    ),
    one(
        "ScaleShift",
        "version2",
        _D,
        _D,
        {},
        blobs={"weights": random(1, 3), "biases": random(2, 3)},
        version=2,
        legacy_blobs=True,
    ),
    one("Select", "plain", [((2, 3), "I32"), (2, 3), (2, 3)], (2, 3), {}, feeds={"in0": [0, 1, 0, 1, 1, 0]}, version=7),
    one(
        "Select",
        "of_integers",
        [((2, 3), "I32"), ((2, 3), "I32"), ((2, 3), "I32")],
        (2, 3),
        {},
        feeds={"in0": [0, 1, 0, 1, 1, 0]},
        version=7,
        precision="I32",
    ),
    one("Select", "images", [(_D, "I32"), _D, _D], _D, {}, feeds={"in0": [0, 1, 1, 0, 1] * 12}, version=7),
    one("Select", "broadcast_condition", [((1, 3), "I32"), (2, 3), (2, 3)], (2, 3), {}, feeds={"in0": [0, 1, 0]}, version=7),
]
