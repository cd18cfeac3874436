"""IREE."""

from __future__ import annotations

from dataclasses import replace

from converters.targets import limits
from converters.targets.engines.common import COMMON, COMPILED
from converters.targets.target import SELECTIONS

IREE = replace(
    COMPILED,
    name="iree",
    title="IREE",
    evidence="iree-base-compiler 3.13",
    limits=(limits.backward_or_computed_steps,),
    spellings=(
        *SELECTIONS,
        *COMMON,
        "Gather for reversed Slice",
        "Gather for every reflection",
        "MatMul for DFT",
        "forward GRU",
        "odd Asinh",
        "Gather for GridSample",
        "ConvTranspose for Col2Im",
        "Slice for negative pads",
    ),
    command="`iree-import-onnx model.onnx -o model.mlir`",
)
