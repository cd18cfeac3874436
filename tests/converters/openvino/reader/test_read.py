"""The reader agrees with OpenVINO on files that OpenVINO wrote."""

from __future__ import annotations

import gc
import time
import weakref

import numpy as np
import openvino as ov
import openvino.opset6 as opset6
import openvino.opset8 as opset8
import pytest
from openvino import Dimension, PartialShape, Type
from openvino import opset15 as ops

from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import InputPort, OutputPort
from converters.openvino.reader.read import read
from converters.openvino.reader.shapes import parse_partial_shape
from converters.openvino.reader.tensor_names import parse_names

from . import ir_text
from .agreement import assert_agrees


def parameter(shape, element_type=Type.f32, name=None):
    shape = PartialShape.dynamic() if shape is None else PartialShape(shape)
    return ops.parameter(shape, element_type, name=name)


def save(tmp_path, outputs, inputs, *, name="net", compress=False, sinks=()):
    results = [ops.result(output) for output in outputs]
    model = ov.Model(results, list(sinks), list(inputs), name)
    path = tmp_path / "model.xml"
    ov.save_model(model, path, compress_to_fp16=compress)
    return path


def by_type(graph, type):
    return next(layer for layer in graph.layers if layer.type == type)


def test_a_small_network(tmp_path):
    x = parameter([2, 3], name="x")
    weight = ops.constant(np.arange(12, dtype=np.float32).reshape(3, 4), name="weight")
    product = ops.matmul(x, weight, False, False, name="product")
    parts = ops.split(product, ops.constant(1), 2, name="parts")
    model, _ = assert_agrees(save(tmp_path, [ops.relu(parts.output(1), name="y"), parts.output(0)], [x]))
    assert (model.name, model.version) == ("net", 11)
    assert [layer.name for layer in model.parameters] == ["x"]
    assert by_type(model, "MatMul").attributes == {"transpose_a": "false", "transpose_b": "false"}
    assert by_type(model, "MatMul").version == "opset1"
    relu = by_type(model, "ReLU").inputs[0]
    assert isinstance(relu, InputPort) and isinstance(relu.source, OutputPort)
    assert (relu.source.index, relu.element_type, relu.dims) == (1, ElementType.F32, (2, 2))
    assert model.rt_info["OpenVINO Runtime"]
    assert model.weights_path == model.path.with_suffix(".bin")
    assert by_type(model, "MatMul").line == 1 + model.path.read_text().split('type="MatMul"')[0].count("\n")


def test_constants_are_views_into_the_file_and_share_bytes(tmp_path):
    values = np.arange(1000, dtype=np.float32)
    sums = ops.add(ops.constant(values), ops.constant(values.copy()))
    model, _ = assert_agrees(save(tmp_path, [sums], []))
    first, second = [layer.constant for layer in model.layers if layer.type == "Const"]
    assert first.offset == second.offset
    array = first.numpy()
    assert not array.flags.owndata and not array.flags.writeable
    np.testing.assert_array_equal(array, values)
    data = np.frombuffer(model.weights, np.uint8)
    assert array.ctypes.data == data.ctypes.data + first.offset


def test_the_file_stays_mapped_as_long_as_a_constant_exists(tmp_path):
    path = save(tmp_path, [ops.constant(np.arange(8.0))], [])
    model = read(path)
    mapping = weakref.ref(model.weights.obj)
    array = by_type(model, "Const").constant.numpy()
    del model
    gc.collect()
    assert mapping() is not None and array.sum() == 28
    del array
    gc.collect()
    assert mapping() is None


def test_unknown_dimensions_intervals_and_ranks(tmp_path):
    interval = parameter([Dimension(1, 5), -1, Dimension(3, -1), Dimension(0, 7), 4])
    rank, scalar = parameter(None), parameter([])
    outputs = [ops.relu(interval), ops.relu(rank), ops.relu(scalar), ops.add(scalar, rank)]
    model, oracle = assert_agrees(save(tmp_path, outputs, [interval, rank, scalar]))
    shapes = [layer.attributes["shape"] for layer in model.parameters]
    assert shapes == ["1..5,?,3..,..7,4", "...", ""]
    assert [layer.inputs[0].dims for layer in model.results] == [(None, None, None, None, 4), None, (), None]
    for text, port in zip(shapes, oracle.inputs, strict=True):
        bounds = parse_partial_shape(text)
        if bounds is None:
            assert port.partial_shape.rank.is_dynamic
            continue
        for (low, high), dim in zip(bounds, port.partial_shape, strict=True):
            assert low == dim.get_min_length()
            assert high == (None if dim.get_max_length() == -1 else dim.get_max_length())


@pytest.mark.parametrize("text", ["2,3", " 2 , 3 ", "[2,3]", "?,-1", "1..2,5..5,..", "...", "[...]", "", "[]"])
def test_shapes_are_read_as_openvino_reads_them(tmp_path, text):
    port = '<port id="0" precision="FP32"/>'
    node = ir_text.layer(0, "Parameter", data=f'shape="{text}" element_type="f32"', extra=f"<output>{port}</output>")
    path = ir_text.write(tmp_path, ir_text.net([node, ir_text.result(1, ())], [ir_text.edge(0, 0, 1, 0)]))
    assert_agrees(path)


def rank_cases():
    """Name -> a function that builds an output whose dimensions may be missing."""
    i64, zero, one = Type.i64, np.float32(0), np.float32(1)
    cases = {
        "gather": lambda: ops.gather(parameter([3]), parameter([], i64), ops.constant(0)),
        "gather at any axis": lambda: ops.gather(parameter([3]), ops.constant(0), parameter([], i64)),
        "gather of anything": lambda: ops.gather(parameter(None), ops.constant(0), ops.constant(0)),
        "product": lambda: ops.matmul(parameter([3]), parameter([3]), False, False),
        "einsum": lambda: ops.einsum([parameter([3]), parameter([3])], "a,a->"),
        "variable": lambda: opset6.read_value(parameter([]), "v", Type.f32, PartialShape([])),
        "variable of any rank": lambda: opset6.read_value(parameter(None), "v", Type.f32, PartialShape.dynamic()),
    }
    for name, shape in {"scalar": [], "vector": [-1], "matrix": [2, -1], "ones": [1, 1], "unknown": None}.items():
        axes = [] if name == "scalar" else [0, 1][: 1 if name == "vector" else 2]
        cases |= {
            f"relu of {name}": lambda x=shape: ops.relu(parameter(x)),
            f"sum of {name}": lambda x=shape, a=axes: ops.reduce_sum(parameter(x), ops.constant(a, np.int64), False),
            f"squeeze of {name}": lambda x=shape: ops.squeeze(parameter(x)),
            f"squeeze of {name} by no axes": lambda x=shape: opset6.squeeze(parameter(x), ops.constant([], np.int64)),
            f"squeeze of {name} that may skip": lambda x=shape, a=axes: ops.squeeze(
                parameter(x), ops.constant(a, np.int64), True
            ),
            f"rank of {name}": lambda x=shape: ops.squeeze(ops.shape_of(ops.shape_of(parameter(x))), ops.constant(0)),
        }
    for length in (0, 1, -1):
        n = [length]
        cases |= {
            f"reshape to {length}": lambda n=n: ops.reshape(parameter([]), parameter(n, i64), False),
            f"broadcast to {length}": lambda n=n: ops.broadcast(parameter([]), parameter(n, i64)),
            f"tile by {length}": lambda n=n: ops.tile(parameter([]), parameter(n, i64)),
            f"random {length}": lambda n=n: ops.random_uniform(
                parameter(n, i64), ops.constant(zero), ops.constant(one), "f32"
            ),
            f"maximum over {length}": lambda n=n: ops.reduce_max(parameter([4]), parameter(n, i64), False),
            f"maximum, kept, over {length}": lambda n=n: ops.reduce_max(parameter([]), parameter(n, i64), True),
            f"squeeze at {length}": lambda n=n: ops.squeeze(parameter([1]), parameter(n, i64)),
            f"unsqueeze at {length}": lambda n=n: ops.unsqueeze(parameter([]), parameter(n, i64)),
            f"gather_nd {length}": lambda n=n: ops.gather_nd(parameter([3]), parameter(n, i64)),
            f"eye {length}": lambda n=n: ops.eye(
                ops.constant(2), ops.constant(2), ops.constant(0), "f32", parameter(n, i64)
            ),
        }
    return cases


def parameters_of(output):
    """Return the Parameters that a value depends on."""
    found, pending = {}, [output if isinstance(output, ov.Node) else output.get_node()]
    while pending:
        node = pending.pop()
        if node.get_type_name() == "Parameter":
            found[node.get_friendly_name()] = node
        pending += [value.get_node() for value in node.input_values()]
    return list(found.values())


@pytest.mark.parametrize("case", rank_cases().items(), ids=lambda case: case[0])
def test_outputs_without_dimensions_are_scalars_as_in_openvino(tmp_path, case):
    output = case[1]()
    assert_agrees(save(tmp_path, [output], parameters_of(output)), ranks="cautious")


@pytest.mark.parametrize("axes", [[0], [0, 1]])
def test_reductions_over_constant_axes_give_known_scalars(tmp_path, axes):
    x = parameter([-1] * len(axes))
    model, _ = assert_agrees(save(tmp_path, [ops.reduce_mean(x, ops.constant(axes), False)], [x]))
    assert by_type(model, "ReduceMean").outputs[0].dims == ()


NAMES = ["a", "a,b", ",", "back\\slash", "x:0", "ünïcode", "with space", "<&>\"'", "{a}"]


@pytest.mark.parametrize("name", NAMES)
def test_tensor_names(tmp_path, name):
    x = parameter([2], name=name)
    x.output(0).get_tensor().set_names({name, "other"})
    y = ops.relu(x)
    y.output(0).get_tensor().set_names({name + "!", "out"})
    model, _ = assert_agrees(save(tmp_path, [y], [x], name=name))
    assert set(model.input_names[0]) == {name, "other"}
    assert set(model.output_names[0]) == {name + "!", "out"}


def test_names_are_split_as_openvino_splits_them(tmp_path):
    texts = ["b,a", r"a\,b,c\,,\\,d", "x\\", " a , b ", "", ",", "a,,b"]
    for text in texts:
        port = f'<port id="0" precision="FP32" names="{text}"><dim>2</dim></port>'
        data = 'shape="2" element_type="f32"'
        node = ir_text.layer(0, "Parameter", data=data, extra=f"<output>{port}</output>")
        path = ir_text.write(tmp_path, ir_text.net([node, ir_text.result(1)], [ir_text.edge(0, 0, 1, 0)]))
        oracle = ov.Core().read_model(path)
        assert set(parse_names(text)) == oracle.input(0).names
        assert set(read(path).parameters[0].outputs[0].names) == oracle.input(0).names


def test_results_have_their_own_names(tmp_path):
    node = ir_text.layer(2, "Result", inputs=[(2,)], attributes=' output_names="z,q\\,r"')
    relu = ir_text.layer(1, "ReLU", inputs=[(2,)], outputs=[(2,)])
    edges = [ir_text.edge(0, 0, 1, 0), ir_text.edge(1, 1, 2, 0)]
    model, _ = assert_agrees(ir_text.write(tmp_path, ir_text.net([ir_text.parameter(), relu, node], edges)))
    assert model.output_names == [("z", "q,r")]


def test_version_10_adds_layer_names(tmp_path):
    split = ir_text.layer(2, "Split", inputs=[(2,), ()], outputs=[(1,), (1,)], data='num_splits="2"')
    layers = [ir_text.parameter(), ir_text.const(1, "i64", (), 8, precision="I64"), split]
    layers += [ir_text.result(3, (1,)), ir_text.result(4, (1,))]
    edges = [ir_text.edge(0, 0, 2, 0), ir_text.edge(1, 0, 2, 1), ir_text.edge(2, 2, 3, 0), ir_text.edge(2, 3, 4, 0)]
    for version in (10, 11):
        path = ir_text.write(tmp_path, ir_text.net(layers, edges, version=version), bytes(8))
        model, oracle = assert_agrees(path)
        if version == 10:
            assert model.input_names == [("Parameter_0",)]
            assert model.output_names == [("Split_2.0",), ("Split_2.1",)]
            assert [port.names for port in oracle.outputs] == [{"Split_2.0"}, {"Split_2.1"}]


def test_weights_compressed_to_f16(tmp_path):
    x = parameter([2, 3])
    weight = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    product = ops.matmul(x, ops.constant(weight, name="weight"), False, False)
    alone = ops.constant(weight, name="alone")
    model, _ = assert_agrees(save(tmp_path, [product, alone], [x], compress=True))
    converts = [layer for layer in model.layers if layer.type == "Convert"]
    assert {layer.name for layer in converts} == {"weight", "alone"}
    for convert in converts:
        # If the constant is an output, its port has FP16, but the value is f32.
        assert convert.outputs[0].element_type is ElementType.F32
        assert convert.rt_info == {"decompression": {"version": "0"}}
        assert convert.inputs[0].element_type is ElementType.F16
        np.testing.assert_array_equal(convert.inputs[0].source.layer.constant.numpy(), weight.astype(np.float16))


def loop_model(tmp_path, trip_count=3):
    x, y, m = (parameter([32, 1, 10], name=n) for n in "xym")
    xi, yi, mb = (parameter([32, 1, 10], name=n) for n in ("xi", "yi", "mb"))
    iteration = parameter([], Type.i32, name="iteration")
    total = ops.multiply(ops.add(ops.add(xi, yi), ops.convert(iteration, "f32")), mb, name="total")
    condition = ops.result(ops.constant(True, dtype=bool), name="condition")
    results = [condition, ops.result(total, name="total_out")]
    body = ov.Model(results, [iteration, xi, yi, mb], "loop_body")
    loop = ops.loop(ops.constant(np.int64(trip_count)), ops.constant(True, dtype=bool))
    loop.set_function(body)
    loop.set_special_body_ports([0, 0])
    loop.set_sliced_input(xi, x.output(0), 0, 1, 1, -1, 1)
    loop.set_invariant_input(yi, y.output(0))
    loop.set_merged_input(mb, m.output(0), total.output(0))
    last = loop.get_iter_value(total.output(0), -1)
    all_of_them = loop.get_concatenated_slices(total.output(0), 0, 1, 1, -1, 1)
    return save(tmp_path, [last, all_of_them], [x, y, m])


def test_loop(tmp_path):
    model, _ = assert_agrees(loop_model(tmp_path))
    loop = by_type(model, "Loop")
    body = loop.bodies["body"]
    assert [layer.name for layer in body.parameters] == ["iteration", "xi", "yi", "mb"]
    entries = {entry.parameter.name: entry for entry in body.inputs}
    assert (entries["xi"].external, entries["xi"].axis) == (loop.inputs[2], 1)
    assert (entries["xi"].start, entries["xi"].end, entries["xi"].stride, entries["xi"].part_size) == (0, -1, 1, 1)
    assert (entries["yi"].external, entries["yi"].axis) == (loop.inputs[3], None)
    assert (entries["mb"].external, entries["mb"].axis) == (loop.inputs[4], None)
    assert (entries["iteration"].external, entries["iteration"].purpose) == (None, "current_iteration")
    outputs = {(entry.result.name, entry.axis): entry for entry in body.outputs}
    assert outputs["total_out", None].external is loop.outputs[0]
    assert outputs["total_out", 1].external is loop.outputs[1]
    assert outputs["condition", None].purpose == "execution_condition"
    assert outputs["condition", None].external is None
    (edge,) = body.back_edges
    assert (edge.result.name, edge.parameter.name) == ("total_out", "mb")
    assert edge.line > loop.line


def test_tensor_iterator_backwards(tmp_path):
    x, h = parameter([5, 1, 10], name="x"), parameter([1, 10], name="h")
    xi, hi = parameter([1, 1, 10], name="xi"), parameter([1, 10], name="hi")
    state = ops.tanh(ops.add(ops.squeeze(xi, ops.constant([0])), hi))
    row = ops.unsqueeze(state, ops.constant([0]))
    body = ov.Model([ops.result(state, name="state"), ops.result(row, name="row")], [xi, hi], "body")
    iterator = ops.tensor_iterator()
    iterator.set_function(body)
    iterator.set_sliced_input(xi, x.output(0), -1, -1, 1, 0, 0)
    iterator.set_merged_input(hi, h.output(0), state.output(0))
    last = iterator.get_iter_value(state.output(0), -1)
    rows = iterator.get_concatenated_slices(row.output(0), -1, -1, 1, 0, 0)
    model, _ = assert_agrees(save(tmp_path, [rows, last], [x, h]))
    layer = by_type(model, "TensorIterator")
    body = layer.bodies["body"]
    cut = next(entry for entry in body.inputs if entry.parameter.name == "xi")
    assert (cut.axis, cut.start, cut.end, cut.stride, cut.part_size) == (0, -1, 0, -1, 1)
    joined = next(entry for entry in body.outputs if entry.result.name == "row")
    assert (joined.axis, joined.start, joined.end, joined.stride) == (0, -1, 0, -1)
    assert joined.external is layer.outputs[1]
    assert [(edge.result.name, edge.parameter.name) for edge in body.back_edges] == [("state", "hi")]


def if_model(tmp_path, then_rank=1):
    x, condition = parameter([2] if then_rank else [], name="x"), parameter([], Type.boolean, name="condition")
    a = parameter([2] if then_rank else [], name="a")
    b = parameter([2] if then_rank else [], name="b")
    then_body = ov.Model([ops.result(ops.relu(a), name="then_out")], [a], "then")
    otherwise = ops.add(b, ops.constant(np.float32(1)))
    if then_rank == 2:
        otherwise = ops.unsqueeze(otherwise, ops.constant(0))
    else_body = ov.Model([ops.result(otherwise, name="else_out")], [b], "else")
    node = opset8.if_op(condition.output(0))
    node.set_then_body(then_body)
    node.set_else_body(else_body)
    node.set_input(x.output(0), a, b)
    output = node.set_output(then_body.results[0], else_body.results[0])
    return save(tmp_path, [output], [x, condition])


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_if(tmp_path, rank):
    model, _ = assert_agrees(if_model(tmp_path, rank))
    layer = by_type(model, "If")
    assert layer.outputs[0].dims == [(), (2,), None][rank]
    for name in ("then_body", "else_body"):
        body = layer.bodies[name]
        assert body.inputs[0].external is layer.inputs[1]
        assert body.outputs[0].external is layer.outputs[0]
        assert body.outputs[0].result.name == name.replace("body", "out")
        assert not body.back_edges


def test_old_port_maps_count_outputs_from_0(tmp_path):
    """Model Optimizer numbered an If's outputs separately, not by the ids of the output ports."""
    path = if_model(tmp_path)
    text = path.read_text()
    assert text.count('<output external_port_id="2"') == 2
    text = text.replace('<output external_port_id="2"', '<output external_port_id="0"')
    path.write_text(text)
    model, _ = assert_agrees(path)
    layer = by_type(model, "If")
    assert layer.bodies["else_body"].outputs[0].external is layer.outputs[0]


def test_version_10_dimensions_around_loops_are_ignored(tmp_path):
    path = loop_model(tmp_path)
    path.write_text(path.read_text().replace('version="11"', 'version="10"'))
    model = read(path)
    loop = by_type(model, "Loop")
    assert [port.dims for port in loop.outputs] == [(None, None, None)] * 2
    assert by_type(loop.bodies["body"], "Add").outputs[0].dims == (None, None, None)
    assert loop.bodies["body"].parameters[1].outputs[0].dims == (32, 1, 10)
    assert model.parameters[0].outputs[0].dims == (32, 1, 10)


def test_back_edges_of_version_10_name_ports(tmp_path):
    path = loop_model(tmp_path)
    text = path.read_text()
    path.write_text(
        text.replace(
            '<edge from-layer="11" to-layer="3" />', '<edge from-layer="11" from-port="0" to-layer="3" to-port="0" />'
        )
    )
    assert len(by_type(read(path), "Loop").bodies["body"].back_edges) == 1


def test_state(tmp_path):
    x = parameter([2])
    value = opset6.read_value(x, "state", Type.f32, PartialShape([2]))
    assign = opset6.assign(ops.add(value, x), "state")
    path = save(tmp_path, [value], [x], sinks=[assign])
    model, _ = assert_agrees(path)
    expected = {"variable_id": "state", "variable_type": "f32", "variable_shape": "2"}
    assert by_type(model, "ReadValue").attributes == expected
    assert by_type(model, "Assign").attributes == {"variable_id": "state"}


def test_model_and_layer_information(tmp_path):
    x = parameter([2])
    model = ov.Model([ops.result(ops.relu(x, name="y"))], [x], "net")
    model.set_rt_info("1", ["framework", "a", "b"])
    model.set_rt_info("text", "note")
    path = tmp_path / "model.xml"
    ov.save_model(model, path)
    assert read(path).rt_info["framework"] == {"a": {"b": "1"}}
    assert read(path).rt_info["note"] == "text"


def test_information_of_any_form_is_kept(tmp_path):
    info = (
        '<rt_info><attribute name="fused_names" version="0" value="a,b"/><custom name="c" value="d"/>'
        '<custom name="n"><custom name="m" value="1"/></custom><attribute name="twice" version="0"/>'
        '<attribute name="twice" version="1"/><empty/></rt_info>'
    )
    expected = {
        "fused_names": {"version": "0", "value": "a,b"},
        "c": "d",
        "n": {"m": "1"},
        "twice": [{"version": "0"}, {"version": "1"}],
        "empty": {},
    }
    port = f'<port id="0" precision="FP32" names="a"><dim>2</dim>{info}</port>'
    data = '<data shape="2" element_type="f32" mine="x" PrimitivesPriority="cpu:a"/>'
    node = ir_text.layer(0, "Parameter", attributes=' more="1"', extra=f"{data}<output>{port}</output>{info}")
    meta = '<meta_data><MO_version value="2021.4"/><cli_parameters><data_type value="FP16"/></cli_parameters></meta_data>'
    meta += "<quantization_parameters><config>{text}</config>"
    meta += (
        '<mixed a="1">t<b value="2"/></mixed></quantization_parameters><framework_meta><batch value="1"/></framework_meta>'
    )
    text = ir_text.net([node, ir_text.result(1)], [ir_text.edge(0, 0, 1, 0)], extra=info + meta, version=10)
    model = read(ir_text.write(tmp_path, text))
    layer = model.parameters[0]
    assert layer.rt_info == layer.outputs[0].rt_info == model.rt_info == expected
    assert layer.attributes["mine"] == "x" and layer.extra == {"more": "1"}
    assert model.meta_data == {"MO_version": "2021.4", "cli_parameters": {"data_type": "FP16"}}
    assert model.meta["quantization_parameters"] == {"config": "{text}", "mixed": {"a": "1", "b": "2", "#text": "t"}}
    assert model.meta["framework_meta"] == {"batch": "1"}


def test_early_files_of_version_10_have_constant_types_in_ports(tmp_path):
    port = f'<output><port id="1" precision="I64">{ir_text.dims((2,))}</port></output>'
    node = ir_text.layer(0, "Const", data='offset="8" size="16"', extra=port)
    text = ir_text.net([node, ir_text.result(1)], [ir_text.edge(0, 1, 1, 0)], version=10)
    path = ir_text.write(tmp_path, text, np.arange(3).tobytes())
    array = read(path).layers[0].constant.numpy()
    assert (array.dtype, array.tolist()) == (np.int64, [1, 2])


def test_layers_in_any_order_and_with_any_ids(tmp_path):
    layers = [ir_text.result(7), ir_text.layer(900, "ReLU", inputs=[(2,)], outputs=[(2,)]), ir_text.parameter(13)]
    edges = [ir_text.edge(900, 1, 7, 0), ir_text.edge(13, 0, 900, 0)]
    model, _ = assert_agrees(ir_text.write(tmp_path, ir_text.net(layers, edges)))
    assert [layer.id for layer in model.layers] == [13, 900, 7]


def test_a_model_without_constants_needs_no_weights(tmp_path):
    text = ir_text.net([ir_text.parameter(), ir_text.result(1)], [ir_text.edge(0, 0, 1, 0)])
    model = read(str(ir_text.write(tmp_path, text, None)))
    assert (model.weights_path, len(model.weights)) == (None, 0)


def test_the_weights_may_be_anywhere(tmp_path):
    path = save(tmp_path, [ops.constant(np.arange(3))], [])
    elsewhere = tmp_path / "weights"
    path.with_suffix(".bin").rename(elsewhere)
    model = read(path, elsewhere)
    assert by_type(model, "Const").constant.numpy().tolist() == [0, 1, 2]
    assert model.weights_path == elsewhere


def test_a_chain_of_100_000_layers(tmp_path):
    count = 100_000
    layers = [ir_text.parameter(0)]
    layers += [ir_text.layer(i, "ReLU", inputs=[(2,)], outputs=[(2,)]) for i in range(1, count)]
    layers.append(ir_text.result(count))
    edges = [ir_text.edge(i, min(i, 1), i + 1, 0) for i in range(count)]
    path = ir_text.write(tmp_path, ir_text.net(reversed(layers), edges))
    started = time.process_time()
    model = read(path)
    assert time.process_time() - started < 20  # 2 s on an idle machine
    assert [layer.id for layer in model.layers] == list(range(count + 1))
    assert model.layers[-2].line == 2 + path.read_text().split(f'<layer id="{count - 1}"')[0].count("\n") - 1
