"""The constants that a pass stores are compared with the graph's computation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes import decoding
from converters.passes.compressed_weights.comparing import decodes_to
from converters.passes.compressed_weights.finding import find_weights
from converters.passes.decoding import agree, folded
from converters.passes.quantized.weights import weights
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import floats, graph

D = ir.DataType
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 256, (96, 64), np.uint8)
SCALES = (RNG.random((96, 1)) + 0.5).astype(np.float32)
ZEROS = RNG.integers(0, 256, (96, 1)).astype(np.float32)


def _of(emit: Callable[[Builder], Value]) -> ir.Value:
    """Return the weights of a product, computed by ``emit`` from constants."""
    model = graph(lambda op, x: op.MatMul(x, op.Transpose(emit(op), perm=[1, 0])), floats("x", 1, 64))
    matmul = next(node for node in model.graph if node.op_type == "MatMul")
    assert matmul.inputs[1] is not None
    return matmul.inputs[1]


def _cast(op: Builder, codes: np.ndarray = CODES, to: ir.DataType = D.FLOAT) -> Value:
    return op.Cast(op.const(codes), to=to)


def _decompressed(op: Builder) -> Value:
    return op.Mul(op.Sub(_cast(op), ZEROS), SCALES)


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        (_decompressed, (CODES - ZEROS) * SCALES),
        (lambda op: op.Mul(_cast(op), SCALES), CODES * SCALES),
        (lambda op: op.Mul(SCALES, _cast(op)), CODES * SCALES),
        (lambda op: op.Cast(_cast(op, to=D.INT8), to=D.FLOAT), CODES.view(np.int8)),
        (lambda op: op.Neg(_cast(op)), None),
        (lambda op: op.Reshape(_cast(op), [64, 96]), None),
    ],
)
def test_folded(emit: Callable[[Builder], Value], expected: np.ndarray | None) -> None:
    """Return the graph's numbers, row by row; other operators and data movement are not evaluated."""
    value = graph(emit).graph.outputs[0]
    got = folded(value, slice(10, 20), list(value.shape or ()), {})
    if expected is None:
        assert got is None
    else:
        assert got is not None
        np.testing.assert_array_equal(got, expected[10:20].astype(np.float32), strict=True)


def test_arithmetic_in_16_bits_is_not_rounded() -> None:
    scale = SCALES.astype(np.float16)
    value = graph(lambda op: op.Cast(op.Mul(_cast(op, to=D.FLOAT16), scale), to=D.FLOAT)).graph.outputs[0]
    got = folded(value, slice(0, 96), [96, 64], {})
    np.testing.assert_array_equal(got, CODES * scale.astype(np.float32), strict=True)


@pytest.mark.parametrize(("count", "computed"), [(1, True), (40, True), (3000, False)])
def test_values_of_many_paths(count: int, computed: bool) -> None:
    def emit(op: Builder) -> Value:
        x = _cast(op)
        for _ in range(count):
            x = op.Sub(op.Mul(x, 2.0), x)
        return x

    got = folded(graph(emit).graph.outputs[0], slice(0, 4), [96, 64], {})
    assert (got is not None) is computed
    if got is not None:
        np.testing.assert_array_equal(got, CODES[:4].astype(np.float32), strict=True)


def test_run_time_values_are_not_folded() -> None:
    x = floats("x", 4)
    model = graph(lambda op, x: op.Mul(x, 2.0), x)
    assert folded(model.graph.outputs[0], slice(0, 4), [4], {}) is None
    assert agree(model.graph.outputs[0], [4], lambda rows: (np.zeros(4), 0.0)) is None


@pytest.mark.parametrize("row", [0, 40_000, 79_999])
def test_large_constants_are_compared_in_pieces(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the last rows are always included."""
    numbers = np.zeros((80_000, 8), np.float32)
    value = ir.Value(name="w", const_value=ir.tensor(numbers))
    compared = []

    def decode(rows: slice) -> tuple[np.ndarray, float]:
        compared.append(rows)
        return np.where(np.arange(80_000)[rows, None] == row, 1, numbers[rows]), 0.0

    found = agree(value, numbers.shape, decode)
    assert sum(rows.stop - rows.start for rows in compared) * 8 <= decoding.MOST + decoding.PIECE
    if row != 40_000:
        assert found is False


# -- the integers of quantized networks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (_decompressed, True),
        (lambda op: op.Mul(op.Sub(_cast(op), ZEROS + 5e-4), SCALES), True),  # a file's zero is slightly off a level
        (lambda op: op.Mul(op.Sub(_cast(op), ZEROS + 5e-3), SCALES), False),
        (lambda op: op.Mul(op.Sub(_cast(op), ZEROS + 256), SCALES), False),
        (lambda op: op.Mul(op.Sub(_cast(op), ZEROS), -SCALES), False),
        (lambda op: op.Mul(op.Sub(_cast(op), ZEROS), SCALES * np.float32(1e-40)), False),
        (lambda op: op.Sub(op.Mul(_cast(op), SCALES), ZEROS), False),
        (lambda op: op.Sub(ZEROS, op.Mul(_cast(op), SCALES)), False),
        (lambda op: op.Mul(op.Sub(ZEROS, _cast(op)), SCALES), False),
        (lambda op: op.Mul(op.Cast(_cast(op, to=D.INT8), to=D.FLOAT), SCALES), False),
        (lambda op: op.Mul(op.Cast(_cast(op, to=D.FLOAT16), to=D.FLOAT), SCALES), True),
        (lambda op: op.Mul(_cast(op), np.float32(RNG.random((96, 64)) + 1)), False),  # not one scale per row
        (lambda op: op.Mul(_cast(op, CODES[:1]), SCALES), False),  # the constant is broadcast
    ],
)
def test_integers(emit: Callable[[Builder], Value], found: bool) -> None:
    got = weights(_of(emit), axis=-1)
    assert (got is not None) is found


def test_a_misread_constant_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison detects an ignored Cast, such as uint8 to int8."""
    monkeypatch.setattr("converters.passes.quantized.weights._preserve", lambda types, integers: True)
    assert weights(_of(lambda op: op.Mul(op.Cast(_cast(op, to=D.INT8), to=D.FLOAT), SCALES)), axis=-1) is None


@pytest.mark.parametrize("levels", [2, 3, 4, 15, 16, 255, 256])
@pytest.mark.parametrize("data", ["random", "ties", "nan"])
def test_levels_of_fake_quantize(levels: int, data: str) -> None:
    """Integers equal those of FakeQuantize, including halves between two levels; NaN has none."""
    top = np.float32(0.7)
    step = 2 * top / (levels - 1)
    numbers = RNG.standard_normal((96, 64)).astype(np.float32)
    low, high = (-step * (levels // 2), step * (levels - 1 - levels // 2))
    if data == "ties":
        numbers = (RNG.integers(-levels, levels, (96, 64)) + 0.5).astype(np.float32) * np.float32(step)
    elif data == "nan":
        numbers[3, 4] = np.nan
    ends = [np.array(end, np.float32) for end in (low, high, low, high)]
    value = _of(lambda op: op.specops.FakeQuantize(op.const(numbers), *ends, levels=levels))
    got = weights(value, axis=-1)
    if data == "nan":
        assert got is None
        return
    assert got is not None
    model = graph(lambda op: got.emit(op))
    integers = model.graph.outputs[0]
    stored = next(iter(model.graph.initializers.values())).const_value
    assert stored is not None and integers.shape == ir.Shape([64, 96])
    decoded = (stored.numpy().astype(np.float32) - got.affine.zero_point) * got.affine.scale
    from onnx_specops.domain import find

    expected = find("FakeQuantize").kernel(numbers, *ends, levels=levels)
    np.testing.assert_allclose(decoded, expected, rtol=0, atol=2e-3 * step, strict=True)


# -- compressed weights --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [D.UINT8, D.INT8, D.UINT4, D.INT4, D.FLOAT16, D.BFLOAT16, D.FLOAT8E4M3FN])
@pytest.mark.parametrize("with_zero", [False, True])
def test_compressed(stored: ir.DataType, with_zero: bool) -> None:
    codes = (CODES % 16 - (8 if stored == D.INT4 else 0)).astype(stored.numpy())

    def emit(op: Builder) -> Value:
        x = op.Cast(op.const(ir.tensor(codes, dtype=stored)), to=D.FLOAT)
        return op.Mul(op.Sub(x, np.round(ZEROS / 40)) if with_zero else x, SCALES)

    value = _of(emit)
    found = find_weights(value)
    assert found is not None and found.scale is not None and decodes_to(value, found)
    # A scale of other rows, an ignored zero point, half of the codes.
    wrong = ir.Value(
        name="wrong", type=found.scale.type, shape=found.scale.shape, const_value=ir.tensor(SCALES[::-1].copy())
    )
    assert not decodes_to(value, replace(found, scale=Value(name="w", const_value=wrong.const_value)))
    if with_zero:
        assert not decodes_to(value, replace(found, zero=None))
