"""Each adapter is equivalent to opset 21: ONNX Runtime computes one node at both opsets."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

from onnx_specops.building import IR_VERSION, OPSET_IMPORTS, Builder, new_value
from onnx_specops.kernel_types import insert_casts
from onnx_specops.lowering import Lower, LoweringError, Stamp
from onnx_specops.lowering.adapters import adapted

_random = np.random.default_rng(7)


def f(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype(np.float32)


def i(values, dtype=np.int64) -> np.ndarray:
    return np.array(values, dtype)


class Const:
    """An input that is a constant."""

    def __init__(self, values, dtype=np.int64) -> None:
        self.array = np.array(values, dtype)


# Operator, inputs, attributes, and the number of outputs if there are several.
NODES: list[tuple] = [
    ("ReduceSum", [f(2, 3, 4), Const([1, -1])], {"keepdims": 0}),
    ("ReduceSum", [f(2, 3, 4), i([1, -1])], {"keepdims": 0}),
    ("ReduceSum", [f(2, 3, 4), i([0])], {}),
    ("ReduceSum", [f(2, 3, 4), i([])], {}),
    ("ReduceSum", [f(2, 3, 4), i([])], {"noop_with_empty_axes": 1}),
    ("ReduceMean", [f(2, 3, 4), Const([0])], {}),
    ("ReduceMean", [f(2, 0, 4), i([0, 2])], {}),
    ("ReduceMax", [f(2, 3, 4), i([2, 0])], {"keepdims": 0}),
    ("ReduceMax", [i([[0, 1], [0, 0]], bool), Const([1])], {}),
    ("ReduceMin", [f(2, 3), Const([1])], {}),
    ("ReduceProd", [f(2, 3), i([1])], {}),
    ("ReduceL1", [f(2, 3), i([1])], {}),
    ("ReduceL2", [f(2, 3), i([0])], {}),
    ("ReduceLogSum", [abs(f(2, 3)), i([1])], {}),
    ("ReduceLogSumExp", [f(2, 3), i([1])], {}),
    ("ReduceSumSquare", [f(2, 3), i([1])], {}),
    ("ArgMax", [i([[3, 5, 5], [7, 7, 1]], np.float32)], {"axis": 1, "select_last_index": 1, "keepdims": 0}),
    ("ArgMin", [f(2, 3)], {"axis": 1}),
    ("Softmax", [f(2, 3, 4)], {"axis": 1}),
    ("Softmax", [f(2, 3, 4)], {}),
    ("LogSoftmax", [f(2, 3, 4)], {"axis": 0}),
    ("Hardmax", [f(2, 3, 4)], {"axis": 1}),
    ("Shape", [f(2, 3, 4)], {"start": 1}),
    ("Shape", [f(2, 3, 4)], {"start": -2, "end": -1}),
    ("Reshape", [f(2, 0, 4), i([0, 5])], {"allowzero": 1}),
    ("Reshape", [f(2, 3, 4), i([4, 6])], {"allowzero": 1}),
    ("Reshape", [f(2, 3, 4), i([0, -1])], {}),
    ("Squeeze", [f(2, 1, 4, 1), Const([1])], {}),
    ("Squeeze", [f(2, 1, 4, 1), i([-1, 1])], {}),
    ("Squeeze", [f(2, 1, 4, 1)], {}),
    ("Unsqueeze", [f(2, 3), Const([0, -1])], {}),
    ("Unsqueeze", [f(2, 3), i([0, -1])], {}),
    ("Split", [f(7, 2)], {"num_outputs": 3}, 3),
    ("Split", [f(7, 2), i([2, 0, 5])], {"axis": 0}, 3),
    ("Split", [f(2, 6), Const([2, 4])], {"axis": 1}, 2),
    ("Pad", [f(2, 3), i([1, 2]), np.float32(7), Const([1])], {}),
    ("Pad", [f(2, 3), i([1, 2]), np.float32(7), i([-1])], {}),
    ("Pad", [f(4, 3), i([1, 2, 3, 0])], {"mode": "wrap"}),
    ("Pad", [f(4, 3), i([1, 2]), None, Const([0])], {"mode": "reflect"}),
    ("Trilu", [f(4, 3)], {}),
    ("Trilu", [f(2, 4, 3), i(1)], {"upper": 0}),
    ("GatherND", [f(2, 3, 4), i([[[1], [2]], [[0], [-1]]])], {"batch_dims": 1}),
    ("Dropout", [f(2, 3)], {}),
    ("Einsum", [f(2, 3, 4), f(4, 3)], {"equation": "abc,cb->ac"}),
    ("Einsum", [f(3, 3, 2)], {"equation": "iij->ji"}),
    ("Max", [i([2**60 + 1, -5]), i([2**60, -4])], {}),
    ("Min", [i([7, 3], np.int32), i([5, 5], np.int32), i([6, 1], np.int32)], {}),
    ("Clip", [i([-9, 0, 2**62]), i(-3), i(2**61)], {}),
    ("Clip", [i([1, 5, 9], np.int32), None, i(7, np.int32)], {}),
    ("Relu", [i([-3, 0, 3], np.int32)], {}),
    ("Pow", [i([2, 3]), i([5, 2], np.float32)], {}),
    ("Pow", [f(3), i([2, 3, 0])], {}),
    ("LessOrEqual", [i([1, np.nan, 3], np.float32), i([1, np.nan, 2], np.float32)], {}),
    ("GreaterOrEqual", [i([1, np.nan, 3], np.float32), i([1, 1, 2], np.float32)], {}),
    ("Equal", [np.array(["a", "b", "c"], object), np.array([["b"], ["c"]], object)], {}),
    ("BitwiseNot", [i([5, -1, 0], np.int32)], {}),
    ("BitwiseNot", [i([5, 255, 0], np.uint8)], {}),
    ("BitwiseAnd", [i([2**40 + 5, -7]), i([[-1], [12345]])], {}),
    ("BitwiseAnd", [i([2**31 + 5, 7], np.uint32), Const([255], np.uint32)], {}),
    ("BitwiseAnd", [i([-5, 77], np.int32), Const(12, np.int32)], {}),
    ("BitwiseAnd", [i([-5, 77], np.int32), Const(-1, np.int32)], {}),
    ("BitwiseAnd", [i([-5, 77]), Const(-2)], {}),
    ("BitwiseOr", [i([-5, 77], np.int16), i([300, -1], np.int16)], {}),
    ("BitwiseXor", [i([2**63 + 9, 77], np.uint64), i([2**62 + 1, 5], np.uint64)], {}),
    ("Gelu", [f(2, 3)], {}),
    ("Gelu", [f(2, 3)], {"approximate": "tanh"}),
    ("Mish", [f(2, 3)], {}),
    ("HardSwish", [f(2, 3) * 4], {}),
    ("Celu", [f(2, 3)], {"alpha": 0.7}),
    ("LayerNormalization", [f(2, 3, 4), f(4), f(4)], {"epsilon": 1e-3}),
    ("LayerNormalization", [f(2, 3, 4), f(3, 4)], {"axis": 1}, 3),
    ("GroupNormalization", [f(2, 6, 3, 2), f(6), f(6)], {"num_groups": 3}),
    ("BatchNormalization", [f(2, 3, 4), f(3), f(3), f(3), abs(f(3))], {}),
    ("GRU", [f(2, 5, 3), f(1, 12, 3), f(1, 12, 4)], {"hidden_size": 4, "layout": 0}, 2),
    ("DequantizeLinear", [i([[1, 2, 3, 4]], np.uint8), f(1, 2), i([[1, 2]], np.uint8)], {"axis": 1, "block_size": 2}),
    ("DequantizeLinear", [i([[1, 2], [3, 4]], np.uint8), f(2), i([1, 2], np.uint8)], {"axis": 0}),
    ("DequantizeLinear", [i([1, 2], np.int8), np.float32(0.5), np.int8(3)], {}),
    ("QuantizeLinear", [f(2, 3) * 9, abs(f(3)) + 0.1, i([1, 2, 3], np.uint8)], {"axis": 1}),
    ("QuantizeLinear", [f(2, 4) * 9, abs(f(2, 2)) + 0.1, i([[1, 2], [3, 4]], np.int16)], {"axis": 1, "block_size": 2}),
    ("QuantizeLinear", [f(2, 4) * 9, np.float32(0.1)], {}),
    ("Resize", [f(1, 2, 4, 6), None, None, Const([8, 3])], {"axes": [2, 3], "mode": "linear"}),
    ("Resize", [f(1, 2, 4, 6), None, Const([2, 1.5], np.float32)], {"axes": [-2, 3], "mode": "linear"}),
    ("Resize", [f(1, 2, 4, 6), None, Const([1, 1, 2, 2], np.float32)], {"mode": "nearest"}),
    ("AveragePool", [f(1, 2, 7, 8)], {"kernel_shape": [2, 3], "dilations": [2, 1], "pads": [1, 1, 0, 1]}),
    ("AveragePool", [f(1, 2, 7, 8)], {"kernel_shape": [2, 3], "dilations": [2, 2], "count_include_pad": 1}),
    (
        "RoiAlign",
        [f(1, 2, 9, 9), i([[1, 1, 6, 7]], np.float32), i([0])],
        {"output_height": 2, "output_width": 3, "sampling_ratio": 2},
    ),
    (
        "DeformConv",
        [f(1, 4, 6, 5), f(6, 2, 3, 3), f(1, 36, 4, 3), f(6), f(1, 18, 4, 3)],
        {"group": 2, "offset_group": 2, "dilations": [1, 1]},
    ),
    ("DeformConv", [f(2, 2, 6, 5), f(3, 2, 2, 2), f(2, 8, 3, 4)], {"strides": [2, 1], "pads": [0, 0, 0, 0]}),
    ("Col2Im", [f(2, 12, 6), i([4, 5]), i([2, 2])], {"strides": [2, 2], "pads": [0, 1, 0, 1]}),
    ("Col2Im", [f(2, 12, 12), Const([4, 5]), Const([2, 2])], {}),
    ("DFT", [f(2, 6, 2), None, Const(1)], {}),
    ("DFT", [f(2, 6, 4, 1), Const(5), i(-3)], {"onesided": 1}),
    ("DFT", [f(2, 6, 4, 2), None, i(2)], {"inverse": 1}),
    ("ScatterElements", [f(3, 4), i([[0, 1], [0, -1]]), f(2, 2)], {"axis": 1}),
    ("ScatterElements", [f(3, 4), i([[0, 1, 0], [3, 3, -1]]), f(2, 3)], {"axis": 1, "reduction": "add"}),
    ("ScatterElements", [f(3, 4), i([[0, 2, 2, 1], [0, 2, 0, 1]]), f(2, 4)], {"reduction": "max"}),
    ("ScatterElements", [i([1, 2, 3]), i([0, 0, 2, 0]), i([5, 6, 7, 8])], {"reduction": "mul"}),
    ("ScatterND", [f(3, 4), i([[0, 1], [0, 1], [2, -1]]), f(3)], {"reduction": "add"}),
    ("ScatterND", [f(3, 4), i([[0], [0], [2]]), f(3, 4)], {"reduction": "min"}),
]
NODES += [
    ("GridSample", [f(2, 3, 5, 4), f(2, 3, 3, 2) * 1.5], {"mode": m, "padding_mode": padding, "align_corners": corners})
    for m in ("linear", "nearest", "cubic")
    for padding in ("zeros", "border", "reflection")
    for corners in (0, 1)
]


def model_of(operator, inputs, attributes, outputs=1) -> ir.Model:
    """Return a model of one node; its inputs' dimensions are unknown."""
    graph = ir.Graph([], [], nodes=[], name="test", opset_imports=dict(OPSET_IMPORTS))
    op = Builder(graph)
    values = []
    for number, given in enumerate(inputs):
        if isinstance(given, Const):
            values.append(op.const(given.array))
        elif given is None:
            values.append(None)
        else:
            dtype = ir.DataType.STRING if given.dtype == object else ir.DataType.from_numpy(given.dtype)
            dims = [d if given.dtype == np.float32 and given.ndim == 4 else None for d in given.shape]
            if given.ndim == 1 and given.dtype == np.int64:
                dims = [given.size]  # a length that determines a rank
            value = new_value(dtype, dims, f"x{number}")
            if given.shape[-1:] in ((1,), (2,)) and operator == "DFT":
                value.shape = ir.Shape([*dims[:-1], given.shape[-1]])
            graph.inputs.append(value)
            values.append(value)
    results = op.node(operator, *values, outputs=outputs, **attributes)
    for number, result in enumerate(results if outputs > 1 else [results]):
        result.name = f"y{number}"
        graph.outputs.append(result)
    return ir.Model(graph, ir_version=IR_VERSION)


def computed(model: ir.Model, inputs) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    data = ir.to_proto(model).SerializeToString()
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    given = [(f"x{n}", np.asarray(x)) for n, x in enumerate(inputs) if x is not None and not isinstance(x, Const)]
    return session.run(None, dict(given))


@pytest.mark.parametrize("node", NODES, ids=lambda node: node[0])
def test_lowered_nodes_are_equivalent(node):
    operator, inputs, attributes, *outputs = node
    model = model_of(operator, inputs, attributes, *outputs)
    insert_casts(model.graph)
    expected = computed(model, inputs)
    thresholds = {adapter.opset for adapter in adapted()[operator]}
    for opset in sorted({11} | {t - 1 for t in thresholds if 11 < t <= 21} | {t for t in thresholds if t < 21}):
        model = model_of(operator, inputs, attributes, *outputs)
        Lower(opset)(model)
        insert_casts(model.graph, opset=opset)
        Stamp(opset)(model)
        if all(output.shape is not None for output in model.graph.outputs):  # the checker requires the ranks of outputs
            onnx.checker.check_model(ir.to_proto(model), full_check=True)
        for got, wanted in zip(computed(model, inputs), expected, strict=True):
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            if wanted.dtype == np.float32:
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5, err_msg=f"opset {opset}")
            else:
                assert got.tolist() == wanted.tolist(), f"opset {opset}"


# The adapters with the decorator `in_float32`.
_ROUNDED_ONCE = (
    "AveragePool", "Celu", "DFT", "DeformConv", "Einsum", "Gelu", "GridSample", "GroupNormalization", "HardSwish", "Mish",
    "RoiAlign",
)  # fmt: skip


@pytest.mark.parametrize("node", [node for node in NODES if node[0] in _ROUNDED_ONCE], ids=lambda node: node[0])
def test_decompositions_in_float16_round_once(node):
    """The float16 result is that of float32, rounded, although sums would overflow in float16."""
    operator, inputs, attributes = node
    large = 2.0**14 if operator == "AveragePool" else 1.0
    narrow = [x.astype(np.float16) * np.float16(large) if getattr(x, "dtype", None) == np.float32 else x for x in inputs]
    wide = [x.astype(np.float32) if getattr(x, "dtype", None) == np.float16 else x for x in narrow]
    (exact,) = computed(model_of(operator, wide, attributes), wide)
    model = model_of(operator, narrow, attributes)
    Lower(11)(model)
    insert_casts(model.graph, opset=11)
    Stamp(11)(model)
    (got,) = computed(model, narrow)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got.astype(np.float32), exact, rtol=2**-10, atol=2e-5 * large)


# With an axis at run time, the result of DFT is that of an If, which has float16 outputs.
_IN_ONE_GRAPH = {*_ROUNDED_ONCE, "LayerNormalization"} - {"AveragePool", "DFT"}


@pytest.mark.parametrize("node", [node for node in NODES if node[0] in _IN_ONE_GRAPH], ids=lambda node: node[0])
def test_decompositions_in_float16_stay_float32_for_the_next_node(node):
    """A runtime that keeps 16-bit floats in float32 between nodes does not round the result of several nodes either."""
    operator, inputs, attributes, *_ = node
    narrow = [x.astype(np.float16) if getattr(x, "dtype", None) == np.float32 else x for x in inputs]
    model = model_of(operator, narrow, attributes)
    op, (result,) = Builder.of_existing(model.graph), model.graph.outputs
    model.graph.outputs[0] = op.Mul(op.Cast(result, to=ir.DataType.FLOAT), 1.0)
    Lower(11)(model)
    insert_casts(model.graph, opset=11, keep_float32=True, converted_unrounded=[ir.DataType.FLOAT16])
    Stamp(11)(model)
    (got,) = computed(model, narrow)
    wide = [x.astype(np.float32) if getattr(x, "dtype", None) == np.float16 else x for x in narrow]
    (exact,) = computed(model_of(operator, wide, attributes), wide)
    np.testing.assert_allclose(got, exact, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("x", "zero"), [(i([[1, 65535]], np.uint16), i([1, 60000], np.uint16)), (i([[1, 255]], np.uint8), None)]
)
def test_integers_beyond_float16_are_dequantized_in_float32(x, zero):
    inputs = [x, i([0.125, 0.5], np.float16), *([] if zero is None else [zero])]
    model = model_of("DequantizeLinear", inputs, {"axis": -1})
    Lower(13)(model)
    insert_casts(model.graph, opset=13)
    Stamp(13)(model)
    (got,) = computed(model, inputs)
    number = x.astype(np.float32) - (0 if zero is None else zero.astype(np.float32))
    assert got.dtype == np.float16 and got.tolist() == (number * [0.125, 0.5]).astype(np.float16).tolist()


def test_every_adapter_has_a_case():
    # Constant and CastLike are never emitted in these forms; Bernoulli is random.
    assert set(adapted()) - {node[0] for node in NODES} == {"Bernoulli", "CastLike", "Constant", "LSTM", "RNN"}


@pytest.mark.parametrize("layout", [0, 1])  # ONNX Runtime only supports 0
def test_recurrent_layers_with_batch_first(layout):
    inputs = [f(2, 5, 3), f(1, 12, 3), f(1, 12, 4)]
    turned = [inputs[0].transpose(1, 0, 2) if layout else inputs[0], *inputs[1:]]
    plain = computed(model_of("GRU", [inputs[0], *inputs[1:]], {"hidden_size": 4}, 2), inputs)
    model = model_of("GRU", turned, {"hidden_size": 4, "layout": layout}, 2)
    Lower(13)(model)
    Stamp(13)(model)
    y, h = computed(model, turned)
    if layout:
        y, h = y.transpose(1, 2, 0, 3), h.transpose(1, 0, 2)
    np.testing.assert_allclose(y, plain[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(h, plain[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("parts", [1, 2])
def test_numbers_that_may_be_real_or_complex(parts: int):
    graph = ir.Graph([], [], nodes=[], name="test", opset_imports=dict(OPSET_IMPORTS))
    op = Builder(graph)
    x = new_value(ir.DataType.FLOAT, [None, None, None], "x0")
    graph.inputs.append(x)
    y = op.DFT(x, None, 1)
    y.name = "y"
    graph.outputs.append(y)
    model, given = ir.Model(graph, ir_version=IR_VERSION), f(3, 5, parts)
    Lower(13)(model)
    Stamp(13)(model)
    (result,) = computed(model, [given])
    wanted = np.fft.fft(given[..., 0] + (1j * given[..., 1] if parts == 2 else 0), axis=1)
    np.testing.assert_allclose(result, np.stack([wanted.real, wanted.imag], -1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("limit", [3.0, np.inf])
def test_shapes_that_are_computed_with_floats(limit: float):
    graph = ir.Graph([], [], nodes=[], name="test", opset_imports=dict(OPSET_IMPORTS))
    op = Builder(graph)
    x = new_value(ir.DataType.FLOAT, [None, None], "x0")
    graph.inputs.append(x)
    counts = op.Min(op.Cast(op.Shape(x, start=0, end=1), to=ir.DataType.FLOAT), op.const(limit, ir.DataType.FLOAT))
    y = op.Reshape(x, op.Concat(op.Cast(counts, to=ir.DataType.INT64), [-1], axis=0), allowzero=1)
    y.name = "y"
    graph.outputs.append(y)
    model = ir.Model(graph, ir_version=IR_VERSION)
    Lower(13)(model)
    Stamp(13)(model)
    given = f(6, 2)
    (result,) = computed(model, [given])
    assert np.array_equal(result, given.reshape(int(min(6, limit)), -1))


def test_all_unsupported_nodes_are_reported_at_once():
    graph = ir.Graph([], [], nodes=[], name="test", opset_imports=dict(OPSET_IMPORTS))
    op = Builder(graph)
    x = new_value(ir.DataType.FLOAT, [1, 2, 4, 6], "x")
    graph.inputs.append(x)
    op.scope = "first"
    small = op.Resize(x, None, None, [2, 3], axes=[2, 3], mode="linear", antialias=1)
    op.scope = "second"
    graph.outputs.append(op.ReduceSum(op.STFT(op.Reshape(small, [1, -1, 1]), 2, None, 4)))
    model = ir.Model(graph, ir_version=IR_VERSION)
    with pytest.raises(LoweringError) as caught:
        Lower(13)(model)
    assert [(r.node_name.partition("/")[0], r.least) for r in caught.value.unsupported] == [("first", 18), ("second", 17)]


def test_newer_opsets_keep_the_nodes():
    for opset in range(22, onnx.defs.onnx_opset_version() + 1):
        model = model_of("Add", [f(2), f(2)], {})
        Lower(opset)(model)
        Stamp(opset)(model)
        onnx.checker.check_model(ir.to_proto(model), full_check=True)
        assert model.graph.opset_imports[""] == opset
