"""The statistics of a difference."""

from __future__ import annotations

import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from converters.validation.compare import RANDOM, Comparison, Tolerance, compare

INF, NAN = math.inf, math.nan


def floats(got, expected, *, dtype=np.float32, relative=1e-3, absolute=1e-4, random=False) -> Comparison:
    return compare(np.array(got, dtype), np.array(expected, dtype), Tolerance(relative, absolute), random=random)


def test_equal_floats() -> None:
    found = floats([1, NAN, INF, -INF, 0.0], [1, NAN, INF, -INF, -0.0])
    assert found == Comparison((5,), "float32", 0.0, 0.0, 1.0, True, relative_l2=0.0)


def test_the_statistics() -> None:
    found = floats([[1.0, 2.0], [3.0, -3.0]], [[1.0, 2.5], [3.0, -4.0]], dtype=np.float64)
    assert found.shape == (2, 2)
    assert found.max_absolute == 1.0
    assert found.max_relative == 0.25
    assert found.exact == 0.5
    assert not found.agrees


@pytest.mark.parametrize(
    ("got", "expected", "relative_l2"),
    [
        ([3.0, 4.0], [3.0, 4.0], 0.0),
        ([3.0, 4.0], [0.0, 5.0], math.sqrt(10) / 5),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([1.0, 0.0], [0.0, 0.0], INF),
        ([NAN, 1.0], [NAN, 1.0], 0.0),
        ([NAN, 1.0], [1.0, 1.0], INF),
        ([INF, 3.0], [INF, 4.0], 0.25),
        ([1e300, 0.0], [2e300, 0.0], 0.5),  # the squares overflow
        ([], [], 0.0),
    ],
)
def test_the_relative_distance(got: list[float], expected: list[float], relative_l2: float) -> None:
    assert floats(got, expected, dtype=np.float64).relative_l2 == pytest.approx(relative_l2)


def test_strings_have_no_distance() -> None:
    assert compare(np.array(["a"]), np.array(["b"]), Tolerance()).relative_l2 is None


@pytest.mark.parametrize(
    ("got", "expected", "agrees"),
    [
        (1.001, 1.0, True),  # 1e-3 relative and 1e-4 absolute
        (1.0012, 1.0, False),
        (0.0001, 0.0, True),
        (0.0002, 0.0, False),
        (1001, 1000, True),
        (1002, 1000, False),
        (-1001, -1000, True),
    ],
)
def test_the_tolerance(got: float, expected: float, agrees: bool) -> None:
    assert floats([got], [expected], dtype=np.float64).agrees is agrees


@pytest.mark.parametrize(
    ("got", "expected"), [(INF, 1), (1, INF), (INF, -INF), (NAN, 1), (1, NAN), (NAN, INF), (INF, NAN), (3e38, INF)]
)
def test_nonfinite_values_must_be_equal(got: float, expected: float) -> None:
    found = floats([got, 1], [expected, 1])
    assert not found.agrees
    assert found.exact == 0.5
    assert found.max_absolute == INF
    assert found.note == ("NaN at different positions" if math.isnan(got) != math.isnan(expected) else "")


def test_nan_at_other_positions() -> None:
    found = floats([NAN, 1], [1, NAN])
    assert (found.agrees, found.note) == (False, "NaN at different positions")


@pytest.mark.parametrize(
    ("dtype", "step"), [(np.float16, 2**-10), (ml_dtypes.bfloat16, 2**-7), (ml_dtypes.float8_e4m3fn, 2**-3)]
)
def test_narrow_floats_may_differ_in_their_last_places(dtype: type, step: float) -> None:
    """The second argument is one unit in the last place of numbers from 1 to 2."""
    assert floats([1 + 2 * step], [1], dtype=dtype).agrees
    assert not floats([1 + 4 * step], [1], dtype=dtype).agrees
    assert floats([1 + 2 * step], [1], dtype=dtype).exact == 0.0


def test_narrow_floats_with_a_given_tolerance() -> None:
    one, other = np.array([1 + 2**-10], np.float16), np.array([1], np.float16)
    assert compare(one, other, Tolerance(0, 0, units=1)).agrees
    assert not compare(one, other, Tolerance(0, 0, units=0.9)).agrees
    assert not compare(one.astype(np.float32), other.astype(np.float32), Tolerance(0, 0, units=1)).agrees


def test_integers_of_four_bits_are_exact() -> None:
    for dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        assert floats([1, 2], [1, 2], dtype=dtype, relative=9, absolute=9).agrees
        assert not floats([1, 2], [1, 3], dtype=dtype, relative=9, absolute=9).agrees


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.bool_])
def test_integers_are_exact_regardless_of_the_tolerance(dtype: type) -> None:
    found = floats([1, 0], [1, 1], dtype=dtype, relative=10, absolute=10)
    assert replace(found, relative_l2=None) == Comparison((2,), np.dtype(dtype).name, 1.0, 1.0, 0.5, False, beyond=0.5)
    assert floats([1, 0], [1, 0], dtype=dtype, relative=0, absolute=0).agrees


def test_large_integers_that_are_equal_as_floats() -> None:
    found = floats([2**63 - 1], [2**63 - 2], dtype=np.int64)
    assert not found.agrees
    assert found.max_absolute == 1.0
    assert found.exact == 0.0
    assert floats([255], [0], dtype=np.uint8).max_absolute == 255
    assert floats([-128], [127], dtype=np.int8).max_absolute == 255


@pytest.mark.parametrize(
    ("got", "expected", "exact"),
    [
        (["a", "b"], ["a", "b"], 1.0),
        (["a", "b"], ["a", "c"], 0.5),
        (["a\0"], ["a"], 0.0),
        ([""], [""], 1.0),
        (["é"], ["é"], 1.0),
    ],
)
def test_strings(got: list[str], expected: list[str], exact: float) -> None:
    found = compare(np.array(got, object), np.array(expected, object), Tolerance())
    assert found == Comparison((len(got),), "string", None, None, exact, exact == 1.0, beyond=1 - exact)


def test_strings_of_any_numpy_dtype() -> None:
    assert compare(np.array(["a"]), np.array(["a"], object), Tolerance()).agrees
    assert compare(np.array([b"a"], object), np.array(["a"], object), Tolerance()).agrees


def test_shapes_and_types_must_be_the_same() -> None:
    found = floats([[1.0]], [1.0])
    assert (found.agrees, found.exact, found.note) == (False, 0.0, "the expected shape is [1]")
    found = compare(np.ones(1, np.float32), np.ones(1, np.float64), Tolerance())
    assert (found.agrees, found.max_absolute, found.note) == (False, None, "the expected type is float64")
    assert not compare(np.ones(1, np.int32), np.ones(1, np.int64), Tolerance()).agrees
    assert not compare(np.array(["1"], object), np.ones(1, np.int64), Tolerance()).agrees


def test_nothing_to_compare() -> None:
    assert floats(np.zeros((0, 3)), np.zeros((0, 3))).agrees
    assert not floats(np.zeros((0, 3)), np.zeros((3, 0))).agrees
    assert compare(np.zeros(0, object), np.zeros(0, object), Tolerance()).exact == 1.0
    scalar = floats(2.0, 1.0)
    assert (scalar.shape, scalar.max_absolute) == ((), 1.0)


def test_random_outputs_are_excused_only_where_they_differ() -> None:
    equal = floats([1, 2], [1, 2], dtype=np.int64, random=True)
    assert (equal.agrees, equal.note, equal.max_absolute) == (True, "", 0.0)
    other = floats([1, 2], [1, 3], dtype=np.int64, random=True)
    assert (other.agrees, other.note, other.max_absolute, other.exact) == (True, RANDOM, None, 0.5)
    assert not floats([1, 2], [1], dtype=np.int64, random=True).agrees
    assert not compare(np.ones(1, np.int32), np.ones(1, np.int64), Tolerance(), random=True).agrees


def test_a_fraction_of_the_elements_may_differ() -> None:
    expected = np.zeros(100, np.float32)
    got = expected.copy()
    got[:3] = [1, np.nan, 2]
    for share, agrees in ((0, False), (0.02, False), (0.03, True)):
        found = compare(got, expected, Tolerance(share=share))
        assert (found.beyond, found.agrees) == (0.03, agrees)
    assert compare(np.array(["a", "b"]), np.array(["a", "c"]), Tolerance(share=0.5)).agrees
    assert not compare(got[:50], expected, Tolerance(share=1)).agrees
