"""Recurrences in which several heads share a group of queries, keys or gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.ops._checks import require_shapes


def check_groups(
    operator: str, shapes: Mapping[str, tuple[np.ndarray, tuple[int, ...]]], heads: tuple[str, int], groups: tuple[str, int]
) -> None:
    """Check the inputs of a node.

    Args:
        operator: its operator.
        shapes: the name of an input -> the input and the shape that it must have.
        heads: the input that has heads, and their number.
        groups: the input that has groups, and their number.

    Raises:
        ValueError: a shape differs, or the heads are not a multiple of the groups.
    """
    require_shapes(operator, shapes)
    if groups[1] == 0 or heads[1] % groups[1]:
        raise ValueError(
            f"{operator}: {heads[0]} has {heads[1]} heads; expected a multiple of {groups[1]}, the groups of {groups[0]}"
        )


def required_groups(op: Any, operator: str, shapes: Sequence[tuple[Any, Any]], heads: Any, groups: Any) -> Any:
    """Emit the number of groups; its computation fails at run time for inputs that `check_groups` rejects.

    Args:
        op: the builder of the body.
        operator: the operator.
        shapes: the inputs and the shapes that they must have, as tensors.
        heads, groups: the numbers of heads and groups, as tensors of one element.
    """
    differs = [op.Not(op.Equal(op.Shape(given), shape)) for given, shape in shapes]
    some = op.Max(groups, 1)
    violations = op.Concat(*differs, op.Equal(groups, 0), op.Not(op.Equal(op.Mod(heads, some), 0)), axis=0)
    return required(op, f"{operator}: the shapes do not match, or heads are not a multiple of groups", violations, some)
