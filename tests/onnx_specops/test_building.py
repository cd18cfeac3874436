"""The graph builder: types, shapes, constants, folding, control flow."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

from onnx_specops.building import OPSET_IMPORTS, Builder, Value, constant_value, new_value


@pytest.fixture
def x() -> Value:
    return new_value(ir.DataType.FLOAT, [None, 3], "x")


def builder(*inputs: Value) -> Builder:
    return Builder(ir.Graph(list(inputs), [], nodes=[], name="test", opset_imports=dict(OPSET_IMPORTS)))


def run(op: Builder, outputs, **feeds):
    """Check the graph as a model and run it in ONNX Runtime."""
    for value in outputs:
        op.graph.outputs.append(op.result(value))
    proto = ir.to_proto(ir.Model(op.graph, ir_version=10))
    onnx.checker.check_model(proto, full_check=True)
    return ort.InferenceSession(proto.SerializeToString()).run(None, feeds)


def test_types_and_shapes_are_inferred(x):
    op = builder(x)
    y = op.Cast(op.Reshape(x, [0, 1, -1]), to=ir.DataType.INT32)
    assert (y.dtype, y.rank, y.dims) == (ir.DataType.INT32, 3, [None, 1, 3])


def test_a_transform_has_the_size_that_it_is_given():
    """ONNX's inference keeps the input's size if the length is not constant."""
    signal = new_value(ir.DataType.FLOAT, ["b", "n", 7, 2], "signal")
    length = new_value(ir.DataType.INT64, [], "length")
    axis = new_value(ir.DataType.INT64, [], "axis")
    op = builder(signal, length, axis)

    def dims(*inputs):
        return [dim if isinstance(dim, int) else dim.value for dim in op.DFT(*inputs).shape]

    assert dims(signal, length, 1) == dims(signal, length, -3) == ["b", None, 7, 2]
    assert dims(signal, length, 2) == dims(signal, length) == ["b", "n", None, 2]
    assert dims(signal, length, axis) == [None, None, None, 2]
    assert dims(signal, np.int64(5), 2) == ["b", "n", 5, 2]  # constant
    assert dims(signal, None, 2) == ["b", "n", 7, 2]  # the input's size


def test_nodes_that_differ_in_one_property_have_their_own_types(x):
    """Inference results are only reused for identical nodes."""
    op = builder(x)
    shape = op.Shape(x)
    for _ in range(2):
        assert op.Concat(x, x, axis=0).dims == [None, 3]
        assert op.Concat(x, x, axis=1).dims == [None, 6]
        assert op.Concat(x, x, x, axis=1).dims == [None, 9]
        assert op.Expand(1.0, np.array([2, 3])).dims == [2, 3]
        assert op.Expand(1.0, np.array([3, 2])).dims == [3, 2]
        assert op.Expand(1.0, shape).dims == [None, 3]
        assert op.Split(x, axis=1, num_outputs=3, outputs=3)[2].dims == [None, 1]
        assert op.Split(x, axis=1, num_outputs=1).dims == [None, 3]
        assert op.Abs(new_value(ir.DataType.INT8, None, "y")).dtype == ir.DataType.INT8
        assert op.Abs(new_value(ir.DataType.INT8, [4], "z")).dims == [4]


def test_python_numbers_have_the_type_of_the_other_input(x):
    op = builder(x)
    y = op.Mul(op.Add(x, 1), 2)
    assert run(op, [y], x=np.ones((1, 3), np.float32))[0].tolist() == [[4, 4, 4]]
    assert {value.dtype for value in op.graph.initializers.values()} == {ir.DataType.FLOAT}


def test_equal_constants_are_stored_once(x):
    op = builder(x)
    op.Add(op.Add(x, 1), 1)
    assert len(op.graph.initializers) == 1


def test_known_values_are_folded(x):
    op = builder(x)
    count = op.Mul(op.Gather(op.Shape(x, start=1), 0), 4)
    assert count.constant == 12
    assert len(op.graph) == 0
    assert op.Shape(x).constant is None
    assert op.if_(op.Greater(count, 5), lambda op: op.const(1), lambda op: op.const(2)).constant == 1


def test_inputs_with_initializers_are_not_folded():
    """A caller can replace them."""
    values = [constant_value(np.arange(size), name=f"x{size}") for size in (3, 5000)]
    op = builder(*values)
    for value in values:
        op.graph.register_initializer(value)
        assert value.constant is None
    folded = [op.Add(values[0], 1), op.Reshape(values[1], [2, -1])]
    assert [value.producer() is None for value in folded] == [False, False]
    free = constant_value(np.arange(5000))
    assert free.constant is not None
    assert op.Reshape(free, [2, -1]).producer() is None


@pytest.mark.parametrize("sizes", [[0], [4, 0], [2, 4, 0]])
@pytest.mark.parametrize("dims", [[4, 1], [None, 1]])
def test_an_expand_to_zero_elements_is_kept(dims, sizes):
    """ONNX Runtime removes the node if the rank is unchanged."""
    data = new_value(ir.DataType.FLOAT, dims, "data")
    op = builder(data)
    nothing = op.Abs(op.Expand(op.Abs(data), op.const(sizes)))
    assert nothing.dims is not None and nothing.dims[-1] == 0
    expected = np.broadcast_to(np.zeros((4, 1)), np.broadcast_shapes((4, 1), tuple(sizes))).shape
    assert run(op, [nothing], data=np.ones((4, 1), np.float32))[0].shape == expected


def test_if_and_captured_values(x):
    op = builder(x)
    rows = op.Gather(op.Shape(x), 0)
    y = op.if_(op.Greater(rows, 1), lambda op: op.Add(x, 1), lambda op: x)
    assert (y.dtype, y.dims) == (ir.DataType.FLOAT, [None, 3])
    assert run(op, [y], x=np.ones((2, 3), np.float32))[0].sum() == 12


def test_loop_with_carried_and_scanned_values(x):
    op = builder(x)

    def body(op, iteration, condition, total):
        row = op.Gather(x, iteration)
        total = op.Add(total, row)
        return condition, total, total

    last, every = op.loop(op.Gather(op.Shape(x), 0), True, body, np.zeros(3, np.float32))
    assert (last.dims, every.dims) == ([3], [None, 3])
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = run(op, [last, every], x=data)
    np.testing.assert_array_equal(results[1], np.cumsum(data, 0))
    np.testing.assert_array_equal(results[0], data.sum(0))


def test_a_value_can_be_several_outputs(x):
    op = builder(x)
    y = op.Relu(x)
    results = run(op, [y, y, x], x=np.full((1, 3), -1, np.float32))
    assert [r.sum() for r in results] == [0, 0, -3]


def test_unknown_attributes_are_errors(x):
    with pytest.raises(ValueError, match="no attribute 'axes'"):
        builder(x).Softmax(x, axes=1)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [
        ("Div", [[7, -7, 7, -7], [2, 2, -2, -2]], {}),
        ("Mod", [[7, -7, 7, -7], [3, 3, -3, -3]], {}),
        ("Mod", [[7, -7, 7, -7], [3, 3, -3, -3]], {"fmod": 1}),
        ("Slice", [[0, 1, 2, 3, 4], [-1], [-100], [0], [-2]], {}),
        ("Slice", [[0, 1, 2, 3, 4], [1], [2**62], [0], [2]], {}),
        ("Slice", [[0, 1, 2, 3, 4], [9], [-9], [0], [-1]], {}),
        ("Reshape", [[[1, 2], [3, 4]], [0, -1, 1]], {}),
        ("Unsqueeze", [[1, 2], [0, -1]], {}),
        ("Squeeze", [[[1], [2]], [-1]], {}),
        ("ReduceProd", [[2, 3, 4], [0]], {"keepdims": 0}),
        ("ReduceSum", [[2, 3, 4]], {"noop_with_empty_axes": 1}),
        ("ReduceMax", [[[2, 3], [5, 4]], [-1]], {}),
        ("CumSum", [[2, 3, 4], 0], {}),
        ("Gather", [[5, 6, 7], [-1, 0]], {}),
        ("Range", [0, 7, 2], {}),
        ("Expand", [[[1], [2]], [2, 1, 3]], {}),
        ("Where", [[True, False], [1, 2], [3, 4]], {}),
        ("Transpose", [[[1, 2], [3, 4]]], {}),
        ("Concat", [[1, 2], [3]], {"axis": 0}),
        ("Sign", [[-3, 0, 5]], {}),
        ("Sqrt", [np.array([0, 2, 3, 1e-40, -1, np.inf], np.float32)], {}),
        ("Cast", [[-3, 0, 5]], {"to": onnx.TensorProto.FLOAT}),
        ("Max", [[1, 5], [3, 2], [2, 2]], {}),
    ],
)
def test_folding_computes_the_results_of_onnx_runtime(op_type, inputs, attributes):
    arrays = [np.asarray(value) for value in inputs]
    op = builder()
    folded = op.node(op_type, *[op.const(array) for array in arrays], **attributes)
    assert folded.constant is not None
    names = [f"x{i}" for i in range(len(arrays))]
    values = [
        onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    node = onnx.helper.make_node(op_type, names, ["y"], **attributes)
    graph = onnx.helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name="y")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    expected = ort.InferenceSession(model.SerializeToString()).run(None, dict(zip(names, arrays, strict=True)))[0]
    assert folded.constant.dtype == expected.dtype
    np.testing.assert_array_equal(folded.constant, expected)
