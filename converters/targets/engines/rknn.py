"""Rockchip's NPUs."""

from __future__ import annotations

from dataclasses import replace

from converters.targets.engines.common import COMMON, COMPILED
from converters.targets.target import SELECTIONS

RKNN = replace(
    COMPILED,
    name="rknn",
    title="Rockchip's RKNN toolkit",
    evidence="rknn-toolkit2 2.5 (its simulator)",
    opsets=(12, 19),
    spellings=(*SELECTIONS, *COMMON, "selected int64", "Slice for Split"),
    command='`rknn.api.RKNN().load_onnx("model.onnx")`',
)
