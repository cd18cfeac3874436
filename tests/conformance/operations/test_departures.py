"""Where OpenVINO's CPU plugin parts from its specification: that it still does, and that the converted model follows.

Each departure that the rules state (`converters.openvino.rule.Departure`) has an example here, the smallest model that shows
it. A release of OpenVINO that mends one fails its test: then the rule's ``departs`` is to be changed, and where the rule
followed the CPU plugin, the rule itself.

All of them: ``pytest tests/conformance/operations/test_departures.py --conformance=all``.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.openvino import convert
from converters.openvino import rules as _rules  # noqa: F401  (importing it registers the rules)
from converters.openvino.rule import EVERYWHERE, Departure, find_rule, rules
from tests.conformance.case import Case
from tests.conformance.check import compare, forms, run_model
from tests.conformance.models import case, constant, node
from tests.conformance.operations import cases
from tests.conformance.oracle import Oracle, OracleError, Outputs

F, I32, I64 = np.float32, np.int32, np.int64
NAN, INF = np.nan, np.inf

EXAMPLES: list[Case] = []
"""Of each case the name is how the departure's ``where`` begins, and ``expected`` what the specification says."""

UNSHOWN = {
    "`auto_pad` `same_upper`": "what is read beyond the data may be anything, and spoils the oracle's process",
    "an empty sequence": "what is read beyond it may be the right answer",
    "repeats that are not constant": "what was in memory may be the right answer",
}
"""Departures without an example, by how their ``where`` begins; why they have none."""


def _floats(*values: Any) -> np.ndarray:
    return np.array(values, F)


def _opset(version: int) -> Any:
    return importlib.import_module(f"openvino.opset{version}")


def _shown(
    operation: str, version: int, where: str, make: Any, *run: np.ndarray, expected: Any = None, **given: Any
) -> None:
    """An example; without ``expected`` the answer of ``Model.evaluate`` is what the CPU plugin parts from."""
    if isinstance(make, str):
        make = f"opset{version}.{make}"
    options = {} if expected is None else {"expected": [expected if isinstance(expected, list) else [expected]]}
    EXAMPLES.append(case(operation, f"opset{version}", where, make, run, options=options, **given))


def _shown_by(name: str, where: str, **changes: Any) -> None:
    """An example that is one of the operations' own cases."""
    (found,) = (c for c in cases.CASES if c.id == name)
    EXAMPLES.append(replace(found, name=where, inputs=found.inputs[:1], **changes))


# -- everywhere ------------------------------------------------------------------------------------------------------------

_shown("Abs", 1, "integers of 64 bits", "abs", np.array([-(2**40) - 1]))
_shown("Add", 1, "f64", "add", np.array([1e300]), np.array([0.0]), expected=np.array([1e300]))
_shown(
    "Multiply",
    1,
    "f16 and bf16",
    lambda x, y: _opset(1).multiply(_opset(1).multiply(x, x), y),
    np.array([300], np.float16),
    np.array([0.001], np.float16),
)
_shown(
    "Reshape", 1, "inputs and results of unknown rank", "reshape", _floats(1, 2), np.array([2, 1]), special_zero=False,
    shapes=[[2], [-1]],
)  # fmt: skip
_shown_by("Constant-1-f8e8m0-7", "constants of f8e8m0")

# -- activations -----------------------------------------------------------------------------------------------------------

for _operation, _version, _make, _given in (
    ("Relu", 1, "relu", {}),
    ("HSigmoid", 5, "hsigmoid", {}),
    ("Clamp", 1, "clamp", {"min_value": -1.0, "max_value": 1.0}),
):
    _shown(_operation, _version, "a NaN", _make, _floats(NAN), **_given)
for _version in (1, 8):
    _shown("Softmax", _version, "a NaN among", "softmax", _floats(NAN, 1, 2), axis=0)
_shown("LogSoftmax", 5, "a NaN among", "log_softmax", _floats(NAN, 1, 2), axis=0, expected=_floats(NAN, NAN, NAN))
_shown("Relu", 1, "integers of 32 bits", "relu", np.array([2**24 + 1], I32))
_shown("PRelu", 1, "a slope for the last", "prelu", np.full((1, 2, 3), -1, F), _floats(1, 2, 3), dynamic=True)
_shown(
    "HardSigmoid", 1, "parameters", "hard_sigmoid", _floats(0.5), np.array(0.2, F), np.array(0.5, F), expected=_floats(0.6)
)
_shown("Selu", 1, "parameters", "selu", _floats(2), _floats(1), _floats(3), expected=_floats(6))

# -- arithmetic ------------------------------------------------------------------------------------------------------------

for _operation, _number in (("Asin", 1), ("Exp", 1), ("Log", 2), ("Sin", 1)):
    _shown(_operation, 1, "integers of 32 and 64 bits", _operation.lower(), np.array([_number], I32))
_shown("Exp", 1, "a NaN", "exp", _floats(NAN))
_shown("Negative", 1, "unsigned", "negative", np.array([0], np.uint8), expected=np.array([0], np.uint8))
_shown("Round", 5, "`half_away_from_zero`", "round", _floats(0.49999997), mode="half_away_from_zero")
for _operation in ("Add", "Subtract"):
    _shown(_operation, 1, "results beyond", _operation.lower(), np.array([100, 3], np.uint8), np.array([200, 7], np.uint8))
_shown(
    "SquaredDifference",
    1,
    "i8 and u8",
    "squared_difference",
    np.array([5], np.uint8),
    np.array([2], np.uint8),
    expected=np.array([9], np.uint8),
)
for _operation in ("Maximum", "Minimum"):
    _shown(_operation, 1, "a NaN in the first", _operation.lower(), _floats(NAN), _floats(1))
    _shown(_operation, 1, "a NaN in the second", _operation.lower(), _floats(1), _floats(NAN))
_shown("Divide", 1, "integers with `m_pythondiv`", "divide", np.array([-7], I32), np.array([2], I32))
_shown("Divide", 1, "an integer divisor", "divide", np.array([1], I32), np.array([0], I32))
_shown("FloorMod", 1, "an integer divisor", "floor_mod", np.array([1], np.int8), np.array([0], np.int8))
for _operation, _make, _number in (
    ("Divide", "divide", 1),
    ("Mod", "mod", 10),
    ("FloorMod", "floor_mod", 10),
    ("Power", "power", 1),
):
    _shown(_operation, 1, "integers of 32 bits", _make, np.array([1000000007], I32), np.array([_number], I32))
_shown("FloorMod", 1, "floats whose quotient", "floor_mod", _floats(1e9), _floats(3))
_shown("Mod", 1, "floats whose quotient", "mod", _floats(1e9), _floats(3), expected=_floats(1))
_shown("Mod", 1, "an infinite divisor", "mod", _floats(5), _floats(INF), expected=_floats(5))


def _pdpd(operation: str, version: int, make_opset: int, *run: np.ndarray, **given: Any) -> None:
    make = node(operation, f"opset{make_opset}", **{"auto_broadcast": "PDPD", "auto_broadcast.auto_broadcast_axis": 0})
    _shown(operation, version, "`auto_broadcast=pdpd`", make, *run, **given)


_LEFT, _RIGHT = np.arange(6, dtype=I32).reshape(2, 3) + 1, np.array([2, 4], I32)
for _operation in ("Subtract", "Divide", "Equal", "NotEqual", "Less", "LessEqual"):
    _pdpd(_operation, 1, 1, _LEFT.astype(F), _RIGHT.astype(F))
for _operation, _version in (("LogicalAnd", 1), ("LogicalOr", 1), ("LogicalXor", 2)):
    _pdpd(_operation, _version, 1, _LEFT > 2, _RIGHT > 2)
for _operation, _function in (("LeftShift", np.left_shift), ("RightShift", np.right_shift)):
    _pdpd(f"Bitwise{_operation}", 15, 15, _LEFT, _RIGHT, expected=_function(_LEFT, _RIGHT[:, None]))
for _operation, _function in (("And", np.bitwise_and), ("Or", np.bitwise_or), ("Xor", np.bitwise_xor)):
    _pdpd(f"Bitwise{_operation}", 13, 13, _LEFT, _RIGHT, expected=_function(_LEFT, _RIGHT[:, None]))
_shown_by("Select-1-pdpd-front", "`auto_broadcast=pdpd`")

# -- comparison, logic -----------------------------------------------------------------------------------------------------

for _operation, _make in (
    ("Equal", "equal"), ("NotEqual", "not_equal"), ("Less", "less"), ("LessEqual", "less_equal"), ("Greater", "greater"),
    ("GreaterEqual", "greater_equal"),
):  # fmt: skip
    _numbers = [2**24 + 1, 2**24] if _operation in ("Greater", "LessEqual") else [2**24, 2**24 + 1]
    _shown(_operation, 1, "integers of 32 bits", _make, *(np.array([n], I32) for n in _numbers))
for _operation, _make in (("Greater", "greater"), ("GreaterEqual", "greater_equal")):
    _shown(_operation, 1, "a NaN", _make, _floats(NAN), _floats(1))
_shown(
    "BitwiseRightShift",
    15,
    "u32 and u64",
    "bitwise_right_shift",
    np.array([2**31], np.uint32),
    np.array([31], np.uint32),
    expected=np.array([1], np.uint32),
)

# -- conversion, quantization ----------------------------------------------------------------------------------------------


def _converts(where: str, array: np.ndarray, *types: str, **given: Any) -> None:
    def make(x: Any) -> Any:
        for name in types:
            x = _opset(1).convert(x, name)
        return x

    _shown("Convert", 1, where, make, array, **given)


_converts("floats beyond the range of i32", _floats(5e9), "u32")
_converts("f64 beyond the range of i8", np.array([300.0]), "u8")
_converts("a NaN to boolean", _floats(NAN), "boolean")
_converts("integers beyond the range of f16", np.array([70000], I32), "f16")
_converts("f32 to f16 and back", _floats(1.0001, 1e6), "f16", "f32")
_converts("numbers to i4 or u4", np.array([17], I32), "u4", "i32")
_converts("numbers to u3 and u6", np.array([3], I32), "u3", "i32")


def _quantizes(where: str, x: np.ndarray, *limits: Any, levels: int, make: Any = "fake_quantize", **given: Any) -> None:
    arrays = [np.asarray(limit, F) for limit in limits]
    _shown("FakeQuantize", 1, where, make, x, *arrays, constants=(1, 2, 3, 4), levels=levels, **given)


_STEP = (np.float64(F(0.9)) - F(-0.3)) / 15
_quantizes(
    "constant limits, and a number halfway", (F(-0.3) + (np.arange(15) + 0.5) * _STEP).astype(F), -0.3, 0.9, 0, 15, levels=16
)
_quantizes("constant input limits that are equal", _floats([0], [1]), 0.1, 0.1, -1, 1, levels=2)
_quantizes("constant input limits in the wrong", _floats([-0.5], [0], [0.5]), 1, -1, 0, 15, levels=16)
_quantizes("constant limits of different", np.ones((1, 2, 2), F), [[[-1], [-2]]], 1.5, [0, 1], 3, levels=16)
_quantizes("65,536 levels", _floats(-0.5, 0, 0.5), -1, 1, -1, 1, levels=65536)
_quantizes("a NaN", _floats(NAN), -1, 1, -1, 1, levels=16)
_shown_by("FakeQuantize-1-pdpd", "`auto_broadcast=pdpd`")
_shown_by("FakeConvert-13-f8e4m3-subnormal", "subnormal")

# -- convolution, pooling --------------------------------------------------------------------------------------------------

_IMAGE, _KERNEL = np.arange(9, dtype=F).reshape(1, 1, 3, 3), np.ones((1, 1, 3, 3), F)
_WINDOW = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
_shown(
    "Convolution", 1, "a kernel of unknown", "convolution", _IMAGE, _KERNEL, shapes=[[1, 1, 3, 3], [-1] * 4], **_WINDOW,
    expected=np.full((1, 1, 1, 1), 36, F),
)  # fmt: skip
_shown(
    "GroupConvolution", 1, "a kernel of unknown", "group_convolution", _IMAGE, _KERNEL[None], **_WINDOW,
    shapes=[[1, 1, 3, 3], [1, -1, -1, -1, -1]], expected=np.full((1, 1, 1, 1), 36, F),
)  # fmt: skip
_WHOLE = np.array([[0, 1, 3, 3, 2], [3, 8, 15, 12, 7], [9, 21, 36, 27, 15], [9, 20, 33, 24, 13], [6, 13, 21, 15, 8]], F)
for _operation, _make, _kernel in (
    ("ConvolutionBackpropData", "convolution_backprop_data", _KERNEL),
    ("GroupConvolutionBackpropData", "group_convolution_backprop_data", _KERNEL[None]),
):
    # Of the whole result, five by five, one row and column are too many at each side.
    _shown(
        _operation, 1, "`output_shape` and explicit", _make, _IMAGE, _kernel, constants=(1,), **_WINDOW,
        output_shape=np.array([3, 3]), expected=_WHOLE[None, None, 1:4, 1:4],
    )  # fmt: skip
_shown(
    "ConvolutionBackpropData", 1, "an `output_shape` that is not",
    lambda x, w, size: _opset(1).convolution_backprop_data(
        x, w, strides=[1, 1], dilations=[1, 1], output_shape=size, auto_pad="same_upper"
    ),
    _IMAGE, _KERNEL, np.array([3, 3]), constants=(1,), expected=_WHOLE[None, None, 1:4, 1:4],
)  # fmt: skip
_shown_by("AdaptiveMaxPool-8-i64", "data or indices")

# -- detectors and regions -------------------------------------------------------------------------------------------------


def _detects(where: str, scores: Any, boxes: Any, classes: Any, found: Any) -> None:
    """Two regions of ten by ten, one of which reaches beyond the image; two classes, the first is the background."""
    attributes = {
        "score_threshold": 0.05, "nms_threshold": 0.5, "num_classes": 2, "post_nms_count": 4, "max_detections_per_image": 2,
        "class_agnostic_box_regression": False, "max_delta_log_wh": 1.0, "deltas_weights": [1.0] * 4,
    }  # fmt: skip
    make = node("ExperimentalDetectronDetectionOutput", "opset6", **attributes)
    _shown(
        "ExperimentalDetectronDetectionOutput", 6, where, make, _floats([0, 0, 9, 9], [20, 0, 29, 9]), np.zeros((2, 8), F),
        _floats(*scores), _floats([25, 25, 1]), expected=[_floats(*boxes), np.array(classes, I32), _floats(*found)],
    )  # fmt: skip


_detects("boxes that reach", [[0, 0.8], [0, 0.7]], [[0, 0, 9, 9], [20, 0, 25, 9]], [1, 1], [0.8, 0.7])
_detects("the background", [[0.9, 0], [0, 0.7]], [[0, 0, 9, 9], [20, 0, 29, 9]], [0, 1], [0.9, 0.7])
_shown(
    "ExperimentalDetectronROIFeatureExtractor", 6, "regions of several levels",
    node("ExperimentalDetectronROIFeatureExtractor", "opset6", output_size=1, sampling_ratio=1, pyramid_scales=[4, 8],
         aligned=False),
    _floats([0, 0, 448, 448], [0, 0, 8, 8]), np.ones((1, 1, 4, 4), F), np.full((1, 1, 2, 2), 2, F),
    expected=[_floats([[[2]]], [[[1]]]), _floats([0, 0, 8, 8], [0, 0, 448, 448])],
)  # fmt: skip
_shown(
    "ROIAlign", 9, "the mean of a region", "roi_align", np.ones((1, 1, 4, 4), F), _floats([1, 1, 1, 1]), np.array([0], I32),
    pooled_h=1, pooled_w=1, sampling_ratio=0, spatial_scale=1.0, mode="avg", aligned_mode="half_pixel",
    expected=np.zeros((1, 1, 1, 1), F),
)  # fmt: skip
_shown_by("PSROIPooling-1-dynamic", "inputs of unknown")
_shown_by("DeformablePSROIPooling-1-dynamic", "inputs of unknown")
_ODD = {"fixed_size": _floats(3), "density": _floats(1), "offset": 0.5, "step": 4.0, "variance": _floats(0.1)}
for _version in (1, 8):
    _shown(
        "PriorBox", _version, "an odd `fixed_size`", "prior_box", np.array([1, 1]), np.array([8, 8]), attrs=_ODD,
        expected=np.array([[0.125, 0.125, 0.5, 0.5], [0.1] * 4], F),
    )  # fmt: skip
_shown_by("PriorBox-8-ratios-before-max", "`min_max_aspect")
_BOXES, _SCORES = _floats([[0, 0, 1, 1], [0, 0, 1, 0.5]]), _floats([[0.9, 0.8]])
for _version in (1, 3, 4, 5, 9):
    for _where, _overlap, _least in (("boxes whose overlap", 0.5, 0), ("boxes whose score", 0.9, 0.8)):
        _both = [np.array([[0, 0, 0], [0, 0, 1]])]
        if _version > 4:
            _both += [_floats([0, 0, 0.9], [0, 0, 0.8]), np.array([2])]
        _shown(
            "NonMaxSuppression", _version, _where, "non_max_suppression", _BOXES, _SCORES, np.array(5),
            np.array(_overlap, F), np.array(_least, F), constants=(2, 3, 4), expected=_both,
        )  # fmt: skip

# -- elements by place -----------------------------------------------------------------------------------------------------

for _version in (1, 7):
    _shown("Gather", _version, "negative indices", "gather", _floats(1, 2), np.array([-1]), np.array(0), constants=(2,))
for _version in (1, 4):
    _range = node("Range", "opset4", output_type="f32") if _version == 4 else "range"
    for _where, _numbers in (("a step away", (0, 2, -1)), ("floats with", (0, 0.3, 0.1))):
        _shown("Range", _version, _where, _range, *(np.array(n, F) for n in _numbers))
_shown("Range", 4, "floats as", node("Range", "opset4", output_type="i32"), *(np.array(n, F) for n in (0.6, 4, 1.5)))
_shown("Roll", 7, "one shift", "roll", _floats([1, 2], [3, 4]), np.array(1), np.array([0, 1]), constants=(1, 2),
       expected=_floats([4, 3], [2, 1]))  # fmt: skip
_shown_by("SpaceToBatch-2-padded-twice", "padding of several")
_shown(
    "ScatterElementsUpdate", 12, "the mean of integers",
    lambda *x: _opset(12).scatter_elements_update(*x, reduction="mean", use_init_val=True),
    np.array([-1], I32), np.array([0]), np.array([-2], I32), np.array(0), constants=(3,),
)  # fmt: skip
_shown_by("ScatterUpdate-3-scalar-index", "a scalar index")
_shown_by("SegmentMax-16-float16-LOWEST", "an empty segment")
_shown_by("GatherTree-1-no-length", "a `max_seq_len`")
for _name, _where in (
    ("shrink-begin-mask", "a shrunk axis with"),
    ("ellipsis-before-new-and-shrink", "an ellipsis and a new axis at"),
    ("shrink-new-axis", "a new axis and a shrunk"),
    ("shrink-beyond2", "an index of a shrunk"),
    ("ellipsis-and-new-axis-at-run-time", "an ellipsis and a new axis, with"),
):
    _shown_by(f"StridedSlice-1-{_name}", _where)
_shown("Transpose", 1, "an empty order", "transpose", _floats([1, 2]), np.zeros(0, I64), shapes=[[1, 2], [-1]])
_shown(
    "Squeeze",
    1,
    "axes whose dimension",
    "squeeze",
    _floats([1], [2]),
    np.array([0, 1]),
    constants=(1,),
    shapes=[[-1, -1], None],
)
for _version in (1, 3, 11):
    _shown_by(f"TopK-{_version}-min-value-ties", "equal elements")
_shown_by("TopK-11-u64", "u64 beyond")

# -- images ----------------------------------------------------------------------------------------------------------------

_X = np.sin(np.arange(36, dtype=F)).reshape(1, 1, 6, 6)


def _resized(version: int, where: str, x: np.ndarray, mode: str, axes: list[int], sizes: list[int], **given: Any) -> None:
    target, along, ones = np.array(sizes), np.array(axes), np.ones(len(axes), F)
    if version == 4:
        make = node("Interpolate", "opset4", mode=mode, shape_calculation_mode="sizes", **given)
        _shown("Interpolate", 4, where, make, x, target, ones, along, constants=(1, 2, 3))
    else:
        make = node("Interpolate", "opset11", mode=mode, shape_calculation_mode="sizes", **given)
        _shown("Interpolate", 11, where, make, x, target, along, constants=(1, 2))


for _version in (4, 11):
    _resized(_version, "`linear` with", _X, "linear", [2, 3], [3, 3], antialias=True)
    _resized(_version, "`cubic` of three", _X[0, :, :2, :2] * _floats([[1]], [[2]]), "cubic", [0, 1], [3, 3])
    _resized(_version, "`linear`, `linear_onnx`", np.array([[[[0, 3]]]], np.uint8), "linear_onnx", [2, 3], [1, 4])
_resized(11, "`bilinear_pillow`", np.array([[[[0, 5]]]], np.uint8), "bilinear_pillow", [2, 3], [1, 3])
_resized(11, "`bicubic_pillow`", _X, "bicubic_pillow", [2, 3], [9, 9], cube_coeff=-0.75)
_shown_by("RGBtoNV12-17-one-plane-float32", "all inputs")
_shown_by("BGRtoNV12-17-one-plane-float32", "all inputs")

# -- sums ------------------------------------------------------------------------------------------------------------------

_REDUCTIONS = (
    ("Sum", 1), ("Mean", 1), ("Max", 1), ("Min", 1), ("L1", 4), ("Prod", 1), ("L2", 4),
    ("LogicalAnd", 1), ("LogicalOr", 1),
)  # fmt: skip
for _name, _version in _REDUCTIONS:
    _make = "reduce_" + {"LogicalAnd": "logical_and", "LogicalOr": "logical_or"}.get(_name, _name.lower())
    _data = np.array([[True, False]]) if "Logical" in _name else _floats([1, 2])
    _shown(f"Reduce{_name}", _version, "no axes", _make, _data, np.zeros(0, I64), constants=(1,), keep_dims=False)
    if "Logical" in _name:
        _shown(f"Reduce{_name}", _version, "axes that", _make, _data, np.array([0]), keep_dims=True)
    elif _name not in ("Prod", "L2"):
        _numbers = np.array([2**24 + 1, 2**24 + 3 if _name == "Min" else 1], I32)
        _shown(f"Reduce{_name}", _version, "integers of 32", _make, _numbers, np.array([0]), constants=(1,), keep_dims=False)
_shown("ReduceMin", 1, "nothing", "reduce_min", _floats(INF), np.array([0]), constants=(1,), keep_dims=False)
_shown_by("MatMul-1-nothing-summed", "an empty dimension")
_shown(
    "NormalizeL2", 1, "no axes", lambda x, axes: _opset(1).normalize_l2(x, axes, 1e-6, "add"), _floats([0, 2]),
    np.zeros(0, I64), shapes=[[1, 2], [-1]], expected=_floats([0, 1]),
)  # fmt: skip


def _normalizes(where: str, x: list[float], axes: list[int], expected: list[float], **given: Any) -> None:
    attributes = {"alpha": 1.0, "beta": 1.0, "bias": 1.0, "size": 1} | given
    data, result = (_floats(*numbers).reshape(1, -1, 1, 1) for numbers in (x, expected))
    make = node("LRN", "opset1", **attributes)
    _shown("LRN", 1, where, make, data, np.array(axes), constants=(1,), expected=result)


_normalizes("an even `size`", [1, 2], [1], [1 / 3.5, 2 / 3.5], size=2)
_normalizes("axes that hold all", [1, 2], [1, 2, 3], [1 / (1 + 5 / 27), 2 / (1 + 5 / 27)], size=3)
_normalizes("axes that are not", [1, 2], [-3], [1 / 2, 2 / 5])
for _kind in ("RDFT", "IRDFT"):
    _shown_by(f"{_kind}-9-run-time-axes", "axes that")
    _shown_by(f"{_kind}-9-size-kept", "a `signal_size` of -1")
_shown_by("RDFT-9-longer", "a `signal_size` above")
_shown_by("IRDFT-9-both-longer", "several `signal_size`s")

# -- sequences -------------------------------------------------------------------------------------------------------------


def _recurs(operation: str, make: str, gates: int, states: int, expected: Any = None) -> None:
    """A sequence of one step in two: the last hidden state is that after the first."""
    x, state, lengths = _floats([[1], [1]]), np.zeros((1, 1, 1), F), np.array([1], I32)
    weights, biases = np.ones((1, gates, 1), F), np.zeros((1, gates), F)
    run = [x, *[state] * states, lengths, weights, weights, biases]
    shapes = [[1, -1, 1], *[list(array.shape) for array in run[1:]]]
    first = states + 2
    _shown(
        operation, 5, "sequences shorter", lambda *nodes: getattr(_opset(5), make)(*nodes, 1, "forward").outputs(),
        *run, shapes=shapes, constants=(first, first + 1, first + 2), expected=expected,
    )  # fmt: skip


_one, _half = np.tanh(1.0), 1 / (1 + np.exp(-1.0))
_gru = (1 - _half) * _one
_cell = _half * _one
_lstm = _half * np.tanh(_cell)
_recurs("RNNSequence", "rnn_sequence", 1, 1, [_floats([[[_one], [0]]]), _floats([[_one]])])
_recurs("GRUSequence", "gru_sequence", 3, 1, [_floats([[[_gru], [0]]]), _floats([[_gru]])])
_recurs("LSTMSequence", "lstm_sequence", 4, 2, [_floats([[[_lstm], [0]]]), _floats([[_lstm]]), _floats([[_cell]])])
_shown_by("LSTMCell-1-peepholes-input-forget", "peepholes")
_COUNTED = next(c for c in cases.CASES if c.id == "TensorIterator-1-slices-negative-start").inputs[0][0]
_shown_by(
    "TensorIterator-1-slices-negative-start", "a sliced input",
    expected=[[100 * _COUNTED[:, 3:4] + 10 * _COUNTED[:, 4:5] + _COUNTED[:, 5:6]]],
)  # fmt: skip


def _loss(where: str, logits: np.ndarray, length: int, expected: float, **given: Any) -> None:
    labels = np.array([[1, 0]], I32)
    _shown(
        "CTCLoss", 4, where, "ctc_loss", logits, np.array([2], I32), labels, np.array([length], I32), np.array(2, I32),
        constants=(4,), expected=_floats(expected), ctc_merge_repeated=False, **given,
    )  # fmt: skip


# Without labels the loss is that of two blanks.
_loss("labels of length 0, with `", _floats([[0, 0, 0], [0, 0, 0]]), 0, np.log(9), preprocess_collapse_repeated=True)
_loss("labels of length 0, without", _floats([[0, 0, 0], [0, 0, 0]]), 0, np.log(9))
_loss("logits above 88", _floats([[0, 100, 0], [0, 0, 100]]), 1, 0)

# -- random numbers, strings, variables ------------------------------------------------------------------------------------


def _draws(where: str, shape: list[int], low: Any, high: Any, kind: str, **given: Any) -> None:
    def make() -> Any:
        inputs = (constant(np.asarray(array)) for array in (np.array(shape, I64), low, high))
        return node("RandomUniform", "opset8", output_type=kind, global_seed=150, op_seed=10, alignment="TENSORFLOW")(
            *inputs
        )

    _shown("RandomUniform", 8, where, make, **given)


_draws("f16 and f64", [3], np.float64(0), np.float64(1), "f64")
_draws("i32 whose range", [3], I32(-(2**31)), I32(2**31 - 1), "i32")
_draws("i64 with", [3], I64(0), I64(100), "i64")
_draws("a scalar", [], F(0), F(1), "f32")
_shown_by("StringTensorUnpack-15-no-strings", "no strings")
_shown_by("StringTensorPack-15-constants", "constants only")


def _counter() -> Any:
    import openvino as ov

    x = _opset(8).parameter([1], I64)
    total = _opset(8).add(_opset(6).read_value(_opset(8).constant(np.array([0])), "total", I64, [1]), x)
    return ov.Model([_opset(8).result(total)], [_opset(6).assign(total, "total")], [x], "counter")


EXAMPLES.append(Case("ReadValue", "opset6", "a variable of i64", _counter, [[np.array([3])]], expected=[[np.array([3])]]))

# -- the tests -------------------------------------------------------------------------------------------------------------


def _departure(example: Case) -> Departure:
    """The departure that an example shows."""
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
    """Whether two answers differ."""
    if isinstance(one, OracleError) or isinstance(other, OracleError):
        return isinstance(one, OracleError) != isinstance(other, OracleError)
    try:
        compare(one, other, 1e-4, 1e-45, "they")
    except AssertionError:
        return True
    return False


@pytest.mark.conformance
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_departure(example: Case, oracle: Oracle, tmp_path: Path) -> None:
    departure, path = _departure(example), example.save(tmp_path)
    cpu = _answer(oracle, path, example, "cpu")
    other = [list(outputs) for outputs in example.expected or ()] or _answer(oracle, path, example, "evaluate")
    assert _part(cpu, other), f"they no longer part: {departure}"
    failing = departure.cpu.startswith(("refuses", "fails", "crashes"))
    assert isinstance(cpu, OracleError) == failing, f"the CPU plugin: {cpu}; stated: {departure.cpu}"
    followed = cpu if departure.follows == "cpu" else other
    _, report = convert(path, tmp_path / "model.onnx")
    for form in forms(report.custom_operators, report.without_body):
        try:
            got = run_model(tmp_path / "model.onnx", [list(arrays) for arrays in example.inputs], form)
        except Exception:
            assert isinstance(followed, OracleError)  # so does the converted model
            continue
        assert not isinstance(followed, OracleError), followed
        compare(got, followed, example.rtol, example.atol, f"kernels={form!r} and {departure.follows}")


def test_every_departure_has_an_example() -> None:
    shown = {id(_departure(example)) for example in EXAMPLES}
    stated = [*EVERYWHERE, *(departure for versions in rules().values() for rule in versions for departure in rule.departs)]
    missing = {d.where for d in stated if id(d) not in shown and not any(d.where.startswith(name) for name in UNSHOWN)}
    assert missing == set()
    assert [name for name in UNSHOWN if not any(d.where.startswith(name) for d in stated)] == []
