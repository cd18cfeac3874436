"""Shapes that networks compute from run-time dimensions: OpenVINO's results at sizes that a careless rule would break."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from converters.openvino import convert

ov = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset13")

_EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def _size(x, axis):
    return ops.gather(ops.shape_of(x), ops.constant([axis]), ops.constant(0))


def _numbers(*values):
    return ops.constant(list(values))


def _sizes(*parts):
    return ops.concat(list(parts), 0)


def _floats(name, *dims):
    x = ops.parameter([-1 if dim is None else dim for dim in dims], np.float32, name=name)
    x.output(0).tensor.set_names({name})
    return x


def _rest(x):
    return [5 if dim.is_dynamic else dim.get_length() for dim in list(x.get_partial_shape())[1:]]


def _windows():
    """Four windows of an image as a batch, and the images again."""
    x = _floats("x", None, 3, 4, 6)
    apart = ops.transpose(ops.reshape(x, _sizes(_size(x, 0), _numbers(3, 2, 2, 2, 3)), True), _numbers(0, 2, 4, 1, 3, 5))
    windows = ops.relu(ops.reshape(apart, _sizes(ops.multiply(_size(x, 0), _numbers(4)), _numbers(-1, 2, 3)), False))
    turned = ops.transpose(windows, _numbers(0, 2, 1, 3))
    batch = ops.divide(_size(turned, 0), _numbers(4))
    return [ops.reshape(turned, _sizes(batch, _numbers(4, -1, 3)), False)], [x]


def _own_dimension():
    """The special 0 may be an own dimension that is 0 at run time."""
    x = _floats("x", None, 2, 3)
    return [ops.reshape(ops.relu(x), _sizes(_size(x, 0), _numbers(-1)), True)], [x]


def _even_rows():
    """Half the number of rows, rounded down, is not always half the number of rows."""
    x = _floats("x", None, None)
    half = ops.divide(_size(x, 0), _numbers(2))
    even = ops.slice(x, _numbers(0), ops.multiply(half, _numbers(2)), _numbers(1), _numbers(0))
    return [ops.reshape(even, _sizes(half, _numbers(2), _size(x, 1)), False)], [x]


def _joined():
    """The length of two parts is their sum."""
    x, y = _floats("x", None, None), _floats("y", None, None)
    whole = ops.concat([x, y], 0)
    length = ops.add(_size(x, 0), _size(y, 0))
    return [ops.reshape(ops.relu(whole), _sizes(length, _size(x, 1), _numbers(1)), False)], [x, y]


def _thirds():
    """Three times a tensor, and the last two thirds of it by the rounded quotient of its length."""
    x = _floats("x", None, None)
    whole = ops.concat([x, ops.relu(x), x], 0)
    third = ops.divide(_size(whole, 0), _numbers(3))
    parts = ops.variadic_split(whole, ops.constant(0), _sizes(third, third, _numbers(-1)))
    sizes = _sizes(_size(x, 0), _size(x, 1), _numbers(1))
    return [ops.reshape(ops.relu(part), sizes, False) for part in parts.outputs()[1:]], [x]


def _quarters():
    """The length of three times a tensor is not always a multiple of four."""
    x = _floats("x", None, None)
    whole = ops.concat([x, x, x], 0)
    quarter = ops.divide(_size(whole, 0), _numbers(4))
    parts = ops.variadic_split(whole, ops.constant(0), _sizes(quarter, _numbers(-1)))
    rest = ops.subtract(_size(whole, 0), quarter)
    return [ops.reshape(parts.output(1), _sizes(rest, _numbers(1), _size(x, 1)), False)], [x]


def _names_like_expressions():
    """An input may be named as the size of another one would be."""
    x, y = _floats("x_0*2", None, 4), _floats("x", None, 4)
    rows = ops.multiply(_size(y, 0), _numbers(2))
    return [ops.broadcast(x, _sizes(rows, _numbers(4))), ops.relu(y)], [x, y]


@pytest.mark.parametrize(
    ("emit", "sizes", "is_constant"),
    [
        (_windows, [[1], [2], [3]], True),
        (_own_dimension, [[0], [1], [5]], True),
        (_even_rows, [[0], [1], [4], [5]], False),
        (_joined, [[0, 0], [0, 2], [3, 0], [1, 2]], True),
        (_thirds, [[0], [1], [2]], True),
        (_quarters, [[0], [1], [2], [4]], False),
        (_names_like_expressions, [[2, 1], [1, 3], [1, 0]], False),
    ],
)
@pytest.mark.parametrize("target", ["onnxruntime", "standard"])
def test_shapes(emit, sizes, is_constant, target, tmp_path):
    results, inputs = emit()
    model = ov.Model(results, inputs)
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    path = tmp_path / "model.onnx"
    convert(tmp_path / "model.xml", path, target=target)
    compiled = ov.Core().compile_model(model, "CPU", _EXACT)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    graph = onnx.load(path).graph
    constants = {value.name for value in graph.initializer}
    targets = [node.input[1] for node in graph.node if node.op_type in ("Expand", "Reshape")]
    assert constants.issuperset(targets) == is_constant
    for given in sizes:
        arrays = [
            np.random.default_rng(size).standard_normal([size, *_rest(x)]).astype(np.float32)
            for size, x in zip(given, inputs, strict=True)
        ]
        expected = list(compiled(arrays).values())
        got = session.run(None, {i.name: array for i, array in zip(session.get_inputs(), arrays, strict=True)})
        for one, other in zip(got, expected, strict=True):
            assert one.shape == other.shape and np.array_equal(one, other)
