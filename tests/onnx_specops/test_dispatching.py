"""Models with several bodies of an operator, in runtimes with and without support for overloads."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_specops
from onnx_specops import dispatching
from onnx_specops.dispatching import OVERLOAD
from onnx_specops.runtime.reference import reference_evaluator

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
I = np.array([0, 2, 3, 3])  # noqa: E741
O = np.array([0, 0, 3])  # noqa: E741


def bags() -> onnx.ModelProto:
    """Return a model with nodes whose bodies differ in types, ranks, omitted inputs, and constant numbers."""
    constants = {
        "table": TABLE,
        "halves": TABLE.astype(np.float16),
        "cube": np.stack([TABLE, -TABLE], 1),
        "long": I,
        "short": I.astype(np.int32),
        "long_offsets": O,
        "short_offsets": O.astype(np.int32),
        "minus_one": np.array(-1),
        "one": np.array(1),
        "weights": np.array([1, 2, 3, 4], np.float32),
    }
    calls = [
        ("table", "long", "long_offsets"),
        ("halves", "long", "long_offsets"),
        ("table", "short", "short_offsets"),
        ("cube", "long", "long_offsets", "one"),
        ("table", "long", "long_offsets", "one", "weights"),
        ("table", "long", "long_offsets", "minus_one", "weights"),
        ("table", "long", "long_offsets"),
    ]
    make = onnx.helper
    nodes = [
        make.make_node("EmbeddingBagOffsetsSum", call, [f"y{i}"], domain=onnx_specops.DOMAIN) for i, call in enumerate(calls)
    ]
    outputs = []
    for i, (table, *_) in enumerate(calls):
        array = constants[table]
        dtype = make.np_dtype_to_tensor_dtype(array.dtype)
        outputs.append(make.make_tensor_value_info(f"y{i}", dtype, [3, *array.shape[1:]]))
    graph = make.make_graph(
        nodes, "bags", [], outputs, [onnx.numpy_helper.from_array(np.array(a), name) for name, a in constants.items()]
    )
    imports = [make.make_opsetid("", 21), make.make_opsetid(onnx_specops.DOMAIN, onnx_specops.OPSET_VERSION)]
    return make.make_model(graph, opset_imports=imports, ir_version=10)


def without_overloads(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model as a runtime without ``overload`` sees it: the last function of a name replaces all."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    last = {(function.domain, function.name): function for function in model.functions}
    del copy.functions[:]
    copy.functions.extend(last.values())
    for holder in (copy.graph, *copy.functions):
        for node in holder.node:
            node.overload = ""
    for function in copy.functions:
        function.overload = ""
    return copy


def results(model: onnx.ModelProto) -> list[np.ndarray]:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {})


def test_a_runtime_without_overloads_selects_the_right_bodies():
    model = onnx_specops.add_bodies(bags())
    onnx.checker.check_model(model, full_check=True)
    assert [function.overload for function in model.functions] == ["", "1", "2", "3", "4", "5", OVERLOAD]
    expected = results(model)
    np.testing.assert_array_equal(expected[0], [[0, 0, 0], [15, 18, 21], [9, 10, 11]])
    for got, wanted in zip(results(without_overloads(model)), expected, strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("kernels", ["native", "python", "none"])
def test_kernels_and_the_reference_evaluator_ignore_the_dispatcher(kernels: str):
    model = onnx_specops.add_bodies(bags())
    session = onnx_specops.InferenceSession(model.SerializeToString(), kernels=kernels)
    expected = results(model)
    reference = reference_evaluator(model).run(None, {})
    for got, other, wanted in zip(session.run(None, {}), reference, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(other, wanted)


def test_bodies_are_replaced():
    once = onnx_specops.add_bodies(bags())
    twice = onnx_specops.add_bodies(once)
    assert twice.graph.node == once.graph.node
    assert [function.node for function in twice.functions] == [function.node for function in once.functions]


def test_a_single_body_needs_no_dispatcher():
    model = bags()
    del model.graph.node[1:], model.graph.output[1:]
    made = onnx_specops.add_bodies(model)
    assert [function.overload for function in made.functions] == [""]
    assert not made.graph.node[0].attribute


def test_too_many_bodies_are_an_error_in_a_runtime_without_overloads(monkeypatch):
    monkeypatch.setattr(dispatching, "_MOST_NODES", 100)
    model = onnx_specops.add_bodies(bags())
    onnx.checker.check_model(model, full_check=True)
    assert len(results(model)) == 7
    with pytest.raises(Exception, match="OnnxRuntime_1_27_or_the_plugin_or_opset_20"):
        results(without_overloads(model))
