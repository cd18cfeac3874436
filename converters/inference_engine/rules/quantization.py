"""Quantization."""

from __future__ import annotations

import numpy as np

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
    """FakeQuantize, and Quantize before version 6: rounding to one of ``levels`` levels.

    If the two levels are 0 and 1, the Inference Engine computes bits with the threshold ``input_low``.
    """
    if levels < 2:
        raise Malformed(f"its levels are {levels}; expected 2 or more")
    if levels == 2 and all(_is_bits(end) for end in (output_low, output_high)):
        return op.Where(op.Greater(x, input_low), output_high, output_low)
    return opset.fake_quantize(op, x, input_low, input_high, output_low, output_high, levels=levels)


def _is_bits(value: Value) -> bool:
    return value.constant is not None and bool(np.isin(value.constant, (0, 1)).all())
