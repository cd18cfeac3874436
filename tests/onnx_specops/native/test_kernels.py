"""The native kernels with sizes that are split over threads, against OpenVINO."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from tests.onnx_specops.native import nodes

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def openvino(build: Callable[..., Any], arrays: Sequence[np.ndarray], constants: Sequence[int] = ()) -> np.ndarray:
    """Return the result of OpenVINO's CPU plugin in float32."""
    ov = pytest.importorskip("openvino")
    from openvino import opset15

    inputs = [
        opset15.constant(array) if k in constants else opset15.parameter(list(array.shape), array.dtype)
        for k, array in enumerate(arrays)
    ]
    parameters = [node for k, node in enumerate(inputs) if k not in constants]
    model = ov.Model([build(opset15, *inputs)], parameters)
    request = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    fed = [array for k, array in enumerate(arrays) if k not in constants]
    request.infer(dict(enumerate(fed)))
    return request.get_output_tensor(0).data.copy()


@pytest.mark.parametrize("width", [1, 7, 8, 64, 100, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_embedding_bags_bit_for_bit(width: int, weighted: bool) -> None:
    rng = np.random.default_rng(width)
    table = rng.standard_normal((5000, width)).astype(np.float32)
    indices = rng.integers(0, 5000, 20_000).astype(np.int32)
    sizes = rng.choice([0, 1, 5, 40, 3000], 2000, p=[0.2, 0.3, 0.4, 0.09, 0.01])
    offsets = np.minimum(np.cumsum(sizes), len(indices) - 1).astype(np.int32)
    inputs = [table, indices, offsets, np.array(17, np.int32)]
    if weighted:
        inputs.append(rng.standard_normal(len(indices)).astype(np.float32))
    expected = openvino(lambda op, *nodes: op.embedding_bag_offsets_sum(*nodes), inputs, [3])
    for threads in (1, 2):
        given = nodes.run("EmbeddingBagOffsetsSum", inputs, [F32], threads=threads)[0]
        np.testing.assert_array_equal(given, expected)


SHAPES = [
    ((4096, 300), (4096, 64), 1),
    ((4096, 300), (4000, 1000), -1),
    ((100, 40, 7, 7), (25, 20, 7, 6), 0),
    ((3, 2000, 900), (3, 30, 900), 1),
    ((3, 2000, 900), (2, 30, 700), 1),
    ((40, 50, 60), (40, 200, 60), 1),
    ((40, 50, 1200), (30, 200, 1100), 1),
    ((60_000, 3), (60_000, 2), 1),
    ((2, 60_000, 3), (2, 5000, 1), 1),
    ((500_000,), (20_000,), 0),
    ((7, 6, 5, 4, 3, 2), (3, 6, 9, 4, 2, 2), 2),
]


@pytest.mark.parametrize("use_init_val", [True, False])
@pytest.mark.parametrize("reduction", ["none", "sum", "prod", "min", "max", "mean"])
@pytest.mark.parametrize(("shape", "updated", "axis"), SHAPES, ids=lambda value: str(value))
def test_scatters_bit_for_bit(shape, updated, axis, reduction: str, use_init_val: bool) -> None:
    rng = np.random.default_rng(len(shape))
    data = rng.standard_normal(shape).astype(np.float32)
    indices = rng.integers(-shape[axis], shape[axis], updated).astype(np.int32)
    updates = rng.standard_normal(updated).astype(np.float32)
    inputs = [data, indices, updates, np.array(axis)]
    expected = openvino(lambda op, *nodes: op.scatter_elements_update(*nodes, reduction, use_init_val), inputs, [3])
    attributes = {"reduction": reduction, "use_init_val": int(use_init_val)}
    for threads in (1, 2):
        given = nodes.run("ScatterElementsUpdate", inputs, [F32], attributes, threads=threads)[0]
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("type_", [np.float32, np.float16])
def test_a_mean_after_a_failed_run(type_: Any) -> None:
    """The counts of a run that an invalid index ended do not affect the next run."""
    rng = np.random.default_rng(0)
    data, indices = rng.standard_normal(50).astype(type_), rng.integers(0, 50, 3000)
    inputs = [data, indices, rng.standard_normal(3000).astype(type_), np.array(0)]
    model = nodes.model("ScatterElementsUpdate", inputs, [nodes.element_type(data)], {"reduction": "mean"})
    session = nodes.session(model, threads=1)
    feeds = dict(zip(("i0", "i1", "i2", "i3"), inputs, strict=True))
    (expected,) = session.run(None, feeds)
    wrong = np.where(np.arange(3000) == 2999, 50, indices)
    with pytest.raises(Exception, match=r"indices\[2999\] = 50 is out of range"):
        session.run(None, {**feeds, "i1": wrong})
    np.testing.assert_array_equal(session.run(None, feeds)[0], expected)


@pytest.mark.parametrize(
    ("batch", "classes", "samples", "with_replacement"),
    [
        (32, 1000, 100, True),
        (33, 1000, 100, False),
        (64, 50_000, 1, False),
        (3, 50_000, 20, False),
        (5, 100_000, 300, True),
        (1000, 17, 3, False),
        (1, 255, 200, False),
        (9, 513, 1, True),
        (2, 1, 4, True),
    ],
)
@pytest.mark.parametrize("log_probs", [False, True])
def test_draws_bit_for_bit(batch: int, classes: int, samples: int, with_replacement: bool, log_probs: bool) -> None:
    rng = np.random.default_rng(classes)
    probs = rng.standard_normal((batch, classes)) * 4 if log_probs else rng.random((batch, classes)) + 0.01
    probs = probs.astype(np.float32)
    seeds = (2**62 + 12345, 678)
    expected = openvino(
        lambda op, p, n: op.multinomial(p, n, "i64", with_replacement, log_probs, *seeds),
        [probs, np.array(samples)],
        [1],
    )
    attributes = {
        "with_replacement": int(with_replacement),
        "log_probs": int(log_probs),
        "global_seed": seeds[0],
        "op_seed": seeds[1],
    }
    for threads in (1, 2):
        given = nodes.run("Multinomial", [probs, np.array(samples)], [I64], attributes, threads=threads)[0]
        np.testing.assert_array_equal(given, expected)


def test_exponentials_equal_openvino() -> None:
    # Each row: a weight of 1, a logarithm, and many draws, so that the last bit of its exponential matters.
    values = np.concatenate([np.linspace(-20, 20, 3000), np.random.default_rng(0).standard_normal(3000) * 8])
    probs = np.stack([np.zeros_like(values), values], axis=1).astype(np.float32)
    expected = openvino(lambda op, p, n: op.multinomial(p, n, "i64", True, True, 3, 4), [probs, np.array(200)], [1])
    attributes = {"with_replacement": 1, "log_probs": 1, "global_seed": 3, "op_seed": 4}
    given = nodes.run("Multinomial", [probs, np.array(200)], [I64], attributes)[0]
    np.testing.assert_array_equal(given, expected)


def test_without_seeds_the_current_second_is_the_seed() -> None:
    probs, samples = np.ones((4, 1000), np.float32), np.array(50)
    session = nodes.session(nodes.model("Multinomial", [probs, samples], [I64], {"with_replacement": 1}))

    def draw() -> np.ndarray:
        return session.run(None, {"i0": probs, "i1": samples})[0]

    while True:
        before = draw()
        expected = openvino(lambda op, p, n: op.multinomial(p, n, "i64", True, False, 0, 0), [probs, samples], [1])
        if np.array_equal(before, draw()):  # otherwise a second has passed
            break
    np.testing.assert_array_equal(before, expected)
    time.sleep(1.01)
    assert not np.array_equal(before, draw())


@pytest.mark.parametrize("type_", [np.float16, ml_dtypes.bfloat16])
def test_every_16_bit_float_is_read_and_written(type_: Any) -> None:
    table = np.arange(2**16, dtype=np.uint16).view(type_).reshape(-1, 1)
    kind = nodes.element_type(table)
    indices = np.arange(2**16)
    given = nodes.run("EmbeddingBagOffsetsSum", [table, indices, indices], [kind])[0]
    not_a_number = np.isnan(table.astype(np.float32))
    assert np.array_equal(np.isnan(given.astype(np.float32)), not_a_number)
    zero = table.view(np.uint16) << 1 == 0  # a sum starts with zero, so -0 is lost
    assert np.array_equal(given.view(np.uint16)[~not_a_number & ~zero], table.view(np.uint16)[~not_a_number & ~zero])


@pytest.mark.parametrize("type_", [np.float16, ml_dtypes.bfloat16])
def test_sums_of_16_bit_floats_are_rounded_once(type_: Any) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**16, 200_000).astype(np.uint16)
    table = bits.view(type_)
    table = table[np.isfinite(table.astype(np.float32))]
    table = table[: len(table) // 3 * 3].reshape(-1, 1)
    offsets = np.arange(0, len(table), 3)
    given = nodes.run("EmbeddingBagOffsetsSum", [table, np.arange(len(table)), offsets], [nodes.element_type(table)])[0]
    parts = table.astype(np.float32).reshape(-1, 3)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = ((parts[:, 0] + parts[:, 1]) + parts[:, 2]).astype(type_)
    np.testing.assert_array_equal(given[:, 0].astype(np.float32), expected.astype(np.float32))
