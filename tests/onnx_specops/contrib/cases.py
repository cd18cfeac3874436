"""Nodes of ONNX Runtime's own operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """One node, whose kernel in ONNX Runtime and whose body are compared.

    Attributes:
        op: the operator's name.
        name: what is special about the case; unique within the operator.
        inputs: the inputs by name, in order; one that is missing is left out of the node.
        attributes: the node's attributes.
        outputs: the outputs that the node has; by default those that it must have.
        constants: the inputs that are initializers.
        rtol, atol: largest errors of floats; integers are equal.
    """

    op: str
    name: str
    inputs: Arrays
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    constants: Sequence[str] = ()
    rtol: float = 1e-5
    atol: float = 1e-6

    @property
    def id(self) -> str:
        return f"{self.op}-{self.name}"


def _random(*shape: int, seed: int = 0, scale: float = 2.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


_LAST = {"gamma": _random(8, seed=2), "beta": _random(8, seed=3), "bias": _random(8, seed=4)}
_NORMALISED = {"input": _random(2, 3, 8), "skip": _random(2, 3, 8, seed=1)}
_ATTENDED = ("query", "key", "value")

CASES = (
    Case("BiasGelu", "last-dimension", {"A": _random(2, 3, 8), "B": _random(8, seed=1)}),
    Case("FastGelu", "alone", {"X": _random(3, 7)}),
    Case("FastGelu", "bias", {"X": _random(2, 3, 8), "bias": _random(8, seed=1)}),
    Case("FastGelu", "large", {"X": np.float32([-1e4, -88, -5, 0, 5, 88, 1e4])}),
    Case(
        "MultiHeadAttention",
        "default",
        {name: _random(2, 5, 12, seed=i) for i, name in enumerate(_ATTENDED)},
        {"num_heads": 3},
    ),
    Case(
        "MultiHeadAttention",
        "scale-and-other-sizes",
        {"query": _random(2, 3, 8), "key": _random(2, 5, 8, seed=1), "value": _random(2, 5, 12, seed=2)},
        {"num_heads": 2, "scale": 0.3},
    ),
    Case("QuickGelu", "default", {"X": _random(3, 7)}),
    Case("QuickGelu", "swish", {"X": _random(3, 7)}, {"alpha": 1.0}),
    Case("SkipLayerNormalization", "scale", {**_NORMALISED, "gamma": _LAST["gamma"]}),
    Case("SkipLayerNormalization", "shift", {**_NORMALISED, "gamma": _LAST["gamma"], "beta": _LAST["beta"]}),
    Case(
        "SkipLayerNormalization",
        "sum",
        {**_NORMALISED, **_LAST},
        {"epsilon": 1e-3},
        outputs=("output", "", "", "input_skip_bias_sum"),
    ),
    Case(
        "SkipLayerNormalization",
        "skip-of-all-batches",
        {"input": _NORMALISED["input"], "skip": _random(3, 8), **_LAST},
        {"epsilon": 1e-5},
    ),
)
