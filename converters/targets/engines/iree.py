"""IREE."""

from __future__ import annotations

from dataclasses import replace

from converters.targets.engines.common import COMMON, COMPILED

IREE = replace(
    COMPILED,
    name="iree",
    title="IREE",
    evidence="iree-base-compiler 3.13",
    spellings=(
        "Where for If",
        "Where for Loop",
        *COMMON,
        "MatMul for DFT",
        "forward GRU",
        "odd Asinh",
        "Gather for GridSample",
        "ConvTranspose for Col2Im",
        "Slice for negative pads",
    ),
    command="`iree-import-onnx model.onnx -o model.mlir`",
)
