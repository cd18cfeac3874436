"""Random nodes of all types and shapes: the native kernels against the NumPy kernels, which are tested against oracles."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from onnx_specops.domain import find
from tests.onnx_specops.native import nodes

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
NODES = 40  # per seed


def any_values(rng: np.random.Generator, shape: Any, type_: Any) -> np.ndarray:
    """Return values in the whole range of an integer type, or normally distributed floats."""
    if type_ == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if type_ in FLOATS:
        return rng.standard_normal(shape).astype(type_)
    limits = np.iinfo(type_)
    return rng.integers(limits.min, limits.max, shape, endpoint=True, dtype=type_)


def pick(rng: np.random.Generator, options: Any) -> Any:
    return options[rng.integers(len(options))]


def embedding_bag(rng: np.random.Generator) -> tuple[str, list[Any], dict[str, Any]]:
    type_, index_type = pick(rng, FLOATS + INTEGERS), pick(rng, (np.int32, np.int64))
    row = rng.integers(1, pick(rng, (3, 40, 300)), rng.integers(0, 3))
    rows, count, bags = rng.integers(1, 50), rng.integers(0, 200), rng.integers(0, 30)
    offsets = np.sort(rng.integers(0, count + 1, bags)).astype(index_type)
    default = pick(rng, (None, np.zeros(0, index_type), np.array(-1, index_type), np.array([0], index_type)))
    weights = pick(rng, (None, np.zeros(0, type_), any_values(rng, count, type_)))
    table = any_values(rng, [rows, *row], type_)
    return (
        "EmbeddingBagOffsetsSum",
        [table, rng.integers(0, rows, count).astype(index_type), offsets, default, weights],
        {},
    )


def scatter(rng: np.random.Generator) -> tuple[str, list[Any], dict[str, Any]]:
    type_, index_type = pick(rng, (np.bool_, *FLOATS, *INTEGERS)), pick(rng, INTEGERS)
    rank = rng.integers(1, 5)
    shape = rng.integers(1, 7, rank)
    if rng.random() < 0.2:
        shape[rng.integers(rank)] = rng.integers(50, 700)
    axis = rng.integers(-rank, rank)
    updated = np.where(rng.random(rank) < 0.5, rng.integers(1, shape + 1), shape)
    updated[axis] = rng.integers(0, pick(rng, (12, 600)))
    limits = np.iinfo(index_type)
    least = max(-shape[axis], limits.min) if limits.min else 0
    indices = rng.integers(least, min(shape[axis], limits.max), updated).astype(index_type)
    reduction = pick(rng, ("none", "sum", "prod", "min", "max") + (() if type_ == np.bool_ else ("mean",)))
    arrays = [any_values(rng, shape, type_), indices, any_values(rng, updated, type_), np.array(axis)]
    return "ScatterElementsUpdate", arrays, {"reduction": reduction, "use_init_val": int(rng.integers(2))}


def multinomial(rng: np.random.Generator) -> tuple[str, list[Any], dict[str, Any]]:
    type_, with_replacement = pick(rng, FLOATS), int(rng.integers(2))
    batch, classes = rng.integers(1, 40), rng.integers(1, pick(rng, (10, 300, 2000)))
    samples = rng.integers(0, 60) if with_replacement else rng.integers(0, min(classes, 60) + 1)
    probs = (rng.random((batch, classes)) + 0.01).astype(type_)
    attributes = {
        "with_replacement": with_replacement,
        "global_seed": int(rng.integers(1, 2**62)),
        "op_seed": 5,
    }
    return "Multinomial", [probs, samples.astype(pick(rng, (np.int32, np.int64)))], attributes


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("make", [embedding_bag, scatter, multinomial])
def test_native_and_numpy_agree(make: Callable[..., Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(NODES):
        op, arrays, attributes = make(rng)
        operator = find(op)
        given = [None if array is not None and not array.size and k > 2 else array for k, array in enumerate(arrays)]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = operator(*given, **operator.node_attributes(attributes))
        type_ = TensorProto.INT64 if op == "Multinomial" else nodes.element_type(arrays[0])
        got = nodes.run(op, arrays, [type_], attributes, threads=int(rng.integers(1, 3)))[0]
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        if got.dtype.kind in "fV":
            tolerance = 2e-2 if got.dtype.itemsize == 2 else 1e-4
            got, expected = got.astype(np.float64), expected.astype(np.float64)
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-5)
        else:
            np.testing.assert_array_equal(got, expected)


def test_invalid_nodes_are_rejected() -> None:
    """Random damage to random nodes gives a result or an error, never a read out of bounds."""
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        op, arrays, attributes = pick(rng, (embedding_bag, scatter, multinomial))(rng)
        at = rng.integers(len(arrays))
        damaged = arrays[at]
        if damaged is None:
            continue
        if rng.random() < 0.5 and damaged.size:
            flat = damaged.reshape(-1).copy()
            flat[rng.integers(flat.size)] = (
                damaged.dtype.type(pick(rng, (-1, 127, -128, 0))) if damaged.dtype.kind != "u" else 255
            )
            arrays[at] = flat.reshape(damaged.shape)
        else:
            arrays[at] = np.resize(damaged, np.array(damaged.shape, int) + rng.integers(0, 3, damaged.ndim))
        type_ = TensorProto.INT64 if op == "Multinomial" else nodes.element_type(arrays[0])
        try:
            nodes.run(op, arrays, [type_], attributes)
        except Exception as error:
            assert op in str(error)
            refused += 1
    assert refused > 30
