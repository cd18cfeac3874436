"""Scale and bias after a normalization become its inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.passes.normalizations import FuseScaleAndBias
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import FORMS, converted, operators, optimised
from tests.converters.passes.graphs import floats, rewritten

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((2, 5, 8)) * 3 + 7).astype(np.float32)
PICTURE = (RNG.standard_normal((2, 6, 4, 5)) * 3 + 7).astype(np.float32)


def _numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def _model(shape: list[int], axes: list[int], *behind: tuple[str, np.ndarray], **options):
    """Build a normalization followed by arithmetic."""
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter(shape, np.float32)
    mode = options.get("eps_mode", "inside_sqrt")
    result = ops.mvn(x, ops.constant(np.array(axes)), options.get("variance", True), 1e-5, mode)
    for operation, array in behind:
        result = getattr(ops, operation)(result, ops.constant(array))
    return ov.Model([result], [x])


@pytest.mark.parametrize("form", FORMS)
def test_layer_normalization(form: str, oracle: Oracle, tmp_path: Path) -> None:
    model = _model([-1, -1, 8], [-1], ("multiply", _numbers(1, 1, 8)), ("add", _numbers(8)))
    found = operators(converted(model, [X], oracle, tmp_path, form))
    assert ("LayerNormalization" in found) == (form != "opset-13")
    if form in ("plain", "halves", "reference"):
        assert found == ["LayerNormalization"]


def test_many_features(oracle: Oracle, tmp_path: Path) -> None:
    """16-bit parameters that are too large to fold."""
    model = _model([1, 2, 6000], [2], ("multiply", _numbers(1, 1, 6000)), ("add", _numbers(1, 1, 6000)))
    found = operators(converted(model, [_numbers(1, 2, 6000)], oracle, tmp_path, "halves"))
    assert [name for name in found if name not in ("Cast", "Reshape", "Expand")] == ["LayerNormalization"], found


@pytest.mark.parametrize("axes", [[1, 2], [-1, -2]])
def test_several_axes(axes: list[int], oracle: Oracle, tmp_path: Path) -> None:
    model = _model([-1, 5, 8], axes, ("multiply", _numbers(5, 8)), ("add", _numbers(1, 5, 8)))
    assert operators(converted(model, [X], oracle, tmp_path)) == ["LayerNormalization"]


def test_instance_normalization(oracle: Oracle, tmp_path: Path) -> None:
    model = _model([-1, 6, -1, -1], [2, 3], ("multiply", _numbers(1, 6, 1, 1)), ("add", _numbers(6, 1, 1)))
    assert operators(converted(model, [PICTURE], oracle, tmp_path)) == ["InstanceNormalization"]


def test_a_bias_without_a_scale(oracle: Oracle, tmp_path: Path) -> None:
    model = _model([-1, 5, 8], [2], ("add", _numbers(1, 1, 8)), ("multiply", _numbers(1, 1, 8)))
    assert operators(converted(model, [X], oracle, tmp_path)) == ["LayerNormalization", "Mul"]


@pytest.mark.parametrize("shape", [(1, 5, 1), (5, 8), (1, 1, 1, 8), (1,)], ids=str)
def test_values_that_are_not_scales(shape: tuple[int, ...], oracle: Oracle, tmp_path: Path) -> None:
    model = _model([-1, 5, 8], [2], ("multiply", _numbers(*shape)))
    more = ["Unsqueeze"] if len(shape) > 3 else []
    assert operators(converted(model, [X], oracle, tmp_path)) == ["LayerNormalization", "Mul", *more]


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("shape", [(1, 5, 1), (5, 8), (1, 1, 1, 8), (1,), (2, 1, 1), ()], ids=str)
def test_values_that_are_not_biases(shape: tuple[int, ...], scaled: bool, oracle: Oracle, tmp_path: Path) -> None:
    scale = [("multiply", _numbers(8))] if scaled else []
    model = _model([2, 5, 8], [2], *scale, ("add", _numbers(*shape)))
    more = ["Unsqueeze"] if len(shape) > 3 else []
    assert operators(converted(model, [X], oracle, tmp_path)) == ["Add", "LayerNormalization", *more]


def test_values_that_are_not_biases_of_instances(oracle: Oracle, tmp_path: Path) -> None:
    model = _model([2, 6, 4, 5], [2, 3], ("multiply", _numbers(6, 1, 1)), ("add", _numbers(4, 1)))
    assert operators(converted(model, [PICTURE], oracle, tmp_path)) == ["Add", "InstanceNormalization"]


def test_other_normalizations(oracle: Oracle, tmp_path: Path) -> None:
    for number, model in enumerate(
        (
            _model([2, 5, 8], [1]),
            _model([2, 5, 8], [2], eps_mode="outside_sqrt"),
            _model([2, 5, 8], [2], variance=False),
            _model([2, 5, -1], [2]),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert "LayerNormalization" not in operators(converted(model, [X], oracle, folder))


@pytest.mark.parametrize("used_again", [False, True])
def test_a_normalized_sum(used_again: bool, oracle: Oracle, tmp_path: Path) -> None:
    """ONNX Runtime must not fuse it into SkipLayerNormalization."""
    import openvino as ov
    from openvino import opset14 as ops

    x, y = ops.parameter([1, 5, 8], np.float32), ops.parameter([1, 5, 8], np.float32)
    total = ops.add(x, y)
    normal = ops.mvn(total, ops.constant(np.array([2])), True, 1e-5, "inside_sqrt")
    scaled = ops.add(ops.multiply(normal, ops.constant(_numbers(1, 1, 8))), ops.constant(_numbers(1, 1, 8)))
    model = ov.Model([scaled, ops.relu(total)] if used_again else [scaled], [x, y])
    found = operators(converted(model, [X[:1], X[1:]], oracle, tmp_path))
    assert found == (["Add", "LayerNormalization", "Relu"] if used_again else ["LayerNormalization", "Sum"])
    assert "SkipLayerNormalization" not in optimised(tmp_path / "model.onnx")


def _normal(op, x, ones: float = 1.0, bias: np.ndarray | None = None, **attributes):
    return op.LayerNormalization(
        x, op.const(np.full(6, ones, np.float32)), None if bias is None else op.const(bias), **attributes
    )


@pytest.mark.parametrize(
    ("emit", "left"),
    [
        (lambda op, x: op.Mul(_normal(op, x), _numbers(6)), 0),
        (lambda op, x: op.Mul(_numbers(1, 1, 6), _normal(op, x)), 0),
        (lambda op, x: op.Mul(_normal(op, x, epsilon=0.1), _numbers(6)), 0),
        (lambda op, x: op.Add(op.Mul(_normal(op, x), _numbers(6)), _numbers(1, 6)), 0),
        (lambda op, x: op.Add(_normal(op, x, ones=2), _numbers(6)), 0),
        (lambda op, x: op.Mul(_normal(op, x, ones=2), _numbers(6)), 1),  # it has a scale
        (lambda op, x: op.Mul(_normal(op, x, bias=_numbers(6)), _numbers(6)), 1),  # the bias would be scaled
        (lambda op, x: op.Add(_normal(op, x, bias=_numbers(6)), _numbers(6)), 1),  # it has a bias
        (lambda op, x: op.Mul(_normal(op, x), np.float32(3)), 1),  # one number for all
        (lambda op, x: op.Mul(_normal(op, x), _numbers(5, 1)), 1),  # per row
        (lambda op, x: op.Mul(_normal(op, x), _numbers(5, 6)), 1),
        (lambda op, x: op.Mul(_normal(op, x), _numbers(1, 1, 1, 6)), 1),  # it adds a dimension
        (lambda op, x: [op.Mul(normal := _normal(op, x), _numbers(6)), op.Relu(normal)], 1),
    ],
)
def test_conditions_of_layer_normalization(emit, left: int) -> None:
    found = rewritten(emit, floats("x", 2, 5, 6), by=[FuseScaleAndBias()])
    assert found.count("Mul") + found.count("Add") == left


@pytest.mark.parametrize(("size", "left"), [(6, 0), (None, 1)])
def test_a_bias_of_unknown_size_may_broadcast(size: int | None, left: int) -> None:
    """Two unknown sizes may differ."""
    found = rewritten(
        lambda op, x, scale, bias: op.Add(op.LayerNormalization(x, scale), bias),
        floats("x", 2, 6), floats("scale", size), floats("bias", size),
        by=[FuseScaleAndBias()],
        numbers=[_numbers(2, 6), _numbers(6), _numbers(1 if size is None else 6)],
    )  # fmt: skip
    assert found.count("Add") == left


@pytest.mark.parametrize(
    ("shape", "left"),
    [
        ((4, 1, 1), 0),
        ((1, 4, 1, 1), 0),
        ((4,), 1),
        ((4, 1), 1),
        ((2, 1, 1, 1), 1),
        ((1, 1, 1), 1),
        ((4, 4, 4), 1),
        ((2, 4, 1, 1), 1),
    ],
    ids=str,
)
def test_conditions_of_instance_normalization(shape: tuple[int, ...], left: int) -> None:
    """The scale of channels, not of another axis with the same length."""
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    found = rewritten(
        lambda op, x: op.Mul(op.InstanceNormalization(x, op.const(ones), op.const(zeros)), _numbers(*shape)),
        floats("x", 2, 4, 4, 4),
        by=[FuseScaleAndBias()],
    )
    assert found.count("Mul") == left
