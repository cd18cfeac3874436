"""The pass that inserts casts for types that ONNX Runtime's CPU kernels lack."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

from onnx_specops.building import OPSET_IMPORTS, Builder, new_value
from onnx_specops.kernel_types import insert_casts, substitutes

D = ir.DataType


def model(emit, *dtypes):
    inputs = [new_value(dtype, [None], f"x{i}") for i, dtype in enumerate(dtypes)]
    graph = ir.Graph(inputs, [], nodes=[], name="test", opset_imports=dict(OPSET_IMPORTS))
    op = Builder(graph)
    graph.outputs.append(op.result(emit(op, *inputs)))
    insert_casts(graph, keep_float32=True, converted_unrounded=[D.FLOAT16])
    proto = ir.to_proto(ir.Model(graph, ir_version=10))
    onnx.checker.check_model(proto, full_check=True)
    return proto


def run(proto, *arrays):
    return ort.InferenceSession(proto.SerializeToString()).run(None, {f"x{i}": a for i, a in enumerate(arrays)})[0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "uint64", "float16"])
def test_additions_of_types_without_a_kernel_run(dtype):
    proto = model(lambda op, a, b: op.Add(a, b), D[dtype.upper()], D[dtype.upper()])
    a = np.array([1, 100], dtype)
    assert run(proto, a, a).dtype == dtype
    np.testing.assert_array_equal(run(proto, a, a), a + a)


def test_integers_wrap_around_as_in_their_own_type():
    proto = model(lambda op, a: op.Mul(a, a), D.INT8)
    assert run(proto, np.array([100], np.int8)).tolist() == [np.int8(np.int32(10000) & 0xFF)]


def test_half_precision_is_not_rounded_between_two_nodes():
    proto = model(lambda op, a: op.Sub(op.Add(a, np.float16(2048)), np.float16(2048)), D.FLOAT16)
    assert run(proto, np.array([0.25], np.float16)).tolist() == [0.25]


def test_half_precision_is_not_rounded_if_a_kernel_supports_it():
    def emit(op, a):
        return op.Sub(op.Max(op.Add(a, np.float16(2048)), np.float16(0)), np.float16(2048))

    assert run(model(emit, D.FLOAT16), np.array([0.25], np.float16)).tolist() == [0.25]


def test_half_precision_is_not_rounded_before_it_becomes_an_integer():
    proto = model(lambda op, a: op.Cast(op.Div(op.Mul(a, np.float16(3)), np.float16(3)), to=D.INT32), D.FLOAT16)
    assert run(proto, np.array([2047], np.float16)).tolist() == [2047]


def test_bfloat16_is_rounded_before_it_is_converted():
    proto = model(lambda op, a: op.Cast(op.Tanh(op.Cast(a, to=D.BFLOAT16)), to=D.INT32), D.FLOAT)
    assert run(proto, np.array([5], np.float32)).tolist() == [1]


def test_supported_types_are_unchanged():
    proto = model(lambda op, a: op.Add(a, a), D.FLOAT)
    assert [node.op_type for node in proto.graph.node] == ["Add"]
    assert substitutes("Add", "", (("T", D.FLOAT),)) == {}


def test_nested_graphs_are_adapted_too():
    def emit(op, a):
        return op.if_(op.Greater(op.Size(a), 1), lambda op: op.Mul(a, a), lambda op: a)

    proto = model(emit, D.INT16)
    assert run(proto, np.array([3, 4], np.int16)).tolist() == [9, 16]


def test_results_of_several_outputs_keep_their_types():
    proto = model(lambda op, a: op.TopK(a, [2], outputs=2)[0], D.UINT16)
    assert run(proto, np.array([3, 9, 4], np.uint16)).tolist() == [9, 4]


def test_booleans_become_integers_without_a_kernel():
    proto = model(lambda op, a, b: op.Where(a, b, b), D.BOOL, D.BOOL)
    assert run(proto, np.array([True, False]), np.array([True, False])).tolist() == [True, False]


def test_a_value_is_cast_once():
    proto = model(lambda op, a: op.Mul(op.Add(a, a), a), D.FLOAT16)
    assert sum(node.op_type == "Cast" and node.input[0] == "x0" for node in proto.graph.node) == 1
