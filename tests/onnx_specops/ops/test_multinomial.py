"""Multinomial: special seeds, and the distribution of its body's samples."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import onnx_specops
from onnx_specops.ops.multinomial import Multinomial
from onnx_specops.runtime.library import has_library
from onnx_specops.runtime.reference import reference_evaluator
from tests.conformance.oracle import Oracle
from tests.native import needs_library
from tests.onnx_specops.ops.case import Case, save
from tests.onnx_specops.ops.cases_multinomial import TWO_ROWS, case
from tests.onnx_specops.ops.one_node import one_node

KERNELS = [*(["native"] if has_library() else []), "python"]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    oracle = Oracle()
    yield oracle
    oracle.close()


def in_session(case: Case, kernels: str) -> np.ndarray:
    model = one_node(case.op, case.inputs, case.attributes)
    session = onnx_specops.InferenceSession(model.SerializeToString(), kernels=kernels)
    return session.run(None, dict(case.inputs))[0]


@pytest.mark.parametrize("kernels", KERNELS)
def test_seeds_beyond_the_positive_range(kernels: str, oracle: Oracle, tmp_path: Path) -> None:
    """Unsigned seeds as two's complement. OpenVINO rejects such large seeds, but uses the low 32 bits of others."""
    low = case("low-words", TWO_ROWS, 30, global_seed=2**31 + 17, op_seed=2**32 - 1)
    save(low, low.inputs, tmp_path / "model.xml")
    expected = oracle.run(tmp_path / "model.xml", [list(low.inputs.values())])["cpu"][0][0]
    large = {"global_seed": 2**63 + 2**31 + 17 - 2**64, "op_seed": -1}
    signed = dataclasses.replace(low, attributes={**low.attributes, **large})
    np.testing.assert_array_equal(in_session(signed, kernels), expected)


@pytest.mark.parametrize("kernels", KERNELS)
def test_the_clock_is_the_seed_if_both_seeds_are_zero(kernels: str, oracle: Oracle, tmp_path: Path) -> None:
    """OpenVINO uses the current second as the global seed; so do the kernels, for each call."""
    example = case("clock", np.ones((1, 1000)), 20, global_seed=0, op_seed=0)
    save(example, example.inputs, tmp_path / "model.xml")

    def drawn(draw) -> tuple[set[int], np.ndarray]:
        before = int(time.time())
        result = draw()
        return set(range(before, int(time.time()) + 1)), result

    draws = [
        drawn(lambda: oracle.run(tmp_path / "model.xml", [list(example.inputs.values())])["cpu"][0][0]),
        drawn(lambda: in_session(example, kernels)),
    ]
    for seconds, result in draws:
        candidates = [Multinomial(*example.inputs.values(), with_replacement=1, global_seed=second) for second in seconds]
        assert any((candidate == result).all() for candidate in candidates)


@pytest.mark.parametrize("with_replacement", [1, 0])
@pytest.mark.parametrize("form", ["body", "reference"])
def test_distribution_of_the_body(form: str, with_replacement: int) -> None:
    """Compare the frequency of every pair of draws with its probability."""
    probabilities = np.array([0.1, 0.0, 0.45, 0.25, 0.2])
    rows = 20_000
    example = case("distribution", np.tile(probabilities, (rows, 1)) * 3, 2, with_replacement)
    model = onnx_specops.add_bodies(one_node(example.op, example.inputs, example.attributes))
    if form == "body":
        session = onnx_specops.InferenceSession(model.SerializeToString(), kernels="none")
        pairs = session.run(None, dict(example.inputs))[0]
    else:
        pairs = reference_evaluator(model).run(None, dict(example.inputs))[0]
    expected = np.outer(probabilities, probabilities)
    if not with_replacement:
        np.fill_diagonal(expected, 0)
        expected /= (1 - probabilities)[:, None]
    counts = np.zeros((5, 5))
    np.add.at(counts, (pairs[:, 0], pairs[:, 1]), 1)
    assert (counts[expected == 0] == 0).all()
    possible = expected > 0
    chi_square = ((counts - rows * expected)[possible] ** 2 / (rows * expected)[possible]).sum()
    freedom = possible.sum() - 1
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom)


def test_the_body_uses_its_seeds() -> None:
    def draws(**seeds: int) -> list[list[list[int]]]:
        example = case("seeds", np.ones((1, 1000)), 10, **seeds)
        model = onnx_specops.add_bodies(one_node(example.op, example.inputs, example.attributes))
        session = ort.InferenceSession(model.SerializeToString())
        return [session.run(None, dict(example.inputs))[0].tolist() for _ in range(2)]

    seeds = [
        {"global_seed": 1, "op_seed": 0},
        {"global_seed": 0, "op_seed": 1},
        {"global_seed": -1, "op_seed": 2**63 - 1},
        {"global_seed": 2**24, "op_seed": 3},
    ]
    first, again = ([draws(**seed) for seed in seeds] for _ in range(2))
    assert first == again
    assert all(a != b for a, b in itertools.combinations([run for runs in first for run in runs], 2))
    run, next_run = draws(global_seed=0, op_seed=0)
    assert run != next_run


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize(
    "probs, samples, expected",
    [
        # After the certain class is drawn, no probability is left in float32. The others follow, most probable first.
        ([[1.0, 1e-9, 3e-9, 2e-9]], 4, [[0, 2, 3, 1]]),
        ([[1e-12, 1.0]], 2, [[1, 0]]),
    ],
)
def test_classes_too_improbable_for_float32(kernels: str, probs: list, samples: int, expected: list) -> None:
    example = case("improbable", probs, samples, 0)
    assert in_session(example, kernels).tolist() == expected


@pytest.mark.parametrize("seed", range(1, 6))
@needs_library
def test_kernels_agree_where_openvino_is_undefined(seed: int) -> None:
    """Rows whose remaining probability becomes zero in float32 and bfloat16."""
    random = np.random.default_rng(seed)
    probs = random.random((20, 12)) ** 40 + 1e-30
    example = case("undefined", probs, 12, 0, global_seed=seed, op_seed=1)
    native, python = in_session(example, "native"), in_session(example, "python")
    np.testing.assert_array_equal(native, python)
    assert ((native >= 0) & (native < 12)).all()
