"""MatMulCompressed: 8-bit activations with special values, and invalid dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.onnx_specops.ops.one_node import BODIES, KERNELS, RAISED, run

OPERATOR = "MatMulCompressed"
N, K = 24, 64
FORMS = [(form, "uint8") for form in (*KERNELS, *BODIES)] + [(form, "uint4") for form in (*KERNELS, "body")]
"""The kinds of weights. For 4 bits, the body uses an operator of ONNX Runtime."""


def product(form: str, kind: str, a: np.ndarray, **more: str) -> np.ndarray:
    generator = np.random.default_rng(1)
    codes = generator.integers(0, 256, (N, K if kind == "uint8" else K // 2)).astype(np.uint8)
    inputs = {"A": a, "B": codes, "scales": np.full((N, K // 32), 0.01, np.float32)}
    attributes = {"N": N, "K": K, "block_size": 32, "activations": "int8", "packed": "no" if kind == "uint8" else kind}
    attributes |= more
    return run(form, OPERATOR, inputs, attributes)


@pytest.mark.parametrize(("form", "kind"), FORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_with_nonfinite_activations(form: str, kind: str, value: float) -> None:
    """The row becomes NaN; other rows are unaffected."""
    a = np.random.default_rng(0).standard_normal((3, K)).astype(np.float32)
    wanted = product(form, kind, a)
    a[1, 40] = value
    got = product(form, kind, a)
    assert np.isnan(got[1]).all()
    np.testing.assert_array_equal(got[[0, 2]], wanted[[0, 2]])


@pytest.mark.parametrize("form", (*KERNELS, *BODIES))
def test_gelu_of_infinity(form: str) -> None:
    """Gelu(-inf) is the product of infinity and 0."""
    a = np.zeros((2, K), np.float32)
    a[:, 40] = np.inf, -np.inf
    sums = product(form, "uint8", a, activations="float")
    got = product(form, "uint8", a, activations="float", function="gelu")
    assert (sums == np.inf).any() and (sums == -np.inf).any()
    np.testing.assert_array_equal(got, np.where(sums == np.inf, np.float32(np.inf), np.float32(np.nan)))


@pytest.mark.parametrize(("form", "kind"), FORMS)
@pytest.mark.parametrize("largest", [0.0, 1e-45, 1e-39, 3.7e-37, 4e-37, 1e-30, 1e30])
def test_blocks_of_any_magnitude(form: str, kind: str, largest: float) -> None:
    """Blocks whose scale overflows float32 become zeros."""
    a = np.random.default_rng(0).uniform(-1, 1, (2, K)).astype(np.float32)
    wanted = product(form, kind, a)
    got = product(form, kind, (a.astype(np.float64) * largest).astype(np.float32))
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got / max(largest, 1e-30), wanted * (largest >= 1e-30), rtol=0.02, atol=0.1)


@pytest.mark.parametrize("form", KERNELS)
def test_dimensions_whose_product_overflows(form: str) -> None:
    """4,096 matrices of 2^24 by 2^24 elements exceed 2^64 bits."""
    size = 1 << 24
    inputs = {
        "A": np.zeros((1, 0, size), np.float32),
        "B": np.zeros((4096, 0, 0), np.uint8),
        "scales": np.ones((1, 1), np.float32),
    }
    with pytest.raises(RAISED[form]):
        run(form, OPERATOR, inputs, {"N": size, "K": size, "block_size": size})


@pytest.mark.parametrize("form", ["numpy", "native"])
@pytest.mark.parametrize("rows", [0, 1])
def test_a_bias_of_another_shape(form: str, rows: int) -> None:
    """The bias is checked even if the output is empty."""
    inputs = {
        "A": np.zeros((rows, 32), np.float32),
        "B": np.zeros((4, 32), np.int8),
        "scales": np.ones((4, 1), np.float32),
        "bias": np.array(1, np.float32),
    }
    with pytest.raises(RAISED[form], match="bias has the shape"):
        run(form, OPERATOR, inputs, {"N": 4, "K": 32, "block_size": 32, "packed": "no"})
