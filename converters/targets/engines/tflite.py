"""TensorFlow Lite."""

from __future__ import annotations

from dataclasses import replace

from converters.targets.engines.common import COMPILED

TFLITE = replace(
    COMPILED,
    name="tflite",
    title="TensorFlow Lite (through onnx2tf)",
    opsets=(11, 18),
    command="`onnx2tf -i model.onnx`",
)
