"""tract."""

from __future__ import annotations

from converters.targets import limits
from converters.targets.engines.common import COMMON
from converters.targets.target import Target

TRACT = Target(
    "tract",
    "tract",
    "tract 0.23",
    opsets=(11, 21),
    lacks={"DeformConv": "", "Loop": "", "ReverseSequence": "", "RoiAlign": ""},
    limits=(
        limits.free_scales_of_corners,
        limits.cubic_samples,
        limits.stated_shape,
        limits.celu,
        limits.selected_boxes,
        limits.shapes_of_branches,
        limits.recurrent,
    ),
    spellings=(
        "Where for Loop",
        *COMMON,
        "MatMul for RoiAlign",
        "explicit padding",
        "ConvTranspose for Col2Im",
        "Gather for strided Slice",
        "Gather for aligned Resize",
        "Slice for negative pads",
        "Div for Mod",
        "whole dividends",
        "expanded LogSoftmax",
        "stable Softplus",
        "copied products",
        "Gather for Expand",
        "reduced numbers",
        "counted outputs",
        "counted Slice",
        "wide sizes",
        "no named dimensions",
        "unrolled forms of recurrence",
    ),
    command='`tract.onnx().load("model.onnx")`',
)
