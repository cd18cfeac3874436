"""The number of a pattern's groups, to which a replacement may refer."""

from __future__ import annotations

import pytest

from converters.openvino.rules._texts import number_of_groups


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("ab", 0),
        ("(a)(b(c))", 3),
        (r"\((a)\)", 1),
        ("[(](a)[^()]", 1),
        ("(?:a)(?=b)(?!c)(?<=d)(?<!e)(?>f)(?i)(?i:g)(h)", 1),
        (r"(?<name>a)", None),
        (r"(?P<name>a)", None),
        ("(?|(a)|(b))", None),
        ("(?x)(a) # (b)", None),
        ("(*UTF)(a)", None),
        (r"\Q(\E(a)", None),
    ],
)
def test_patterns(pattern: str, count: int | None) -> None:
    assert number_of_groups(pattern) == count
