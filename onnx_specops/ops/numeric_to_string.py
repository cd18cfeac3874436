"""NumericToString: floating-point numbers as text."""

from __future__ import annotations

import math

import numpy as np

from onnx_specops.domain import operator


@operator(
    inputs={"data": "T"},
    outputs={"output": "tensor(string)"},
    types={"T": ("float", "double")},
    no_body="ONNX does not define how many digits Cast writes, and ONNX Runtime writes more",
)
def NumericToString(data):
    """Formats floating-point numbers like ``%g`` of C's ``printf``: six significant digits, no trailing zeros, and an
    exponent if it is less than -4 or greater than 5.

    Inputs:
        data: any shape.

    Output: strings, of the shape of ``data``. Infinities and NaNs are ``inf``, ``-inf``, ``nan`` and ``-nan``.

    Source: openvino_tokenizers, NumericToString.
    """
    texts = np.empty(data.shape, object)
    texts.reshape(-1)[:] = [_text(number) for number in data.reshape(-1).tolist()]
    return texts


@NumericToString.infer_shapes
def _(node):
    return [node.shape(0)]


def _text(number: float) -> str:
    if math.isnan(number):
        return "-nan" if math.copysign(1, number) < 0 else "nan"
    return f"{number:g}"
