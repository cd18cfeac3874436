"""Factors that are combined into one attribute of a node."""

from __future__ import annotations

import math

import pytest

from converters.passes.factors import product


@pytest.mark.parametrize(
    ("factors", "whole"),
    [
        ([], 1.0),
        ([0.5, -4.0], -2.0),
        ([1e-20, 1e-17], 1e-37),
        ([1e-20, 1e-18], None),  # below the smallest normal number
        ([1e-30, 1e-30, 1e30, 1e30], None),  # 0 as an intermediate value
        ([1e30, 1e30, 1e-30], None),  # infinite as an intermediate value
        ([1e-40, 1e4], None),  # rounded before it is multiplied
        ([0.0], None),
        ([math.inf], None),
        ([math.nan], None),
    ],
)
def test_one_factor(factors: list[float], whole: float | None) -> None:
    assert product(factors) == (None if whole is None else pytest.approx(whole))
