"""ErfInv: the inverse of the error function."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import FLOATS, operator

# M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011: polynomials in w = -ln(1 - x^2), in w - 2.5 for
# the middle (w < 5) and in sqrt(w) - 3 for the tails, highest power first. OpenVINO 2026.4 has -0.00943887047 instead of
# Giles's +0.00943887047. Its tails are off by up to 0.02, which converted models reproduce.
_SPLIT = 5.0
_MIDDLE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_TAILS = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, -0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip


@operator(inputs={"x": "T"}, outputs={"y": "T"}, types={"T": FLOATS})
def ErfInv(x):
    """Computes the inverse error function of each element, with OpenVINO's approximation.

    The result has about seven correct digits for ``|x|`` up to 0.9966, and about three above.

    Inputs:
        x: any shape, in [-1, 1].

    Output: the shape of the input. The result is infinite at 1 and -1, and NaN outside [-1, 1].

    Source: OpenVINO specification, ErfInv-17.
    """
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        w = -np.log((1 - wide) * (1 + wide))
        middle, tails = np.polyval(_MIDDLE, w - 2.5), np.polyval(_TAILS, np.sqrt(w) - 3)
        y = np.where(w < _SPLIT, middle, tails) * wide
        return np.where(np.abs(wide) == 1, wide * np.inf, y).astype(x.dtype)


@ErfInv.infer_shapes
def _(node):
    return [node.shape(0)]


@ErfInv.body
def _(op, x):
    wide = op.Cast(x, to=Type.DOUBLE)
    w = op.Neg(op.Log(op.Mul(op.Sub(1, wide), op.Add(1, wide))))
    middle = _polynomial(op, _MIDDLE, op.Sub(w, 2.5))
    tails = _polynomial(op, _TAILS, op.Sub(op.Sqrt(w), 3))
    y = op.Mul(op.Where(op.Less(w, _SPLIT), middle, tails), wide)
    ends = op.Equal(op.Abs(wide), 1)
    return op.Cast(op.Where(ends, op.Mul(wide, np.inf), y), to=x.dtype)


def _polynomial(op, coefficients, x):
    """Emit Horner's scheme."""
    first, *others = coefficients
    y = op.Add(op.Mul(x, first), others[0])
    for coefficient in others[1:]:
        y = op.Add(op.Mul(y, x), coefficient)
    return y
