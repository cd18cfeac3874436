"""Nodes whose ONNX Runtime kernels are missing or wrong get another form; other nodes are unchanged."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime.doubles import ActivationsOfDoubles
from converters.passes.onnxruntime.local_response import LRNOfFourDimensions
from converters.passes.onnxruntime.signs import SignInFloat32
from converters.passes.onnxruntime.splits import EmptySplit
from onnx_specops.building import new_value
from onnx_specops.kernel_types import insert_casts
from tests.converters.passes.graphs import floats, graph, operators, run

D = ir.DataType


@pytest.mark.parametrize(
    ("operator", "dtype", "found"),
    [
        ("HardSwish", D.DOUBLE, ["HardSigmoid", "Mul"]),
        ("HardSwish", D.FLOAT, ["HardSwish"]),
        ("HardSwish", D.FLOAT16, ["HardSwish"]),
        ("Mish", D.DOUBLE, ["Mul", "Softplus", "Tanh"]),
        ("Mish", D.FLOAT, ["Mish"]),
    ],
)
def test_activations_of_doubles(operator: str, dtype: ir.DataType, found: list[str]) -> None:
    model = graph(lambda op, x: op.node(operator, x), new_value(dtype, [5], "x"))
    ActivationsOfDoubles()(model)
    assert operators(model) == found
    if dtype == D.DOUBLE:
        insert_casts(model.graph)
        x = np.array([-4, -1, 0, 2, 5], np.float64)
        expected = x * np.clip(x / 6 + 0.5, 0, 1) if operator == "HardSwish" else x * np.tanh(np.log1p(np.exp(x)))
        np.testing.assert_allclose(run(model, x)[0], expected, rtol=1e-6, strict=True)


@pytest.mark.parametrize(("dtype", "found"), [(D.FLOAT16, True), (D.BFLOAT16, True), (D.FLOAT, False), (D.INT32, False)])
def test_sign(dtype: ir.DataType, found: bool) -> None:
    """NaN is propagated."""
    model = graph(lambda op, x: op.Sign(x), new_value(dtype, [4], "x"))
    SignInFloat32()(model)
    assert operators(model) == (["Cast", "Cast", "Sign"] if found else ["Sign"])
    if dtype == D.FLOAT16:
        got = run(model, np.array([-2, 0, 3, np.nan], np.float16))[0]
        np.testing.assert_array_equal(got, np.array([-1, 0, 1, np.nan], np.float16), strict=True)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 3, 4, 5), (2, 3, 4, 5, 2), (0, 3, 4)], ids=str)
def test_lrn(shape: tuple[int, ...]) -> None:
    model = graph(lambda op, x: op.LRN(x, size=3, alpha=0.5, beta=0.75, bias=2.0), floats("x", *shape))
    LRNOfFourDimensions()(model)
    assert ("Reshape" in operators(model)) is (len(shape) != 4)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    padded = np.pad(x * x, [(0, 0), (1, 1), *[(0, 0)] * (len(shape) - 2)])
    squares = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    np.testing.assert_allclose(run(model, x)[0], x / (2 + 0.5 / 3 * squares) ** 0.75, rtol=1e-5, strict=True)


@pytest.mark.parametrize(
    ("alpha", "beta", "size", "found"),
    [
        (0.5, 0.75, 3, False),
        (0.5, 0.75, 4, True),
        (0.0, 0.75, 3, True),
        (-0.1, 0.75, 9, True),
        (0.5, 0.0, 3, True),
        (0.5, -1.0, 3, True),
    ],
)
def test_lrn_of_other_attributes(alpha: float, beta: float, size: int, found: bool) -> None:
    """ONNX does not restrict them."""
    x = np.random.default_rng(0).uniform(-1, 1, (2, 5, 3, 2)).astype(np.float32)
    model = graph(lambda op, x: op.LRN(x, size=size, alpha=alpha, beta=beta, bias=2.0), floats("x", *x.shape))
    LRNOfFourDimensions()(model)
    assert ("AveragePool" in operators(model)) is found
    padded = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
    squares = np.sum([padded[:, k : k + 5] for k in range(size)], axis=0)
    np.testing.assert_allclose(run(model, x)[0], x / (2 + alpha / size * squares) ** beta, rtol=1e-5, strict=True)


def test_attributes_of_lrn_are_not_rounded_to_float16() -> None:
    """alpha / size would be 0 in float16."""
    x = np.linspace(-60000, 60000, 2 * 6).astype(np.float16).reshape(2, 6, 1, 1)
    model = graph(lambda op, x: op.LRN(x, size=4, alpha=1e-8, beta=0.75, bias=1.0), new_value(D.FLOAT16, x.shape, "x"))
    LRNOfFourDimensions()(model)
    insert_casts(model.graph)
    wide = x.astype(np.float64)
    padded = np.pad(wide * wide, [(0, 0), (1, 2), (0, 0), (0, 0)])
    squares = np.sum([padded[:, k : k + 6] for k in range(4)], axis=0)
    expected = (wide / (1 + 1e-8 / 4 * squares) ** 0.75).astype(np.float16)
    np.testing.assert_allclose(run(model, x)[0], expected, rtol=1e-3, strict=True)


@pytest.mark.parametrize(
    ("shape", "axis", "found"), [((2, 0), 1, True), ((2, 0), -1, True), ((0, 4), 1, False), ((2, 4), 1, False)]
)
def test_split(shape: tuple[int, ...], axis: int, found: bool) -> None:
    """Along an axis without elements, but not if another axis is empty."""
    model = graph(lambda op, x: op.Split(op.Relu(x), axis=axis, num_outputs=2, outputs=2), floats("x", *shape))
    EmptySplit()(model)
    split = next(node for node in model.graph if node.op_type == "Split")
    assert (len(split.inputs) == 2) is found is ("num_outputs" not in split.attributes)
    assert [part.shape for part in run(model, np.ones(shape, np.float32))] == [(shape[0], shape[1] // 2)] * 2


def test_a_split_of_unknown_size_is_unchanged() -> None:
    model = graph(lambda op, x: op.Split(x, axis=1, num_outputs=2, outputs=2), floats("x", 2, None))
    assert not EmptySplit()(model).modified
