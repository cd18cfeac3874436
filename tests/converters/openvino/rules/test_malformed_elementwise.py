"""Malformed layers of the element-by-element operations, activations, reductions, conversions, quantization and images.

Each raises a `ConversionError` that names the layer.
"""

from __future__ import annotations

import numpy as np
import pytest

from converters.openvino import ConversionError, convert
from tests.conformance.operation_models import layer_case, static, unranked
from tests.converters.openvino.rules.malformed import BOOL, I64, U8, assert_fault, assert_reported, rows

S = (2, 3)

# type, opset, attributes, inputs (shape and type, or a constant), the output's shape and type, the message
MALFORMED = [
    ("Add", "opset1", "", [S], S, "takes 2"),
    ("Add", "opset1", "", [S, S, S], S, "takes 2"),
    ("Add", "opset1", 'axis="1"', [S, S], S, "axis='1' is not known"),
    ("Add", "opset1", 'auto_broadcast="caffe"', [S, S], S, "not one of 'numpy'"),
    ("Add", "opset1", "", [S, (4,)], S, "are inconsistent"),
    ("Add", "opset1", 'auto_broadcast="none"', [S, (3,)], S, "forbids"),
    ("Add", "opset1", 'auto_broadcast="none"', [S, (2, 4)], S, "forbids"),
    ("Add", "opset1", 'auto_broadcast="pdpd" auto_broadcast.auto_broadcast_axis="-2"', [S, (2,)], S, "is negative"),
    ("Add", "opset1", 'auto_broadcast="pdpd" auto_broadcast.auto_broadcast_axis="1"', [S, S], S, "does not match"),
    ("Add", "opset1", 'auto_broadcast="pdpd" auto_broadcast.auto_broadcast_axis="9000000000"', [S, (3,)], S, "not match"),
    ("Add", "opset1", 'auto_broadcast="pdpd"', [S, (3,)], S, "does not broadcast"),
    ("Add", "opset1", "", [S, S], (2, 4), "in the file"),
    ("Add", "opset1", "", [S, (S, I64)], S, "are inconsistent"),
    ("Add", "opset99", "", [S, S], S, "newer than"),
    ("Divide", "opset1", 'm_pythondiv="perhaps"', [S, S], S, "neither true nor false"),
    ("Round", "opset5", 'mode="up"', [S], S, "not one of"),
    ("Erf", "opset1", 'approximate="1"', [S], S, "not known"),
    ("CumSum", "opset3", 'exclusive="2"', [S, ((), I64)], S, "neither true nor false"),
    ("Equal", "opset1", "", [S, S], S, "in the file"),
    ("Select", "opset1", "", [S, S, S], S, "are inconsistent"),
    ("Select", "opset1", "", [(S, BOOL), S], S, "takes 3"),
    ("IsNaN", "opset10", "", [(S, I64)], (S, BOOL), "expected floats"),
    ("IsInf", "opset10", 'detect_zero="1"', [S], (S, BOOL), "not known"),
    ("LogicalAnd", "opset1", "", [S, S], S, "are inconsistent"),
    ("LogicalNot", "opset1", "", [S, S], S, "takes 1"),
    ("BitwiseAnd", "opset13", "", [S, S], S, "are inconsistent"),
    ("BitwiseLeftShift", "opset15", "", [S, S], S, "expected integers"),
    ("Elu", "opset1", "", [S], S, "'alpha' is missing"),
    ("Elu", "opset1", 'alpha="much"', [S], S, "not a number"),
    ("Clamp", "opset1", 'min="0"', [S], S, "'max' is missing"),
    ("Clamp", "opset1", 'min="2" max="1"', [S], S, "exclude every value"),
    ("Clamp", "opset1", 'min="nan" max="1"', [S], S, "exclude every value"),
    ("Gelu", "opset7", 'approximation_mode="quick"', [S], S, "not one of"),
    ("Gelu", "opset2", 'approximation_mode="erf"', [S], S, "not known"),
    ("Swish", "opset4", "", [S, (3,)], S, "one number"),
    ("HardSigmoid", "opset1", "", [S, (), (3,)], S, "one number"),
    ("Selu", "opset1", "", [S, (2,), ()], S, "one number"),
    ("PReLU", "opset1", "", [S], S, "takes 2"),
    ("SoftMax", "opset1", 'axis="-1"', [S], S, "is negative"),
    ("SoftMax", "opset8", 'axis="2"', [S], S, "are inconsistent"),
    ("LogSoftmax", "opset5", 'axis="-3"', [S], S, "are inconsistent"),
    ("GRN", "opset1", "", [S], S, "'bias' is missing"),
    ("ReduceSum", "opset1", "", [S], S, "takes 2"),
    ("ReduceSum", "opset1", 'keep_dims="true"', [S, np.array([2])], (2, 3), "out of range"),
    ("ReduceMax", "opset1", 'keep_dims="true"', [S, np.array([-3])], (2, 3), "out of range"),
    ("ReduceMean", "opset1", 'keepdims="true"', [S, np.array([0])], (1, 3), "not known"),
    ("ReduceProd", "opset1", 'keep_dims="true"', [S, np.array([1])], (2, 2), "in the file"),
    ("ReduceLogicalOr", "opset1", 'keep_dims="true"', [S, np.array([1])], (2, 1), "expected booleans"),
    ("Convert", "opset1", "", [S], S, "destination_type is missing"),
    ("Convert", "opset1", 'destination_type="f31"', [S], S, "not a known element type"),
    ("Convert", "opset1", 'destination_type="string"', [S], S, "converts f32 to string"),
    ("Convert", "opset1", 'destination_type="dynamic"', [S], S, "no type"),
    ("ConvertLike", "opset1", "", [S], S, "takes 2"),
    ("ConvertPromoteTypes", "opset14", "", [S, (S, I64)], S, "promote_unsafe"),
    ("FakeQuantize", "opset1", "", [S, (), (), (), ()], S, "'levels' is missing"),
    ("FakeQuantize", "opset1", 'levels="1"', [S, (), (), (), ()], S, "2 or more"),
    ("FakeQuantize", "opset1", 'levels="-3"', [S, (), (), (), ()], S, "2 or more"),
    ("FakeQuantize", "opset1", 'levels="16"', [S, (), (), ()], S, "takes 5"),
    ("FakeQuantize", "opset1", 'levels="16"', [S, (5,), (), (), ()], S, "does not broadcast"),
    ("FakeConvert", "opset13", 'destination_type="f16"', [S, ()], S, "not one of"),
    ("FakeConvert", "opset13", 'destination_type="f8e4m3"', [S, (4,)], S, "are inconsistent"),
    ("ErfInv", "opset17", "", [], S, "takes 1"),
    ("CumSum", "opset3", "", [S, S], S, "instead of an integer type"),
    ("IsFinite", "opset10", "", [(S, I64)], (S, BOOL), "expected floats"),
    ("BitwiseNot", "opset13", "", [S], S, "are inconsistent"),
    ("BitwiseLeftShift", "opset15", "", [(S, I64), (S, BOOL)], (S, I64), "different types"),
    ("BitwiseRightShift", "opset15", "", [(S, I64), (S, U8)], (S, I64), "different types"),
    ("Power", "opset1", "", [S, (S, I64)], S, "different types"),
    ("Swish", "opset4", "", [S, ((), I64)], S, "different types"),
    ("Selu", "opset1", "", [S, (), ((), I64)], S, "different types"),
    ("HardSigmoid", "opset1", "", [S, (), ((), I64)], S, "different types"),
    ("PReLU", "opset1", "", [S, (2, 1, 3)], S, "are inconsistent"),
    ("GRN", "opset1", 'bias="1"', [(3,)], (3,), "are inconsistent"),
    ("FakeQuantize", "opset1", 'levels="16"', [S, (), (), (), ((), I64)], S, "are inconsistent"),
    ("FakeQuantize", "opset1", 'levels="16"', [(1, 3), (2, 3), (2, 3), (), ()], (1, 3), "larger than its data"),
    ("FakeQuantize", "opset1", 'levels="16"', [S, (2, *[1] * len(S)), (), (), ()], S, "more dimensions than its data"),
    ("FakeQuantize", "opset1", 'levels="16"', [(4,), (4, 1, 1), (), (), ()], (4,), "more dimensions than its data"),
    ("NV12toRGB", "opset8", "", [(1, 4, 4, 1)], (1, 2, 4, 3), "4 is not a multiple of 3"),
    ("NV12toRGB", "opset8", "", [(1, 3, 4, 2)], (1, 2, 4, 3), "2 is not 1"),
    ("NV12toBGR", "opset8", "", [(1, 3, 5, 1)], (1, 2, 5, 3), "5 is not a multiple of 2"),
    ("NV12toBGR", "opset8", "", [(1, 4, 4, 1), (1, 2, 2, 1)], (1, 4, 4, 3), "1 is not 2"),
    ("NV12toRGB", "opset8", "", [(1, 4, 4, 1), (1, 2, 3, 2)], (1, 4, 4, 3), "not half as high and wide"),
    ("NV12toRGB", "opset8", "", [(2, 4, 4, 1), (1, 2, 2, 2)], (2, 4, 4, 3), "1 is not 2"),
    ("NV12toRGB", "opset8", "", [(1, 4, 4, 1), ((1, 2, 2, 2), U8)], (1, 4, 4, 3), "are inconsistent"),
    ("I420toRGB", "opset8", "", [(1, 4, 4, 1), (1, 2, 2, 1)], (1, 4, 4, 3), "two inputs"),
    ("I420toRGB", "opset8", "", [(1, 4, 4, 1), (1, 2, 2, 1), (1, 2, 3, 1)], (1, 4, 4, 3), "not half as high and wide"),
    ("I420toBGR", "opset8", "", [(1, 4, 4, 1), (1, 2, 2, 2), (1, 2, 2, 2)], (1, 4, 4, 3), "2 is not 1"),
    ("I420toBGR", "opset8", "", [(4, 4, 1)], (1, 4, 4, 3), "instead of"),
    ("RGBtoNV12", "opset17", "", [(1, 4, 4, 4)], (1, 6, 4, 1), "4 is not 3"),
    ("BGRtoNV12", "opset17", "", [(1, 3, 4, 3)], (1, 6, 4, 1), "3 is not a multiple of 2"),
    ("BGRtoNV12", "opset17", 'single_plane="maybe"', [(1, 4, 4, 3)], (1, 6, 4, 1), "neither true nor false"),
]  # fmt: skip

_UNARY = {
    "opset1": "Abs Acos Asin Atan Ceiling Cos Cosh Erf Exp Floor Log Negative Relu Sigmoid Sign Sin Sinh Sqrt Tan Tanh",
    "opset4": "Acosh Asinh Atanh HSwish Mish SoftPlus Swish",
    "opset5": "HSigmoid LogSoftmax",
    "opset7": "Gelu",
    "opset8": "SoftMax",
    "opset9": "SoftSign",
    "opset17": "ErfInv",
}
_ARITHMETIC = "Add Divide FloorMod Maximum Minimum Mod Multiply Power SquaredDifference Subtract"
_COMPARISONS = "Equal Greater GreaterEqual Less LessEqual NotEqual"
_LOGIC = "LogicalAnd LogicalOr LogicalXor Xor"
MALFORMED += [
    (kind, version, "", [(S, BOOL)], (S, BOOL), "are inconsistent")
    for version, kinds in _UNARY.items()
    for kind in kinds.split()
    if kind not in ("Ceiling", "Floor")
]
for _kind in _ARITHMETIC.split():
    MALFORMED += [
        (_kind, "opset1", "", [(S, BOOL), (S, BOOL)], (S, BOOL), "are inconsistent"),
        (_kind, "opset1", "", [S, (S, I64)], S, "are inconsistent|different types"),
        (_kind, "opset1", "", [S, (2, 4)], S, "are inconsistent"),
    ]
for _kind in _COMPARISONS.split():
    MALFORMED += [
        (_kind, "opset1", "", [S, (S, I64)], (S, BOOL), "are inconsistent"),
        (_kind, "opset1", "", [S, (2, 4)], (S, BOOL), "are inconsistent"),
        (_kind, "opset1", "", [S, S], S, "in the file"),
    ]
for _kind in _LOGIC.split():
    MALFORMED += [
        (_kind, "opset1", "", [(S, I64), (S, I64)], (S, BOOL), "are inconsistent"),
        (_kind, "opset1", "", [(S, BOOL), ((2, 4), BOOL)], (S, BOOL), "are inconsistent"),
    ]
for _kind in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    MALFORMED += [
        (_kind, "opset13", "", [S, S], S, "are inconsistent"),
        (_kind, "opset13", "", [(S, I64), (S, BOOL)], (S, I64), "are inconsistent"),
    ]


@pytest.mark.parametrize("row", rows(MALFORMED))
def test_a_malformed_layer_is_reported(tmp_path, row):
    assert_reported(tmp_path, *row)


def test_a_type_that_depends_on_a_rank(tmp_path):
    inputs = [unranked(np.array([1], np.uint8)), static(np.int64(1))]
    attributes = {"promote_unsafe": True, "pytorch_scalar_promotion": True}
    model = layer_case("ConvertPromoteTypes", "opset14", "convert_promote_types", "", inputs, attributes)
    with pytest.raises(ConversionError, match=r"ConvertPromoteTypes.*ranks.*determine the type") as caught:
        convert(model.save(tmp_path))
    assert_fault(caught.value)
