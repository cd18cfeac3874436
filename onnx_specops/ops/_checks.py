"""Shared checks of operators: inputs with one element, positions in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

FLOAT16S = ("float16", "bfloat16")


def scalar(value: Any, name: str) -> Any:
    """Return the element of a scalar or ``[1]``; raise ``ValueError`` for other shapes."""
    if np.shape(value) not in ((), (1,)):
        raise ValueError(f"{name} has the shape {list(np.shape(value))}; expected a scalar or [1]")
    return np.reshape(value, -1)[0]


def require_shapes(operator: str, shapes: Mapping[str, tuple[np.ndarray | None, Sequence[int]]]) -> None:
    """Raise ``ValueError`` unless each input has its expected shape or is omitted."""
    for name, (array, shape) in shapes.items():
        if array is not None and list(array.shape) != list(shape):
            raise ValueError(f"{operator}: {name} has the shape {list(array.shape)} instead of {list(shape)}")


def position(index: Sequence[Any]) -> str:
    """Format the coordinates ``(1, 2)`` as ``[1, 2]``."""
    return f"[{', '.join(str(int(i)) for i in index)}]"
