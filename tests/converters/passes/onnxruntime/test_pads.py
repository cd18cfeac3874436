"""Pads before pooling agree with OpenVINO, and pads that ONNX Runtime may fuse are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

from converters.openvino import convert
from converters.passes.onnxruntime import KeepPads
from tests.comparison import assert_all_close
from tests.conformance.check import run_model
from tests.conformance.oracle import Oracle, OracleError
from tests.converters.passes.graphs import floats, graph, rewritten


def _max_pool(ops, x):
    return ops.max_pool(x, [1, 1], [1, 1], [0, 0], [0, 0], [3, 3]).output(0)


def _avg_pool(ops, x):
    return ops.avg_pool(x, [1, 1], [0, 0], [0, 0], [3, 3], True).output(0)


def _conv(ops, x):
    weights = np.linspace(-1, 1, 2 * 2 * 9, dtype=np.float32).reshape(2, 2, 3, 3)
    return ops.convolution(x, ops.constant(weights), [1, 1], [0, 0], [0, 0], [1, 1]).output(0)


@pytest.mark.parametrize("opset", [11, 12, 13, 17, 18, 21])
@pytest.mark.parametrize(
    ("following", "dtype", "relu", "kept"),
    [
        (_max_pool, np.float32, False, True),
        (_max_pool, np.float64, False, True),
        (_max_pool, np.float32, True, False),
        (_avg_pool, np.float32, False, True),
        (_conv, np.float32, False, None),  # the Pad is a part of the convolution
    ],
    ids=["max", "max-float64", "max-of-relu", "average", "convolution"],
)
def test_a_pad_of_zeros(following, dtype: type, relu: bool, kept: bool | None, opset: int, oracle: Oracle, tmp_path: Path):
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([1, 2, 6, 6], dtype)
    data = ops.relu(x) if relu else x
    padded = ops.pad(data, ops.constant([0, 0, 1, 2]), ops.constant([0, 0, 2, 1]), "constant", ops.constant(dtype(0)))
    ov.save_model(ov.Model([following(ops, padded)], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    runs = [[np.random.default_rng(0).standard_normal((1, 2, 6, 6)).astype(dtype) - 1]]

    model, _ = convert(tmp_path / "model.xml", tmp_path / "model.onnx", opset=opset)

    expected = oracle.run(tmp_path / "model.xml", runs, names=("cpu",))["cpu"]
    assert not isinstance(expected, OracleError)
    assert_all_close(run_model(tmp_path / "model.onnx", runs, "none"), expected, 1e-5, 1e-6, "ONNX Runtime and OpenVINO")
    pads = [node for node in model.graph.node if node.op_type == "Pad"]
    assert [len(node.input) == 4 for node in pads] == ([] if kept is None else [kept and opset >= 18])
    follows = "Clip" if opset >= 12 else "Max"
    assert (follows in {node.op_type for node in model.graph.node}) == (bool(kept) and opset < 18)
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize(
    ("emit", "kept"),
    [
        (lambda op, x: _max(op, op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1])), True),
        (lambda op, x: _max(op, op.Pad(op.Relu(x), [0, 0, 1, 1, 0, 0, 1, 1])), False),
        (lambda op, x: _max(op, op.Pad(op.Relu(x), [0, 0, 3, 1, 0, 0, 1, 1])), True),  # a window of zeros only
        (lambda op, x: _average(op, op.Cast(op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), to=1)), True),
        # not negative, but this is not proven
        (lambda op, x: _max(op, op.Pad(op.Sigmoid(x), [0, 0, 1, 1, 0, 0, 1, 1])), True),
        (lambda op, x: _max(op, op.Pad(op.Relu(x), [0, 0, 1, 1, 0, 0, 1, 1], 7.0)), None),
        (lambda op, x: _max(op, op.Pad(op.Relu(x), [0, 1, 1, 1, 0, 0, 1, 1])), None),
        (lambda op, x: _max(op, op.Pad(op.Relu(x), [0, 0, -1, 1, 0, 0, 1, -1])), None),
        (lambda op, x: _max(op, op.Pad(op.Relu(x), [0, 0, 1, 1, 0, 0, 1, 1]), dilations=[2, 2]), None),
        (lambda op, x: _max(op, op.Pad(op.Relu(x), [0, 0, 1, 1, 0, 0, 1, 1]), pads=[2, 2, 2, 2]), None),
        (lambda op, x: _average(op, op.Pad(op.Relu(x), [0, 0, 1, 1, 0, 0, 1, 1])), True),
        (lambda op, x: _average(op, op.Pad(x, _at_run_time(op, x))), True),
        (lambda op, x: op.Relu(op.Pad(x, _at_run_time(op, x))), False),
        (lambda op, x: op.Relu(op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1])), False),
        (lambda op, x: _max(op, op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1], mode="edge")), False),
        (lambda op, x: _max(op, op.Pad(x, [1, 1, 1, 1], None, [2, 3])), False),  # it has axes
    ],
)
@pytest.mark.parametrize("opset", [17, 21])
def test_conditions(emit, kept: bool | None, opset: int) -> None:
    """A pad that is kept for fusing gives the same result after ONNX Runtime fuses it."""
    model = graph(emit, floats("x", 2, 2, 6, 6))
    assert KeepPads(opset)(model).modified is kept or kept is None
    if opset == 21:
        rewritten(emit, floats("x", 2, 2, 6, 6), by=[KeepPads(21)], optimized=True)


@pytest.mark.parametrize(
    ("emit", "operator", "kept", "of_another"),
    [
        (lambda op, x: _max(op, op.Pad(op.Relu(x), [0, 0, 1, 1, 0, 0, 1, 1])), "Relu", False, True),
        (lambda op, x: _max(op, op.Cast(op.Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), to=1)), "Cast", True, False),
    ],
)
def test_the_domain_of_neighbors(emit, operator: str, kept: bool, of_another: bool) -> None:
    for domain, expected in (("", kept), ("another", of_another)):
        model = graph(emit, floats("x", 2, 2, 6, 6))
        for node in model.graph:
            if node.op_type == operator:
                node.domain = domain
        assert KeepPads(21)(model).modified is expected


def test_pads_of_dimensions_that_a_session_fixes() -> None:
    """ONNX Runtime folds them to constants."""
    model = graph(lambda op, x: _average(op, op.Pad(x, _at_run_time(op, x))), floats("x", 1, 1, None, None))
    KeepPads(21)(model)
    proto = ir.to_proto(model)
    for axis, name in ((2, "height"), (3, "width")):
        proto.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("height", 2)
    options.add_free_dimension_override_by_name("width", 2)
    x = np.ones((1, 1, 2, 2), np.float32)
    for chosen in (ort.SessionOptions(), options):
        (got,) = ort.InferenceSession(proto.SerializeToString(), chosen).run(None, {"x": x})
        np.testing.assert_allclose(
            got.ravel(), np.float32([1, 2, 2, 1, 2, 4, 4, 2, 2, 4, 4, 2, 1, 2, 2, 1]) / 9, rtol=1e-6, strict=True
        )


def _at_run_time(op, x):
    """Return half the height and width before them, and the same after them."""
    inner = op.Min(op.Shape(x, start=2), 2)
    return op.Concat([0, 0], inner, [0, 0], inner, axis=0)


def _max(op, x, **attributes):
    return op.MaxPool(x, kernel_shape=[3, 3], **attributes)


def _average(op, x):
    return op.AveragePool(x, kernel_shape=[3, 3])
