"""InstanceNormalization of single elements, and near misses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings import SPELLINGS
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, run


@pytest.mark.parametrize(
    ("dims", "remains"),
    [
        ((2, 3, 1), False),
        ((2, 3, 1, 1), False),
        ((2, 3, None, None), False),
        ((2, 3, None, 2), True),  # two or more elements, or none
        ((2, 3, 4), True),
    ],
)
def test_normalizations_of_single_elements(dims: tuple[int | None, ...], remains: bool) -> None:
    array = np.random.default_rng(0).standard_normal([2, 3, 4, 2][: len(dims)]).astype(np.float32)
    array = array.reshape(-1)[: np.prod([dim or 2 for dim in dims])].reshape([dim or 2 for dim in dims])

    def emit(op, x):
        scale, bias = (op.const(np.array(values, np.float32)) for values in ([1, 2, 3], [0.5, -1, 0]))
        return (op.InstanceNormalization(x, scale, bias, epsilon=1e-3),)

    model = graph(emit, floats("x", *dims))
    expected = run(model, array)
    SPELLINGS["several elements"]()(model)
    np.testing.assert_allclose(run(model, array)[0], expected[0], rtol=1e-5, atol=1e-5, strict=True)
    assert ("InstanceNormalization" in operators(model)) == remains


@pytest.mark.parametrize(("groups", "remains"), [(2, True), (4, False)])
def test_normalizations_of_groups(groups: int, remains: bool) -> None:
    """Groups of one channel may have one element, if the image has one pixel."""

    def emit(op, x):
        ones = op.const(np.ones(groups, np.float32))
        rows = op.Reshape(x, [0, groups, -1])
        return (op.InstanceNormalization(rows, ones, ones),)

    model = graph(emit, new_value(ir.DataType.FLOAT, ["batch", 4, None], "x"))
    array = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(np.float32)
    expected = run(model, array)
    SPELLINGS["several elements"]()(model)
    np.testing.assert_allclose(run(model, array)[0], expected[0], rtol=1e-5, atol=1e-5, strict=True)
    assert ("InstanceNormalization" in operators(model)) == remains
