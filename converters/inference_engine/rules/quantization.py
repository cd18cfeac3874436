"""Quantization."""

from __future__ import annotations

from converters.errors import Malformed
from converters.inference_engine.rule import layer
from converters.openvino.rules import quantization as opset
from onnx_specops.building import Builder, Value


@layer("FakeQuantize", "Quantize")
def fake_quantize(
    op: Builder,
    x: Value,
    input_low: Value,
    input_high: Value,
    output_low: Value,
    output_high: Value,
    *,
    levels: int,
):
    """FakeQuantize, and Quantize before version 6: rounding to one of ``levels`` levels."""
    if levels < 2:
        raise Malformed(f"its levels are {levels}; expected 2 or more")
    if levels == 2:
        return op.Where(op.Greater(x, input_high), output_high, output_low)
    return opset.fake_quantize(op, x, input_low, input_high, output_low, output_high, levels=levels)
