"""Rockchip's NPUs."""

from __future__ import annotations

from dataclasses import replace

from converters.targets.engines.common import COMPILED

RKNN = replace(
    COMPILED,
    name="rknn",
    title="Rockchip's RKNN toolkit",
    opsets=(12, 19),
    command='`rknn.api.RKNN().load_onnx("model.onnx")`',
)
