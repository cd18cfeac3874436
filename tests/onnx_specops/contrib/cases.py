"""Nodes of ONNX Runtime's own operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A node whose kernel in ONNX Runtime is compared with its body.

    Attributes:
        op: the operator's name.
        name: a description, unique within the operator.
        inputs: the inputs by name, in order; the node omits missing ones.
        attributes: the node's attributes.
        outputs: the outputs of the node; by default the required ones.
        constants: the inputs that are initializers.
        rtol, atol: tolerances of floats; integers must be equal.
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


def _integers(type_: type, *shape: int, seed: int = 0) -> np.ndarray:
    info = np.iinfo(type_)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, type_, endpoint=True)


# Without VNNI, sums of ONNX Runtime's kernel saturate for larger weights.
_ROWS = {"A": _integers(np.uint8, 2, 3, 8), "B": _integers(np.int8, 8, 5, seed=1) // 2}
_SCALES = {"a_scale": np.float32([0.02]), "b_scale": np.float32([0.01])}
_COLUMNS = {"a_scale": np.array(0.02, np.float32), "b_scale": np.linspace(0.01, 0.02, 5, dtype=np.float32)}

_LAST = {"gamma": _random(8, seed=2), "beta": _random(8, seed=3), "bias": _random(8, seed=4)}
_NORMALISED = {"input": _random(2, 3, 8), "skip": _random(2, 3, 8, seed=1)}
_ATTENDED = ("query", "key", "value")


def _tokens(
    batch: int, sequence: int, past: int, heads: int = 4, groups: int = 2, size: int = 16, capacity: int = 0
) -> Arrays:
    """Return the inputs of GroupQueryAttention for new tokens after past ones."""
    return {
        "query": _random(batch, sequence, heads * size),
        "key": _random(batch, sequence, groups * size, seed=1),
        "value": _random(batch, sequence, groups * size, seed=2),
        "past_key": _random(batch, groups, capacity or past, size, seed=3),
        "past_value": _random(batch, groups, capacity or past, size, seed=4),
        "seqlens_k": np.full(batch, past + sequence - 1, np.int32),
        "total_sequence_length": np.array(past + sequence, np.int32),
    }


_GROUPS = {"num_heads": 4, "kv_num_heads": 2}
_ROTATED = {**_GROUPS, "do_rotary": 1}


def _angles(size: int) -> Arrays:
    angles = np.arange(32)[:, None] * np.float32(0.5) ** np.arange(size)
    return {"cos_cache": np.cos(angles).astype(np.float32), "sin_cache": np.sin(angles).astype(np.float32)}


_ATTENTION = {"rtol": 1e-4, "atol": 1e-5, "outputs": ("output", "present_key", "present_value")}
_SHORT_ROW = {"seqlens_k": np.int32([4, 2])}

CASES = (
    Case("GroupQueryAttention", "first", _tokens(2, 5, 0), _GROUPS, **_ATTENTION),
    Case("GroupQueryAttention", "first-rows-padded", {**_tokens(2, 5, 0), **_SHORT_ROW}, _GROUPS, **_ATTENTION),
    Case("GroupQueryAttention", "one-more", _tokens(2, 1, 5), _GROUPS, **_ATTENTION),
    Case("GroupQueryAttention", "several-more", _tokens(1, 3, 5), _GROUPS, **_ATTENTION),
    Case("GroupQueryAttention", "room", _tokens(1, 1, 5, capacity=9), _GROUPS, **_ATTENTION),
    Case("GroupQueryAttention", "scale-softcap", _tokens(2, 5, 0), {**_GROUPS, "scale": 0.7, "softcap": 3.0}, **_ATTENTION),
    Case("GroupQueryAttention", "window", _tokens(1, 5, 4), {**_GROUPS, "local_window_size": 3}, **_ATTENTION),
    Case("GroupQueryAttention", "rotary", {**_tokens(2, 5, 0), **_angles(8)}, _ROTATED, **_ATTENTION),
    Case("GroupQueryAttention", "rotary-more", {**_tokens(1, 2, 5), **_angles(8)}, _ROTATED, **_ATTENTION),
    Case(
        "GroupQueryAttention",
        "rotary-interleaved",
        {**_tokens(2, 5, 0), **_angles(8)},
        {**_ROTATED, "rotary_interleaved": 1},
        **_ATTENTION,
    ),
    Case("GroupQueryAttention", "rotary-in-part", {**_tokens(2, 5, 0, size=32), **_angles(8)}, _ROTATED, **_ATTENTION),
    Case(
        "GroupQueryAttention",
        "bias",
        {**_tokens(1, 3, 2), "attention_bias": _random(1, 4, 3, 5, seed=5)},
        _GROUPS,
        **_ATTENTION,
    ),
    Case("GroupQueryAttention", "sink", {**_tokens(2, 5, 0), "head_sink": _random(4, seed=6)}, _GROUPS, **_ATTENTION),
    Case("BiasGelu", "last-dimension", {"A": _random(2, 3, 8), "B": _random(8, seed=1)}),
    Case("FastGelu", "alone", {"X": _random(3, 7)}),
    Case("FastGelu", "bias", {"X": _random(2, 3, 8), "bias": _random(8, seed=1)}),
    Case("FastGelu", "large", {"X": np.float32([-1e4, -88, -5, 0, 5, 88, 1e4])}),
    Case("MatMulIntegerToFloat", "scales", {**_ROWS, **_SCALES}),
    Case("MatMulIntegerToFloat", "columns", {**_ROWS, **_COLUMNS}, constants=("B", "b_scale")),
    Case(
        "MatMulIntegerToFloat",
        "zero-points-and-bias",
        {
            **_ROWS,
            **_COLUMNS,
            "a_zero_point": np.array(117, np.uint8),
            "b_zero_point": np.zeros(5, np.int8),
            "bias": _random(5, seed=3),
        },
        atol=1e-5,
    ),
    Case(
        "MatMulIntegerToFloat",
        "batches",
        {
            "A": _integers(np.uint8, 2, 4, 3, 8),
            "B": _integers(np.uint8, 2, 4, 8, 6, seed=1),
            **_SCALES,
            "a_zero_point": np.uint8([128]),
            "b_zero_point": np.uint8([3]),
        },
        atol=1e-4,
    ),
    Case(
        "MatMulNBits",
        "zero-points",
        {
            "A": _random(2, 3, 48),
            "B": np.random.default_rng(1).integers(0, 256, (5, 3, 8), dtype=np.uint8),
            "scales": _random(15, seed=2),
            "zero_points": np.random.default_rng(3).integers(0, 256, 10, dtype=np.uint8),
        },
        {"K": 48, "N": 5, "block_size": 16},
        constants=("B", "scales", "zero_points"),
        atol=1e-4,
    ),
    Case(
        "MatMulNBits",
        "no-zero-points",
        {
            "A": _random(1, 40),
            "B": np.random.default_rng(1).integers(0, 256, (5, 2, 16), dtype=np.uint8),
            "scales": _random(10, seed=2),
        },
        {"K": 40, "N": 5, "block_size": 32},
        constants=("B", "scales"),
        atol=1e-4,
    ),
    Case(
        "MatMulNBits",
        "8-bits",
        {
            "A": _random(2, 3, 48),
            "B": np.random.default_rng(1).integers(0, 256, (5, 3, 16), dtype=np.uint8),
            "scales": _random(15, seed=2),
        },
        {"K": 48, "N": 5, "block_size": 16, "bits": 8},
        constants=("B", "scales"),
        atol=1e-3,
    ),
    Case(
        "MatMulNBits",
        "8-bits-with-zero-points",
        {
            "A": _random(3, 40),
            "B": np.random.default_rng(1).integers(0, 256, (5, 2, 32), dtype=np.uint8),
            "scales": _random(10, seed=2),
            "zero_points": np.random.default_rng(3).integers(0, 256, 10, dtype=np.uint8),
        },
        {"K": 40, "N": 5, "block_size": 32, "bits": 8},
        constants=("B", "scales", "zero_points"),
        atol=1e-3,
    ),
    Case(
        "MatMulNBits",
        "float16",
        {
            "A": _random(3, 32).astype(np.float16),
            "B": np.random.default_rng(1).integers(0, 256, (4, 1, 16), dtype=np.uint8),
            "scales": _random(4, seed=2, scale=0.1).astype(np.float16),
        },
        {"K": 32, "N": 4, "block_size": 32},
        constants=("B", "scales"),
        rtol=4e-3,
        atol=4e-3,
    ),
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
