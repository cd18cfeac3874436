"""Shared properties of engines other than ONNX Runtime."""

from __future__ import annotations

from converters.targets.target import SELECTIONS, Spelling, Target

COMMON: tuple[Spelling, ...] = (
    "MatMul for bags",
    "unseeded RandomUniform",
    "unrolled Loop",
    "binary operators",
    "sorted TopK",
    "static Reshape",
    "no scalar constants",
    "no leading 1s",
    "no boolean constants",
    "stated kernels",
)
COMPILED = Target(
    "compiled",
    "an engine that requires static shapes",
    "not measured",
    opsets=(11, 21),
    static=True,
    control_flow=frozenset(),
    spellings=(*SELECTIONS, *COMMON),
)
"""The common properties of engines without dynamic shapes. Engines that were not measured get those that others need."""
